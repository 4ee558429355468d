//! Matrix products and convolutions, and a chain of operations on each block of the result.

use std::sync::Arc;

use super::chain::{self, Space};
use super::follow::{Followed, Input, Target};
use super::row_blocks::RowBlocks;
use super::{convolution, product};
use crate::device::ALIGNMENT;
use crate::device::onednn::Pass;
use crate::error::Result;
use crate::kernels::{Kernel, Width};
use crate::ops::chain::Chain;
use crate::ops::epilogue::{Epilogue, Producer};
use crate::ops::geometry::Geometry;
use crate::ops::{Kind, Meta};

/// Prepares a producer and the chain that follows.
///
/// # Errors
/// Those of the two kernels.
pub fn prepare(op: &Epilogue, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let outputs = op.chain.outputs.len() + usize::from(op.keeps);
    let inputs = &io[..io.len() - outputs];
    let values = op.values(inputs)?;
    let first = op.io(inputs, &values);
    let (producer, space) = (op.producer.kind(), space(op, &first, &values));
    let blocks = if space.is_some() { in_blocks(&producer, &first, width)? } else { None };
    let rows = match blocks {
        Some(rows) => rows,
        // Prepared with the width it has on its own, so that the kernel is exactly the same.
        None => {
            let own = Width::of(producer.family().cost(&first), width.0);
            RowBlocks::whole(super::prepare(&producer, &first, own)?, first.len() - 1)
        }
    };
    followed(&op.chain, &values, (rows, space), op.keeps, width)
}

/// Whether the chain reads blocks of the producer's result while they are in the cache.
///
/// # Errors
/// The errors of the operations' own inference.
pub fn is_blocked(op: &Epilogue, inputs: &[&Meta]) -> Result<bool> {
    let values = op.values(inputs)?;
    Ok(space(op, &op.io(inputs, &values), &values).is_some())
}

/// Whether the result of an operation is computed in blocks; `io` are the inputs and the result.
pub fn is_split(kind: &Kind, io: &[&Meta]) -> bool {
    match convolution(kind) {
        Some((pass, _)) => convolution::is_split(pass, io),
        None => matches!(kind, Kind::Matmul(_)) && product::is_split([io[0], io[1], io[2]]),
    }
}

/// The result of a producer in blocks, where possible; `io` are the inputs and the result.
fn in_blocks(producer: &Kind, io: &[&Meta], width: Width) -> Result<Option<RowBlocks>> {
    match convolution(producer) {
        Some((pass, geometry)) => convolution::in_blocks(pass, geometry, io, width),
        None => product::in_blocks([io[0], io[1], io[2]], width),
    }
}

/// The pass and geometry of a convolution; None for other operations.
fn convolution(kind: &Kind) -> Option<(Pass, &Geometry)> {
    match kind {
        Kind::Conv2d(conv) => Some((Pass::Forward, &conv.geometry)),
        Kind::Conv2dGradInput(conv) => Some((Pass::GradInput, &conv.geometry)),
        _ => None,
    }
}

/// How the chain is split along with the blocks of the producer's result, if there are blocks;
/// `io` are the producer's inputs and result.
fn space(op: &Epilogue, io: &[&Meta], values: &[Meta]) -> Option<Space> {
    let y = &values[0].shape;
    let rows = || match op.producer {
        Producer::Matmul(_) => y[..y.rank() - 1].iter().product(),
        Producer::Conv2d(_) | Producer::Conv2dGradInput(_) => y[0],
    };
    let space = || Space::of(&op.chain, values)?.with_rows(rows());
    if is_split(&op.producer.kind(), io) { space() } else { None }
}

/// Prepares a chain with these values, its inputs and the results of all links. Its first input is
/// computed in blocks, those of a space, or as a whole. The kernel's inputs are the chain's other
/// inputs, followed by those of the blocks; the result of the blocks is its last output, if it
/// `keeps` that.
fn followed(
    chain: &Chain,
    values: &[Meta],
    (rows, space): (RowBlocks, Option<Space>),
    keeps: bool,
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let blocks = rows.blocks();
    let cut = |rows: usize| match &space {
        Some(space) => (0..values.len()).map(|v| space.block(values, v, rows)).collect(),
        None => values.to_vec(),
    };
    let width = if space.is_some() { Width::ONE } else { width };
    let kernels = blocks.for_both(|rows| chain::prepare(chain, &cut(rows), width))?;
    let step = |v: usize| space.as_ref().map_or(0, |space| space.row_bytes(values, v) as isize);
    let bytes = cut(blocks.sizes()[0])[0].bytes().next_multiple_of(ALIGNMENT);
    let others = chain.inputs - 1;
    let given = (0..others).map(|i| Input::Given(i, step(i + 1)));
    let kept = Target::Output(chain.outputs.len(), step(0));
    Ok(Arc::new(Followed {
        factors: (others..others + rows.inputs()).collect(),
        target: if keeps { kept } else { Target::Scratch(bytes) },
        inputs: std::iter::once(Input::Block).chain(given).collect(),
        outputs: chain.outputs.iter().map(|link| step(chain.inputs + link)).collect(),
        kernels,
        rows,
    }))
}

//! Matrix products and convolutions, and a chain of operations on each block of the result.

use std::sync::Arc;

use super::chain::{self, Space};
use super::follow::{Followed, Input, Target};
use super::row_blocks::RowBlocks;
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::{Kernel, Width};
use crate::ops::Meta;
use crate::ops::chain::Chain;

/// The values of a chain as matrices with the `rows` rows of its first input; None where they
/// cannot be seen as such matrices.
pub fn space(chain: &Chain, values: &[Meta], rows: usize) -> Option<Space> {
    Space::of(chain, values)?.with_rows(rows)
}

/// Prepares a chain with these values, its inputs and the results of all links. Its first input is
/// computed in blocks, those of a space, or as a whole. The kernel's inputs are the chain's other
/// inputs, followed by those of the blocks; the result of the blocks is its last output, if it
/// `keeps` that.
///
/// # Errors
/// Those of the links.
pub fn prepare(
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

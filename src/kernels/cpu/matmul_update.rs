//! Updates whose gradient is a matrix product, one block of its rows at a time.

use std::sync::Arc;

use smallvec::SmallVec;

use super::follow::{Followed, Input, Target};
use super::product;
use super::row_blocks::{RowBlocks, first_rows, row_bytes};
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::{Kernel, Width};
use crate::ops::gemm::Matmul;
use crate::ops::optim::MatmulUpdate;
use crate::ops::{Family, Kind, Meta};

/// Whether the product `factors` = a, b, product is computed in blocks of the gradient's rows.
pub fn is_split(factors: [&Meta; 3]) -> bool {
    factors[2].shape.rank() == 2 && product::is_split(factors)
}

/// Prepares an update whose gradient is the product of input 1, which stands in its place, and the
/// last input.
///
/// # Errors
/// Those of the two kernels.
pub fn prepare(op: &MatmulUpdate, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (inputs, outputs) = io.split_at(io.len() - op.effects().state.len());
    let (a, b) = (inputs[1], inputs[inputs.len() - 1]);
    let product = Matmul.infer(&[a, b])?.remove(0);
    let inputs = MatmulUpdate::inputs(inputs, &product);
    in_blocks(&op.update.kind(), [a, b, &product], &inputs, outputs, width)
}

/// Prepares `update` of these inputs and outputs, where input 1, the gradient, is the product in
/// `[a, b, product]`; the kernel finds a in its place and b after all inputs.
fn in_blocks(
    update: &Kind,
    factors: [&Meta; 3],
    inputs: &[&Meta],
    outputs: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let io: SmallVec<[&Meta; 8]> = inputs.iter().chain(outputs).copied().collect();
    let is_split = is_split(factors);
    let split = if is_split { product::in_blocks(factors, width)? } else { None };
    let rows = match split {
        Some(rows) => rows,
        None => RowBlocks::whole(product::matmul(factors, width)?, 2),
    };
    let (gradient, blocks) = (factors[2], rows.blocks());
    let has_rows = |meta: &Meta| is_split && meta.shape == gradient.shape;
    let cut = |meta: &Meta, rows: usize| {
        if has_rows(meta) { first_rows(meta, 0, rows) } else { meta.clone() }
    };
    // A single block updates everything, and then has the whole team.
    let width = if is_split { Width::ONE } else { width };
    let kernels = blocks.for_both(|rows| {
        let io: SmallVec<[Meta; 8]> = io.iter().map(|meta| cut(meta, rows)).collect();
        super::prepare(update, &io.iter().collect::<SmallVec<[&Meta; 8]>>(), width)
    })?;
    let step = |meta: &Meta| if has_rows(meta) { row_bytes(meta, 0) } else { 0 };
    let input = |(i, meta): (usize, &&Meta)| match i {
        1 => Input::Block,
        i => Input::Given(i, step(meta)),
    };
    let bytes = cut(gradient, blocks.sizes()[0]).bytes().next_multiple_of(ALIGNMENT);
    Ok(Arc::new(Followed {
        factors: smallvec::smallvec![1, inputs.len()],
        target: Target::Scratch(bytes),
        inputs: inputs.iter().enumerate().map(input).collect(),
        outputs: outputs.iter().map(|meta| step(meta)).collect(),
        kernels,
        rows,
    }))
}

//! Scaled dot-product attention and its gradient, block by block, so that no matrix of scores is
//! stored.

mod backward;
mod blocks;
mod dropping;
mod few;
mod forward;
mod heads;
mod masks;
mod results;
mod rows;
mod scratch;
mod slopes;
mod steps;
#[cfg(test)]
mod tests;
mod weights;

use std::sync::Arc;

use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Factor;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::{Kernel, Width};
use crate::ops::attention::{Attention, AttentionGrad, Extra, Rule, Sizes};
use crate::ops::{Family, Meta};
use backward::Backward;
use dropping::Dropping;
use few::Few;
use forward::Forward;
use heads::{Heads, Matrices};
use masks::Masks;

/// Prepares (q, k, v, ...) -> (y, lse[, drawn]).
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats; [`crate::Error::Library`].
pub fn forward(op: &Attention, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype, T => prepare::<T>(op, io, width),
        else => not_float(op.name(), io[0]))
}

/// Prepares (dy, q, k, v, y, lse, ...) -> (dq, dk, dv[, dscores]).
///
/// # Errors
/// As [`forward`].
pub fn gradient(op: &AttentionGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype, T => prepare_gradient::<T>(op, io, width),
        else => not_float(op.name(), io[0]))
}

/// The optional inputs, from number `first` on.
fn extra<'a>(rule: &Rule, io: &[&'a Meta], first: usize) -> Extra<(usize, &'a Meta)> {
    rule.extra((first..).zip(io[first..].iter().copied()))
}

fn prepare<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>>(
    op: &Attention,
    io: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let sizes = Sizes::new(op.name(), [io[0], io[1], io[2]])?;
    let extra = extra(&op.rule, io, 3);
    let outputs = io.len() - if op.rule.drops() { 3 } else { 2 };
    let setup = forward::Setup::<T> {
        heads: Heads::new(&sizes),
        scale: T::Sum::of(op.rule.scale.0),
        masks: Masks::new::<T>(op.name(), &op.rule, &sizes, &extra),
        dropping: extra
            .state
            .map(|(input, _)| Dropping::new(&op.rule, sizes.lengths[1], input, op.offset)),
        tensors: [io[0], io[1], io[2], io[outputs]].map(Matrices::of),
        lse: Matrices::of_rows(io[outputs + 1]),
    };
    if Few::<T>::suits(&setup.heads) {
        return Ok(Arc::new(Few::new(setup, width)));
    }
    Ok(Arc::new(Forward::new(setup, width)?))
}

fn prepare_gradient<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>>(
    op: &AttentionGrad,
    io: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let sizes = Sizes::new(op.name(), [io[1], io[2], io[3]])?;
    let extra = extra(&op.rule, io, 6);
    let outputs = &io[io.len() - if op.scores { 4 } else { 3 }..];
    let matrices = |i: usize| Matrices::of(io[i]);
    let wanted = sizes.scores();
    let mut made: Vec<_> = outputs[..3].iter().map(|meta| Matrices::of(meta)).collect();
    made.extend(outputs.get(3).map(|meta| Matrices::broadcast(meta, &wanted)));
    let setup = backward::Setup::<T> {
        heads: Heads::new(&sizes),
        scale: T::Sum::of(op.rule.scale.0),
        causal: op.rule.causal,
        masks: Masks::new::<T>(op.name(), &op.rule, &sizes, &extra),
        dropping: extra.state.map(|(input, _)| Dropping::new(&op.rule, sizes.lengths[1], input, 0)),
        inputs: [
            matrices(0),
            matrices(1),
            matrices(2),
            matrices(3),
            matrices(4),
            Matrices::of_rows(io[5]),
        ],
    };
    Ok(Arc::new(Backward::new(setup, made, width)?))
}

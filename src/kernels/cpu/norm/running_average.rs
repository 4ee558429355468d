//! A running average, updated in place.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Float;
use crate::kernels::cpu::strided::walk::Walk;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;

/// The minimum number of elements per thread.
const GRAIN: usize = 1024;

/// The kernel of `running = (1 - momentum) * running + momentum * factor * batch` for `io` =
/// running, batch, running.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn update(momentum: f64, factor: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let walk = Walk::in_memory_order([io[0], io[1]]);
    let weights = [1.0 - momentum, momentum * factor];
    crate::dispatch!(float io[0].dtype, T => Ok(prepare::<T>(walk, weights, width)),
        else => not_float("running_average", io[0]))
}

fn prepare<T: Float>(walk: Walk<2>, [old, new]: [f64; 2], width: Width) -> Arc<dyn Kernel> {
    let parts = width.seats(walk.elements().div_ceil(GRAIN));
    kernel(0, move |io| {
        team::ranges(walk.elements(), GRAIN, parts, &|range, _| {
            let (running, batch) = (io.output::<T>(0), io.input::<T>(1));
            for [to, from] in walk.offsets(range) {
                // SAFETY: the walk stays within the tensors; each element belongs to one range.
                unsafe {
                    let (at, batch) = (running.offset(to), *batch.offset(from));
                    *at = T::from_f64(old * (*at).to_f64() + new * batch.to_f64());
                }
            }
        })
    })
}

//! What has run on the CPU is run on an emulated GPU, too, and held against it.
#![allow(unsafe_code)]

use std::borrow::Borrow;

use super::tensor::Memory;
use super::{Shared, Tensor, places};
use crate::device::cuda::Driver;
use crate::device::cuda::emulated;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cuda::{self, Runner};
use crate::kernels::{Io, Kernel};
use crate::ops::{Kind, Meta};

/// More work than this takes an emulated GPU too long.
const MOST_WORK: u64 = 1 << 20;

/// Runs an operation on the emulated GPU, if it has a kernel there, and asserts that its results are
/// those of the CPU but for rounding.
pub fn compare(
    kind: &Kind,
    io: &[&Meta],
    inputs: &[impl Borrow<Tensor>],
    shared: Shared,
    want: &[Tensor],
) -> Result<()> {
    if kind.family().cost(io).flops > MOST_WORK {
        return Ok(());
    }
    let Some(program) = cuda::program(kind, io)? else { return Ok(()) };
    let kernel = Runner::new(emulated::driver(), program)?;
    let mut scratch = Memory::poisoned(kernel.scratch());
    let outputs: Vec<Meta> = want.iter().map(|tensor| tensor.meta.clone()).collect();
    let mut made = places(inputs, &outputs, shared);
    let to: Vec<*mut u8> = made.iter_mut().map(Tensor::address).collect();
    let mut from: Vec<*const u8> = inputs.iter().map(|t| t.borrow().start()).collect();
    shared.iter().for_each(|&(i, o)| from[i] = to[o]);
    let stream = emulated::driver().stream();
    // SAFETY: each tensor has the memory of its meta; the emulated GPU reaches the host's.
    kernel.run(&unsafe { Io::new(&from, &to, scratch.start()) }.on(stream))?;
    emulated::driver().wait(stream)?;
    scratch.assert_guarded("work space");
    for (o, (made, want)) in made.iter().zip(want).enumerate() {
        made.assert_guarded();
        let what = || format!("output {o} of {kind:?} on {:?}", io[0]);
        let dtypes = io.iter().map(|meta| meta.dtype).filter(|dtype| dtype.is_float());
        let bound = match want.meta.dtype.is_float() {
            true => dtypes.map(bound).fold(0.0, f64::max),
            false => 0.0,
        };
        // States are rounded in each step, as they are multiplied: what is off is so by their size.
        let is_recurrent = matches!(kind, Kind::Recurrent(_) | Kind::RecurrentGrad(_));
        let values = want.values().into_iter().filter(|_| is_recurrent).map(f64::abs);
        assert_close(made, want, bound, values.fold(1.0, f64::max), &what);
    }
    Ok(())
}

/// What a GPU's functions may be off by, relative to the value.
fn bound(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-12,
        DType::Float32 => 4e-6,
        DType::Float16 => 2e-3,
        DType::BFloat16 => 1.6e-2,
        _ => 0.0,
    }
}

/// `bound` is relative to the value or to `least`, whichever is larger.
fn assert_close(made: &Tensor, want: &Tensor, bound: f64, least: f64, what: &dyn Fn() -> String) {
    for (i, (a, b)) in made.values().into_iter().zip(want.values()).enumerate() {
        let is_same = a == b || a.is_nan() && b.is_nan();
        let distance = (a - b).abs();
        let is_near = distance <= bound * b.abs().max(least);
        assert!(is_same || is_near, "{}: element {i} is {a}, not {b}", what());
    }
}

//! Runs kernels in tests: on tensors of any layout, on any number of threads, in place.
#![allow(unsafe_code)]

mod gpu;
mod host;
mod random;
mod tensor;

use std::borrow::Borrow;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::{Io, Kernel, Target, Width, cpu};
use crate::ops::{Family, Kind, Meta};
pub use host::user_code;
pub use random::{Random, noise};
use tensor::Memory;
pub use tensor::{Tensor, layouts};

/// (input, output) pairs that share memory.
type Shared<'a> = &'a [(usize, usize)];

/// Infers, prepares and runs an operation on `threads` threads; updated state is returned, and
/// `inputs` are left unchanged.
pub fn apply<O: Clone + Into<Kind>>(
    op: &O,
    inputs: &[impl Borrow<Tensor>],
    threads: usize,
) -> Result<Vec<Tensor>> {
    let kind = op.clone().into();
    apply_sharing(&kind, inputs, threads, kind.family().effects().state)
}

/// As [`apply`] on 1 to 4 threads, and in place if the family allows it; asserts that the results
/// are bit-identical.
pub fn apply_any_width<O: Clone + Into<Kind>>(
    op: &O,
    inputs: &[impl Borrow<Tensor>],
) -> Result<Vec<Tensor>> {
    let kind: Kind = op.clone().into();
    let family = kind.family();
    let first = apply(&kind, inputs, 1)?;
    for threads in 2..=4 {
        let again = apply(&kind, inputs, threads)?;
        assert!(first == again, "{} differs with {threads} threads", family.name());
    }
    let fits = |&&(i, o): &&(usize, usize)| inputs[i].borrow().meta == first[o].meta;
    for pair in family.in_place().iter().filter(fits) {
        let again = apply_sharing(&kind, inputs, 1, &[*pair])?;
        assert!(first == again, "{} differs in the place of input {}", family.name(), pair.0);
    }
    Ok(first)
}

fn apply_sharing(
    kind: &Kind,
    inputs: &[impl Borrow<Tensor>],
    threads: usize,
    shared: Shared,
) -> Result<Vec<Tensor>> {
    let family = kind.family();
    let metas: Vec<&Meta> = inputs.iter().map(|t| &t.borrow().meta).collect();
    let mut outputs = family.infer(&metas)?;
    family.effects().state.iter().for_each(|&(i, o)| outputs[o] = metas[i].clone());
    let io: Vec<&Meta> = metas.into_iter().chain(&outputs).collect();
    let kernel = cpu::Cpu.prepare(kind, &io, Width(threads))?;
    let unwritten = places(inputs, &outputs, shared);
    let mut made = unwritten.clone();
    let checked = check(family, &*kernel, inputs);
    let status = execute(&*kernel, inputs, &mut made, shared);
    // Kernels without inputs to check fail in the run alone.
    if !family.checked().is_empty() || status.is_ok() {
        assert_eq!(format!("{checked:?}"), format!("{status:?}"), "the check and the run");
    }
    assert!(status.is_ok() || made == unwritten, "written in spite of {status:?}");
    status?;
    gpu::compare(kind, &io, inputs, shared, &made)?;
    Ok(made)
}

/// Runs a kernel prepared for these inputs and for outputs of these metas.
pub fn run(
    kernel: &dyn Kernel,
    inputs: &[impl Borrow<Tensor>],
    outputs: &[Meta],
) -> Result<Vec<Tensor>> {
    let mut made = places(inputs, outputs, &[]);
    execute(kernel, inputs, &mut made, &[]).map(|()| made)
}

/// The memory a run writes to: copies of inputs that are also outputs, or uninitialised memory.
fn places(inputs: &[impl Borrow<Tensor>], outputs: &[Meta], shared: Shared) -> Vec<Tensor> {
    let place = |(o, meta): (usize, &Meta)| match shared.iter().find(|pair| pair.1 == o) {
        Some(&(i, _)) => inputs[i].borrow().clone(),
        None => Tensor::poisoned(meta.clone()),
    };
    outputs.iter().enumerate().map(place).collect()
}

fn execute(
    kernel: &dyn Kernel,
    inputs: &[impl Borrow<Tensor>],
    outputs: &mut [Tensor],
    shared: Shared,
) -> Result<()> {
    let to: Vec<*mut u8> = outputs.iter_mut().map(Tensor::address).collect();
    let mut from: Vec<*const u8> = inputs.iter().map(|t| t.borrow().start()).collect();
    shared.iter().for_each(|&(i, o)| from[i] = to[o]);
    let mut scratch = Memory::poisoned(kernel.scratch());
    let place = if kernel.scratch() == 0 { std::ptr::null_mut() } else { scratch.start() };
    // SAFETY: each tensor has the memory of its meta.
    let status = kernel.run(&unsafe { Io::new(&from, &to, place) });
    scratch.assert_guarded("work space");
    outputs.iter().for_each(Tensor::assert_guarded);
    status
}

/// The result of the kernel's check when it can access only the inputs that it may read.
fn check(family: &dyn Family, kernel: &dyn Kernel, inputs: &[impl Borrow<Tensor>]) -> Result<()> {
    let seen = |i: usize| family.checked().contains(&i).then(|| inputs[i].borrow().start());
    let from: Vec<*const u8> =
        (0..inputs.len()).map(|i| seen(i).unwrap_or(std::ptr::null())).collect();
    // SAFETY: a check reads nothing else.
    kernel.check(&unsafe { Io::new(&from, &[], std::ptr::null_mut()) })
}

/// Asserts that values agree within `tolerance`, relative to the larger of 1 and their magnitude;
/// NaN equals NaN.
#[track_caller]
pub fn assert_near(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let near =
            g == w || (g - w).abs() <= tolerance * w.abs().max(1.0) || g.is_nan() && w.is_nan();
        assert!(near, "{what}: element {i}: got {g}, want {w}");
    }
}

/// The allowed error of a result of this type, relative to its magnitude.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-12,
        DType::Float32 => 2e-5,
        DType::Float16 => 2e-3,
        DType::BFloat16 => 2e-2,
        _ => 0.0,
    }
}

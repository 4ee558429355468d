//! Running kernels on tensors of any layout, for tests.
#![allow(unsafe_code)]

use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::ops::testing::{assert_same, check};
use crate::ops::{Family, Io, Kernel, Meta, Metas, Width};
use crate::shape::Strides;

/// Memory aligned as a device's is.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq)]
struct Line([u8; 64]);

const POISON: Line = Line([0xff; 64]);
/// Lines behind every tensor that nobody may write.
const GUARD: usize = 64;

fn poison(bytes: usize) -> Vec<Line> {
    vec![POISON; bytes.div_ceil(64) + GUARD]
}

fn assert_guarded(memory: &[Line], what: &str) {
    let guard = &memory[memory.len() - GUARD..];
    assert!(guard.iter().all(|line| *line == POISON), "memory behind the {what} was written");
}

/// Numbers that look random (xorshift).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// One of `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }

    /// A layout of this shape: axes in any order, steps, either direction.
    pub fn layout(&mut self, dtype: DType, shape: &[usize]) -> Meta {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        (1..order.len()).for_each(|i| order.swap(i, self.below(i + 1)));
        let mut strides: Strides = smallvec::smallvec![0; shape.len()];
        let mut step = 1;
        for d in order {
            step *= [1, 1, 1, 2][self.below(4)];
            strides[d] = if self.below(5) == 0 { -step } else { step };
            step *= shape[d].max(1) as isize;
        }
        Meta { strides, ..Meta::new(dtype, shape) }
    }

    /// A tensor of random values: whole numbers for integers, in -1..1 for floats.
    pub fn tensor(&mut self, meta: Meta) -> Tensor {
        let scale = if meta.dtype.is_float() { 8.0 } else { 1.0 };
        let values: Vec<f64> =
            (0..meta.numel()).map(|_| (self.below(129) as f64 - 64.0) / 8.0 / scale).collect();
        Tensor::new(meta, &values)
    }
}

/// A tensor in memory of its own, whose first element may lie anywhere in it.
#[derive(Clone)]
pub struct Tensor {
    /// How it lies in the memory.
    pub meta: Meta,
    memory: Vec<Line>,
    offset: usize,
}

impl Tensor {
    /// A tensor full of one bits (NaN, -1).
    pub fn poisoned(meta: Meta) -> Tensor {
        let span = meta.span();
        let memory = poison(span.len() * meta.dtype.size());
        Tensor { offset: -span.start as usize * meta.dtype.size(), meta, memory }
    }

    /// A tensor of these values, row-major.
    pub fn new(meta: Meta, values: &[f64]) -> Tensor {
        let mut tensor = Tensor::poisoned(meta);
        let places = places(&tensor.meta);
        assert_eq!(places.len(), values.len());
        let start = tensor.start_mut();
        dispatch!(tensor.meta.dtype, T => {
            for (place, value) in places.into_iter().zip(values) {
                // SAFETY: the place lies within the span that the memory was made for.
                unsafe { *start.cast::<T>().offset(place) = T::from_f64(*value) };
            }
        });
        tensor
    }

    /// The values, row-major.
    pub fn values(&self) -> Vec<f64> {
        let start = self.start();
        let places = places(&self.meta).into_iter();
        dispatch!(self.meta.dtype, T => {
            // SAFETY: as in `new`.
            places.map(|place| unsafe { *start.cast::<T>().offset(place) }.to_f64()).collect()
        })
    }

    /// The address of the first element.
    pub fn address(&mut self) -> *mut u8 {
        self.start_mut()
    }

    fn start(&self) -> *const u8 {
        self.memory.as_ptr().cast::<u8>().wrapping_add(self.offset)
    }

    fn start_mut(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.offset)
    }
}

/// The places of all elements, row-major, counted from the first.
fn places(meta: &Meta) -> Vec<isize> {
    let mut found = vec![0];
    for (&extent, &stride) in meta.shape.iter().zip(&meta.strides) {
        let steps = || (0..extent as isize).map(|i| i * stride);
        found = found.iter().flat_map(|&base| steps().map(move |s| base + s)).collect();
    }
    found
}

/// Runs a kernel that was prepared for these inputs and outputs of these metas.
pub fn run(kernel: &dyn Kernel, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Vec<Tensor>> {
    let mut made: Vec<Tensor> = outputs.iter().cloned().map(Tensor::poisoned).collect();
    let from: Vec<*const u8> = inputs.iter().map(|t| t.start()).collect();
    let to: Vec<*mut u8> = made.iter_mut().map(Tensor::start_mut).collect();
    let mut scratch = poison(kernel.scratch());
    // SAFETY: each tensor has the memory of its meta.
    kernel.run(&unsafe { Io::new(&from, &to, scratch.as_mut_ptr().cast()) })?;
    assert_guarded(&scratch, "work space");
    made.iter().for_each(|tensor| assert_guarded(&tensor.memory, "output"));
    Ok(made)
}

/// Runs a kernel whose only output is input 0, and answers that.
pub fn update(kernel: &dyn Kernel, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut state = inputs[0].clone();
    let to = [state.start_mut()];
    let mut from: Vec<*const u8> = inputs.iter().map(|t| t.start()).collect();
    from[0] = to[0];
    // SAFETY: each tensor has the memory of its meta.
    kernel.run(&unsafe { Io::new(&from, &to, std::ptr::null_mut()) })?;
    Ok(state)
}

/// Infers, prepares and runs an operation on `threads` threads.
pub fn apply(family: &dyn Family, inputs: &[&Tensor], threads: usize) -> Result<Vec<Tensor>> {
    let metas: Vec<&Meta> = inputs.iter().map(|t| &t.meta).collect();
    let outputs: Metas = family.infer(&metas)?;
    let io: Vec<&Meta> = metas.into_iter().chain(&outputs).collect();
    let kernel = family.cpu(&io, Width(threads))?;
    let made = run(&*kernel, inputs, &outputs);
    let from: Vec<*const u8> = inputs.iter().map(|t| t.start()).collect();
    assert_same(&check(family, &*kernel, &from), &made.as_ref().map(drop).map_err(Clone::clone));
    made
}

/// Asserts that the values are near, NaN equal to NaN.
pub fn assert_near(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let near =
            g == w || (g - w).abs() <= tolerance * (1.0 + w.abs()) || g.is_nan() && w.is_nan();
        assert!(near, "{what}: element {i}: got {g}, want {w}");
    }
}

/// How far a result of this type may be from the exact one, relative to its size.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-12,
        DType::Float32 => 2e-5,
        DType::Float16 => 2e-3,
        DType::BFloat16 => 2e-2,
        _ => 0.0,
    }
}

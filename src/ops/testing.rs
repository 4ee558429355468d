//! Runs kernels in tests on tensors of any strides, and any number of threads.
#![allow(unsafe_code)]

use super::{Family, Io, Kernel, Meta, Width};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::shape::{Shape, Strides};

/// A tensor in memory of its own, values as float64 (exact but for large int64).
#[derive(Clone, Debug)]
pub struct Array {
    pub meta: Meta,
    memory: Vec<u128>,
    first: usize,
}

/// Byte that memory holds before it is written.
const POISON: u128 = u128::from_ne_bytes([0xa5; 16]);

impl Array {
    /// A tensor of undefined values.
    pub fn poisoned(meta: Meta) -> Self {
        let span = meta.span();
        let bytes = (span.end - span.start) as usize * meta.dtype.size();
        let first = (-span.start) as usize * meta.dtype.size();
        Array { memory: vec![POISON; bytes / 16 + 1], first, meta }
    }

    /// A tensor of these strides; `values` are row-major.
    pub fn strided(dtype: DType, shape: &[usize], strides: &[isize], values: &[f64]) -> Self {
        let strides = Strides::from_slice(strides);
        let mut array = Array::poisoned(Meta { dtype, shape: shape.into(), strides });
        assert_eq!(values.len(), array.meta.numel());
        for (i, place) in array.places().into_iter().enumerate() {
            crate::dispatch!(dtype, T => unsafe {
                // SAFETY: the place lies within the memory.
                mutable(&mut array).cast::<T>().offset(place).write(T::from_f64(values[i]))
            });
        }
        array
    }

    /// A row-major tensor.
    pub fn new(dtype: DType, shape: &[usize], values: &[f64]) -> Self {
        Array::strided(dtype, shape, &Shape::from(shape).contiguous(), values)
    }

    /// A row-major tensor of one value, shape (1,).
    pub fn one(dtype: DType, value: f64) -> Self {
        Array::new(dtype, &[1], &[value])
    }

    /// The values, row-major.
    pub fn values(&self) -> Vec<f64> {
        let dtype = self.meta.dtype;
        let read = |place: isize| {
            crate::dispatch!(dtype, T => unsafe {
                // SAFETY: the place lies within the memory.
                self.pointer().cast::<T>().offset(place).read().to_f64()
            })
        };
        self.places().into_iter().map(read).collect()
    }

    /// Its memory, to compare bit by bit.
    pub fn bits(&self) -> &[u128] {
        &self.memory
    }

    /// The address of the first element.
    pub fn address(&mut self) -> *mut u8 {
        mutable(self)
    }

    fn pointer(&self) -> *const u8 {
        // SAFETY: the first element lies within the memory.
        unsafe { self.memory.as_ptr().cast::<u8>().add(self.first) }
    }

    fn places(&self) -> Vec<isize> {
        let mut found = vec![0];
        for (&extent, &stride) in self.meta.shape.iter().zip(&self.meta.strides) {
            let steps = || (0..extent as isize).map(|i| i * stride);
            found = found.iter().flat_map(|&base: &isize| steps().map(move |s| base + s)).collect();
        }
        found
    }
}

/// Infers, prepares and runs an operation; state is updated in `inputs` and answered.
pub fn run(family: &dyn Family, inputs: &mut [Array], width: usize) -> Result<Vec<Array>> {
    run_sharing(family, inputs, width, family.effects().state)
}

/// As [`run`], with these (input, output) pairs in the same memory.
fn run_sharing(
    family: &dyn Family,
    inputs: &mut [Array],
    width: usize,
    shared: &[(usize, usize)],
) -> Result<Vec<Array>> {
    let metas: Vec<Meta> = inputs.iter().map(|a| a.meta.clone()).collect();
    let made = family.infer(&metas.iter().collect::<Vec<_>>())?;
    let io: Vec<&Meta> = metas.iter().chain(&made).collect();
    let kernel = family.cpu(&io, Width(width))?;
    let state = |o: usize| shared.iter().find(|p| p.1 == o).map(|p| p.0);
    let mut outputs: Vec<Array> = made.iter().cloned().map(Array::poisoned).collect();
    let mut scratch = vec![[POISON; 4]; kernel.scratch() / 64 + 2];
    let sources: Vec<*const u8> = inputs.iter_mut().map(|a| mutable(a).cast_const()).collect();
    let target = |(o, a)| state(o).map_or_else(|| mutable(a), |i| sources[i].cast_mut());
    let targets: Vec<*mut u8> = outputs.iter_mut().enumerate().map(target).collect();
    let place = scratch.as_mut_ptr().cast::<u8>();
    // Before the run, which may write over an input.
    let checked = check(family, &*kernel, &sources);
    // SAFETY: memory for these metas; rounded up, the scratch is aligned to 64 bytes.
    let status =
        kernel.run(&unsafe { Io::new(&sources, &targets, place.add(place.align_offset(64))) });
    assert_same(&checked, &status);
    let is_poison = |a: &Array| a.bits().iter().all(|bits| *bits == POISON);
    assert!(status.is_ok() || outputs.iter().all(is_poison), "written in spite of {status:?}");
    status.map(|()| {
        let answer = |(o, a)| state(o).map_or(a, |i| inputs[i].clone());
        outputs.into_iter().enumerate().map(answer).collect()
    })
}

/// What the kernel's check says when it can reach nothing but the inputs that it is to look at.
pub fn check(family: &dyn Family, kernel: &dyn Kernel, inputs: &[*const u8]) -> Result<()> {
    let seen = |(i, &at)| if family.checked().contains(&i) { at } else { std::ptr::null() };
    let inputs: Vec<*const u8> = inputs.iter().enumerate().map(seen).collect();
    // SAFETY: a check looks at nothing else.
    kernel.check(&unsafe { Io::new(&inputs, &[], std::ptr::null_mut()) })
}

/// Asserts that a check found what the run did.
pub fn assert_same(checked: &Result<()>, run: &Result<()>) {
    assert_eq!(format!("{checked:?}"), format!("{run:?}"));
}

fn mutable(array: &mut Array) -> *mut u8 {
    // SAFETY: the first element lies within the memory.
    unsafe { array.memory.as_mut_ptr().cast::<u8>().add(array.first) }
}

/// Runs on 1 to 4 threads, and in place where the family allows it; checks that the results are
/// the same bits, and answers them.
pub fn run_any_width(family: &dyn Family, inputs: &[Array]) -> Result<Vec<Array>> {
    let first = run(family, &mut inputs.to_vec(), 1)?;
    for width in 2..=4 {
        let again = run(family, &mut inputs.to_vec(), width)?;
        let same = first.iter().zip(&again).all(|(a, b)| a.bits() == b.bits());
        assert!(same, "{} differs with {width} threads", family.name());
    }
    for &(i, o) in family.in_place().iter().filter(|(i, o)| inputs[*i].meta == first[*o].meta) {
        let again = run_sharing(family, &mut inputs.to_vec(), 1, &[(i, o)])?;
        let same = first.iter().zip(&again).all(|(a, b)| a.bits() == b.bits());
        assert!(same, "{} differs in the place of input {i}", family.name());
    }
    Ok(first)
}

/// `n` values between -1 and 1 that look random, the same each time.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| draw()).collect()
}

/// Row-major, reversed, stepped and column-major strides for a shape.
pub fn layouts(shape: &[usize]) -> Vec<Strides> {
    let dense = Shape::from(shape).contiguous();
    let backwards: Strides = dense.iter().map(|s| -s).collect();
    let stepped: Strides = dense.iter().map(|s| s * 3).collect();
    let mut turned = dense.clone();
    let mut step = 1;
    for (stride, &extent) in turned.iter_mut().zip(shape) {
        *stride = step;
        step *= extent.max(1) as isize;
    }
    vec![dense, backwards, stepped, turned]
}

/// Asserts that values agree within `tolerance` relative to 1 or their size; NaN equals NaN.
pub fn assert_close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let close = (g - w).abs() <= tolerance * w.abs().max(1.0) || g == w;
        assert!(close || g.is_nan() && w.is_nan(), "element {i}: got {g}, want {w}");
    }
}

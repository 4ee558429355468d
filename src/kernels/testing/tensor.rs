//! Tensors of any layout in guarded memory of their own.
#![allow(unsafe_code)]

use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::ops::Meta;
use crate::shape::{Shape, Strides};

/// Memory aligned like a device's.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Debug)]
struct Line([u8; 64]);

/// The contents of memory before it is written: all one bits (NaN, -1).
const POISON: Line = Line([0xff; 64]);
/// The number of guard lines, which must not be written.
const GUARD: usize = 64;

/// Uninitialised memory, followed by a guard.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory(Vec<Line>);

impl Memory {
    /// Memory of this many bytes.
    pub fn poisoned(bytes: usize) -> Memory {
        Memory(vec![POISON; bytes.div_ceil(64) + GUARD])
    }

    /// The address of the first byte.
    pub fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// Asserts that nothing was written past its end.
    pub fn assert_guarded(&self, what: &str) {
        let guard = &self.0[self.0.len() - GUARD..];
        assert!(guard.iter().all(|line| *line == POISON), "memory behind the {what} was written");
    }
}

/// A tensor whose first element may be anywhere in its memory; equal if all bits are. Values are
/// passed and returned as float64 (exact except for large int64).
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its dtype, shape and strides.
    pub meta: Meta,
    memory: Memory,
    offset: usize,
}

impl Tensor {
    /// A tensor with uninitialised elements.
    pub fn poisoned(meta: Meta) -> Tensor {
        let (span, size) = (meta.span(), meta.dtype.size());
        let memory = Memory::poisoned(span.len() * size);
        Tensor { offset: -span.start as usize * size, meta, memory }
    }

    /// A tensor of these values, row-major.
    pub fn new(meta: Meta, values: &[f64]) -> Tensor {
        let mut tensor = Tensor::poisoned(meta);
        let (start, places) = (tensor.address(), places(&tensor.meta));
        assert_eq!(places.len(), values.len());
        dispatch!(tensor.meta.dtype, T => {
            for (place, value) in places.into_iter().zip(values) {
                // SAFETY: the place is within the span that the memory was allocated for.
                unsafe { *start.cast::<T>().offset(place) = T::from_f64(*value) };
            }
        });
        tensor
    }

    /// A row-major tensor.
    pub fn dense(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
        Tensor::new(Meta::new(dtype, shape), values)
    }

    /// A tensor with these strides; `values` are row-major.
    pub fn strided(dtype: DType, shape: &[usize], strides: &[isize], values: &[f64]) -> Tensor {
        let strides = Strides::from_slice(strides);
        Tensor::new(Meta { dtype, shape: shape.into(), strides }, values)
    }

    /// A tensor of one value, shape (1,).
    pub fn one(dtype: DType, value: f64) -> Tensor {
        Tensor::dense(dtype, &[1], &[value])
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

    /// The address of the first element, for reading.
    pub fn start(&self) -> *const u8 {
        self.memory.0.as_ptr().cast::<u8>().wrapping_add(self.offset)
    }

    /// The address of the first element.
    pub fn address(&mut self) -> *mut u8 {
        self.memory.start().wrapping_add(self.offset)
    }

    /// Asserts that nothing was written past its end.
    pub fn assert_guarded(&self) {
        self.memory.assert_guarded("output");
    }
}

/// The offsets of all elements, row-major, relative to the first.
fn places(meta: &Meta) -> Vec<isize> {
    let mut found = vec![0];
    for (&extent, &stride) in meta.shape.iter().zip(&meta.strides) {
        let steps = || (0..extent as isize).map(|i| i * stride);
        found = found.iter().flat_map(|&base| steps().map(move |s| base + s)).collect();
    }
    found
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

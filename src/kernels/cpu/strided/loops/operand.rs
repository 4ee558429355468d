//! One operand of an elementwise loop: its layout, and its transfer to and from tiles.
#![allow(unsafe_code)]

use super::boxes::Shape2;
use super::convert::{Half, copy};
use super::{BUFFER, Buffer, Isa};
use crate::dtype::{DType, Element};
use crate::shape::{Shape, Strides};
use crate::view::Meta;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Operand {
    shape: Shape,
    /// In bytes.
    strides: Strides,
    size: usize,
    half: Option<Half>,
    constant: Option<Bits>,
}

/// One element, aligned for every type.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct Bits([u8; 8]);

impl Operand {
    /// A tensor whose elements the tile takes unconverted.
    pub fn plain(meta: &Meta) -> Self {
        let size = meta.dtype.size();
        let strides = meta.strides.iter().map(|s| s * size as isize).collect();
        Operand { shape: meta.shape.clone(), strides, size, half: None, constant: None }
    }

    /// A tensor whose elements the tile takes as float32 if they are float16 or bfloat16.
    pub fn widened(meta: &Meta) -> Self {
        let half = match meta.dtype {
            DType::Float16 => Some(Half::Float16),
            DType::BFloat16 => Some(Half::BFloat16),
            _ => None,
        };
        Operand { half, ..Operand::plain(meta) }
    }

    /// A single value for all elements.
    pub fn constant_of<T: Element>(value: T) -> Self {
        let mut bits = Bits([0; 8]);
        // SAFETY: no element is larger than 8 bytes, or more aligned.
        unsafe { bits.0.as_mut_ptr().cast::<T>().write(value) };
        Operand {
            shape: Shape::default(),
            strides: Strides::new(),
            size: size_of::<T>(),
            half: None,
            constant: Some(bits),
        }
    }

    /// The address of the value, if it is a constant.
    pub fn constant(&self) -> Option<*const u8> {
        self.constant.as_ref().map(|bits| bits.0.as_ptr())
    }

    /// Bytes of an element in memory.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of an element in memory or in a tile, whichever is larger.
    pub fn widest(&self) -> usize {
        if self.is_converted() { size_of::<f32>() } else { self.size }
    }

    /// Whether the tile's type differs from the type in memory.
    pub fn is_converted(&self) -> bool {
        self.half.is_some()
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The stride in bytes along the `from_end`-th dimension from the end (the last is the first),
    /// 0 where the operand is broadcast.
    pub fn step(&self, from_end: usize) -> isize {
        match self.shape.rank().checked_sub(from_end) {
            Some(d) if self.shape[d] != 1 => self.strides[d],
            _ => 0,
        }
    }

    /// Gathers a box into contiguous elements of the tile's type.
    ///
    /// # Safety
    /// The box can be read from `from` on with `strides`; `to` has room for it, and does not
    /// overlap it.
    pub unsafe fn load(
        &self,
        isa: Isa,
        from: *const u8,
        strides: [isize; 2],
        shape: Shape2,
        to: *mut u8,
    ) {
        let Some(half) = self.half else {
            // SAFETY: by the caller's promise.
            return unsafe { copy(self.size, from, strides, to, self.dense(shape), shape) };
        };
        if self.is_dense(strides, shape) {
            // SAFETY: by the caller's promise; the box has no gaps.
            return unsafe { half.widen(isa, from, to, shape.len()) };
        }
        let mut raw = Buffer(std::mem::MaybeUninit::uninit());
        debug_assert!(shape.len() * self.size <= BUFFER);
        // SAFETY: by the caller's promise; a box fits a buffer.
        unsafe {
            copy(self.size, from, strides, raw.start(), self.dense(shape), shape);
            half.widen(isa, raw.start(), to, shape.len());
        }
    }

    /// Scatters contiguous elements of the tile's type.
    ///
    /// # Safety
    /// `from` has the box's elements, which can be written from `to` on with `strides`.
    pub unsafe fn store(
        &self,
        isa: Isa,
        from: *const u8,
        to: *mut u8,
        strides: [isize; 2],
        shape: Shape2,
    ) {
        let Some(half) = self.half else {
            // SAFETY: by the caller's promise.
            return unsafe { copy(self.size, from, self.dense(shape), to, strides, shape) };
        };
        if self.is_dense(strides, shape) {
            // SAFETY: by the caller's promise; the box has no gaps.
            return unsafe { half.narrow(isa, from, to, shape.len()) };
        }
        let mut raw = Buffer(std::mem::MaybeUninit::uninit());
        // SAFETY: by the caller's promise; a box fits a buffer.
        unsafe {
            half.narrow(isa, from, raw.start(), shape.len());
            copy(self.size, raw.start(), self.dense(shape), to, strides, shape);
        }
    }

    /// The strides of a box without gaps.
    fn dense(&self, shape: Shape2) -> [isize; 2] {
        [(self.size * shape.columns) as isize, self.size as isize]
    }

    fn is_dense(&self, strides: [isize; 2], shape: Shape2) -> bool {
        let dense = self.dense(shape);
        strides[1] == dense[1] && (shape.rows == 1 || strides[0] == dense[0])
    }
}

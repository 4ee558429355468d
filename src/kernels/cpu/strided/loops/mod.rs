//! The elementwise engine: one function on tiles of contiguous elements becomes a kernel on
//! tensors of any strides, broadcast, converted or updated in place.
//!
//! The tensors are cut into boxes (`boxes`). Where a box of an operand has the layout and type that
//! the function needs, the function works on it in place; otherwise it is gathered into (or
//! scattered from) a small buffer, and widened or narrowed in the process (`operand`).
#![allow(unsafe_code)]

mod boxes;
mod convert;
mod cut;
mod map;
mod operand;

use std::mem::MaybeUninit;
use std::ops::Range;

pub use map::{Map, Tile, identity, map};
pub use operand::Operand;

use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::simd::isa::Isa;
use crate::kernels::{Io, Kernel, Width};
use boxes::{Boxes, Shape2};

/// The size of one operand's buffer; a tile is as many elements as fit. Five buffers stay in the L1
/// cache.
const BUFFER: usize = 4096;

#[repr(C, align(64))]
struct Buffer(MaybeUninit<[u8; BUFFER]>);

impl Buffer {
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// An elementwise kernel on `M` operands: the inputs, then the output.
pub struct Loop<const M: usize> {
    tile: Box<dyn Tile<M>>,
    operands: [Operand; M],
    boxes: Boxes<M>,
    width: usize,
    isa: Isa,
}

/// The contents of a buffer.
#[derive(Clone, Copy)]
struct Held {
    from: *const u8,
    shape: Shape2,
}

/// Addresses shared by threads; each writes its own boxes.
#[derive(Clone, Copy)]
struct Addresses<const M: usize>([*mut u8; M]);

// SAFETY: threads read the inputs and write disjoint boxes of the output.
unsafe impl<const M: usize> Sync for Addresses<M> {}

impl<const M: usize> Loop<M> {
    /// Prepares `tile` for operands that all have (or broadcast to) the output's shape.
    pub fn new(tile: Box<dyn Tile<M>>, operands: [Operand; M], width: Width) -> Self {
        let boxes = Boxes::new(&operands, width.0, BUFFER);
        Loop { tile, operands, boxes, width: width.0, isa: Isa::active() }
    }

    /// Computes the output; `at` are the addresses of the operands' first elements (those of
    /// constants are ignored).
    ///
    /// # Safety
    /// The addresses are valid for the operands that the loop was made for; an input that overlaps
    /// the output has exactly the same elements in the same order.
    ///
    /// # Errors
    /// [`crate::Error::Internal`], where a thread panicked.
    pub unsafe fn run_at(&self, mut at: [*mut u8; M]) -> Result<()> {
        for (at, operand) in at.iter_mut().zip(&self.operands) {
            *at = operand.constant().map_or(*at, |c| c.cast_mut());
        }
        let threads = self.threads();
        if threads == 1 {
            // SAFETY: by the caller's promise.
            unsafe { self.part(at, 0..self.boxes.count()) };
            return Ok(());
        }
        let at = Addresses(at);
        team::ranges(self.boxes.count(), 1, threads, &|range, _| {
            let at = &at;
            // SAFETY: by the caller's promise; the parts' boxes are disjoint.
            unsafe { self.part(at.0, range) };
        })
    }

    /// Computes a range of boxes.
    ///
    /// # Safety
    /// As for [`Loop::run_at`].
    unsafe fn part(&self, at: [*mut u8; M], range: Range<usize>) {
        // A slice must not be written while another one reads the same memory, so an input that is
        // also the output goes through a buffer.
        let alone = at[..M - 1].iter().all(|&input| input != at[M - 1]);
        if !(alone && self.boxes.is_straight()) {
            // SAFETY: as promised.
            return unsafe { self.buffered(at, range) };
        }
        self.boxes.each(range, |offsets, shape| {
            // SAFETY: a box's offsets are within the operands.
            unsafe { self.run_tile(&places(at, offsets), shape) };
        });
    }

    #[inline(never)]
    unsafe fn buffered(&self, at: [*mut u8; M], range: Range<usize>) {
        let mut buffers = [const { Buffer(MaybeUninit::uninit()) }; M];
        let mut held = [Held { from: std::ptr::null(), shape: Shape2::default() }; M];
        self.boxes.each(range, |offsets, shape| {
            let at = places(at, offsets);
            // A straight box can be longer than a buffer.
            for (start, shape) in shape.pieces(self.boxes.capacity()) {
                let at = std::array::from_fn(|k| {
                    at[k].wrapping_offset(start as isize * self.boxes.column.strides[k])
                });
                // SAFETY: as promised; the piece fits the buffers.
                unsafe { self.piece(at, shape, &mut buffers, &mut held) };
            }
        });
    }

    /// Computes one box that fits the buffers.
    unsafe fn piece(
        &self,
        at: [*mut u8; M],
        shape: Shape2,
        buffers: &mut [Buffer; M],
        held: &mut [Held; M],
    ) {
        let output = at[M - 1];
        let moves = self.boxes.direct[M - 1] || !self.operands.iter().any(Operand::is_converted);
        if self.tile.is_identity() && moves && !self.is_uniform(0) && at[0] != output {
            // SAFETY: as promised.
            unsafe { self.move_to(at[0], output, shape) };
            return;
        }
        let mut places = at;
        for k in 0..M - 1 {
            if !self.boxes.direct[k] || at[k] == output {
                // SAFETY: as promised.
                places[k] = unsafe { self.fetch(k, at[k], shape, &mut buffers[k], &mut held[k]) };
            }
        }
        // SAFETY: as promised; the inputs are boxes of contiguous elements.
        unsafe { self.compute(places, shape, &mut buffers[M - 1]) }
    }

    /// The buffer of operand `k` loaded with a box, which may be there already.
    unsafe fn fetch(
        &self,
        k: usize,
        from: *const u8,
        shape: Shape2,
        buffer: &mut Buffer,
        held: &mut Held,
    ) -> *mut u8 {
        let to = buffer.start();
        let repeats = self.is_uniform(k) && shape.len() <= held.shape.len();
        if from != held.from || !(repeats || held.shape == shape) {
            // SAFETY: as promised; the buffer holds the box.
            unsafe { self.load(k, from, shape, to) };
            *held = Held { from, shape };
        }
        to
    }

    /// Computes a box from contiguous inputs.
    unsafe fn compute(&self, mut at: [*mut u8; M], shape: Shape2, buffer: &mut Buffer) {
        if self.boxes.direct[M - 1] {
            // SAFETY: as promised; the output is a box of contiguous elements too.
            return unsafe { self.run_tile(&at, shape) };
        }
        let (output, strides) = (at[M - 1], self.boxes.strides(M - 1));
        if self.tile.is_identity() {
            at[M - 1] = at[0];
        } else {
            at[M - 1] = buffer.start();
            // SAFETY: as promised; the buffer is contiguous and exclusive.
            unsafe { self.run_tile(&at, shape) };
        }
        // SAFETY: as promised.
        unsafe { self.operands[M - 1].store(self.isa, at[M - 1], output, strides, shape) };
    }

    /// Computes contiguous elements.
    #[inline(always)]
    unsafe fn run_tile(&self, at: &[*mut u8; M], shape: Shape2) {
        debug_assert!(at[..M - 1].iter().all(|&input| input != at[M - 1]));
        // SAFETY: by the caller's promise.
        unsafe { self.tile.run(at, shape.len()) }
    }

    /// Copies a box of the first operand to the output.
    unsafe fn move_to(&self, from: *const u8, to: *mut u8, shape: Shape2) {
        // SAFETY: by the caller's promise.
        unsafe {
            if self.boxes.direct[M - 1] {
                return self.load(0, from, shape, to);
            }
            let [from_strides, to_strides] = [0, M - 1].map(|k| self.boxes.strides(k));
            convert::copy(self.operands[0].size(), from, from_strides, to, to_strides, shape);
        }
    }

    /// Gathers a box of operand `k`.
    unsafe fn load(&self, k: usize, from: *const u8, shape: Shape2, to: *mut u8) {
        // SAFETY: by the caller's promise.
        unsafe { self.operands[k].load(self.isa, from, self.boxes.strides(k), shape, to) }
    }

    /// Whether all elements of a box of operand `k` are the same element.
    fn is_uniform(&self, k: usize) -> bool {
        self.boxes.strides(k) == [0, 0]
    }
}

fn places<const M: usize>(at: [*mut u8; M], offsets: &[isize; M]) -> [*mut u8; M] {
    std::array::from_fn(|k| at[k].wrapping_offset(offsets[k]))
}

impl<const M: usize> Kernel for Loop<M> {
    fn threads(&self) -> usize {
        self.width.min(self.boxes.count()).max(1)
    }

    fn run(&self, io: &Io) -> Result<()> {
        let mut next = 0;
        let mut input = |operand: &Operand| {
            if operand.constant().is_some() {
                return std::ptr::null_mut();
            }
            next += 1;
            io.input::<u8>(next - 1).cast_mut()
        };
        let at = std::array::from_fn(|k| match k + 1 == M {
            true => io.output::<u8>(0),
            false => input(&self.operands[k]),
        });
        // SAFETY: the addresses are those of tensors with the operands' metas.
        unsafe { self.run_at(at) }
    }
}

#[cfg(test)]
mod tests;

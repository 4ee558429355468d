//! The products of a step: a few rows by weights that stay the same, packed once a run.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::cpu::matmul::product;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// From this many steps on, packing the weights pays off.
const MANY: usize = 4;

/// Weights as a part of a larger matrix in memory.
#[derive(Clone)]
pub struct Weights {
    /// Their type, their rows and columns, and the steps between these.
    pub meta: Meta,
    /// The number of the input that holds the matrix.
    pub input: usize,
    /// How many elements of it come first.
    pub offset: usize,
}

/// A product for the rows of a block, on one thread.
#[derive(Clone)]
struct Half {
    pack: Option<Arc<dyn Kernel>>,
    /// Bytes of the packed weights.
    bytes: usize,
    multiply: Arc<dyn Kernel>,
}

/// `y = a weights`, for the rows of any block.
pub struct Product {
    weights: Weights,
    /// For a block's number of rows, and for the last one's.
    halves: [Half; 2],
    /// Whether these are the same.
    is_even: bool,
}

impl Product {
    /// The product of contiguous rows, prepared for `steps` runs each.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(blocks: &Blocks, weights: Weights, steps: usize) -> Result<Product> {
        let halves = blocks.for_both(|rows| half(&weights.meta, rows, steps))?;
        let [block, last] = blocks.sizes();
        Ok(Product { weights, halves, is_even: block == last })
    }

    /// The number of columns of the result.
    pub fn columns(&self) -> usize {
        self.weights.meta.shape[1]
    }

    /// The number of columns of its left factor.
    pub fn depth(&self) -> usize {
        self.weights.meta.shape[0]
    }

    /// Bytes of the packed weights.
    pub fn packed(&self) -> usize {
        self.distinct().iter().map(|half| half.bytes).sum()
    }

    /// Bytes of scratch memory for packing or multiplying.
    pub fn scratch(&self) -> usize {
        let of = |half: &Half| {
            half.pack.as_ref().map_or(0, |pack| pack.scratch()).max(half.multiply.scratch())
        };
        self.halves.iter().map(of).max().unwrap_or(0).next_multiple_of(ALIGNMENT)
    }

    fn distinct(&self) -> &[Half] {
        &self.halves[..if self.is_even { 1 } else { 2 }]
    }

    fn weights(&self, io: &Io) -> *const u8 {
        let bytes = self.weights.offset * self.weights.meta.dtype.size();
        io.input::<u8>(self.weights.input).wrapping_add(bytes)
    }

    /// Packs the weights.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// `room` has [`Product::packed`] bytes and `scratch` [`Product::scratch`], both aligned, and
    /// nothing else accesses them.
    pub unsafe fn pack(&self, io: &Io, room: *mut u8, scratch: *mut u8) -> Result<()> {
        let mut at = room;
        for half in self.distinct() {
            if let Some(pack) = &half.pack {
                let (from, to) = ([self.weights(io)], [at]);
                // SAFETY: by the caller's promise; the weights are those it was prepared for.
                pack.run(&unsafe { Io::new(&from, &to, scratch) })?;
            }
            at = at.wrapping_add(half.bytes);
        }
        Ok(())
    }

    /// Computes `y` for the rows of a block, `which` of the two kinds.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// `room` is packed; `a` and `y` have a row for each of the block's, and nothing else accesses
    /// `y` or `scratch`, which has [`Product::scratch`] bytes.
    pub unsafe fn run<W>(
        &self,
        which: usize,
        io: &Io,
        room: *mut u8,
        (a, y): (&[W], &mut [W]),
        scratch: *mut u8,
    ) -> Result<()> {
        let half = &self.halves[which];
        let skipped = if self.is_even || which == 0 { 0 } else { self.halves[0].bytes };
        let weights = match half.pack {
            Some(_) => room.wrapping_add(skipped).cast_const(),
            None => self.weights(io),
        };
        let (from, to) = ([a.as_ptr().cast(), weights], [y.as_mut_ptr().cast()]);
        // SAFETY: by the caller's promise.
        half.multiply.run(&unsafe { Io::new(&from, &to, scratch) })
    }
}

/// The products of a step, whose packed weights stand one behind the other.
pub struct Products {
    /// The first.
    pub first: Product,
    /// The second, if there is one.
    pub second: Option<Product>,
}

impl Products {
    /// The products for the rows of any block, prepared for `steps` runs each.
    ///
    /// # Errors
    /// Those of [`Product::new`].
    pub fn new(
        blocks: &Blocks,
        (first, second): (Weights, Option<Weights>),
        steps: usize,
    ) -> Result<Products> {
        let product = |weights| Product::new(blocks, weights, steps);
        Ok(Products { first: product(first)?, second: second.map(product).transpose()? })
    }

    /// Bytes of all packed weights.
    pub fn packed(&self) -> usize {
        self.first.packed() + self.second.as_ref().map_or(0, Product::packed)
    }

    /// Bytes of scratch memory for packing or multiplying.
    pub fn scratch(&self) -> usize {
        self.first.scratch().max(self.second.as_ref().map_or(0, Product::scratch))
    }

    /// Where the packed weights of the second are, in room for all.
    pub fn behind(&self, room: *mut u8) -> *mut u8 {
        room.wrapping_add(self.first.packed())
    }

    /// Packs all weights.
    ///
    /// # Errors
    /// Those of [`Product::pack`].
    ///
    /// # Safety
    /// As for [`Product::pack`], with room for all.
    pub unsafe fn pack(&self, io: &Io, room: *mut u8, scratch: *mut u8) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            self.first.pack(io, room, scratch)?;
            match &self.second {
                Some(second) => second.pack(io, self.behind(room), scratch),
                None => Ok(()),
            }
        }
    }
}

/// The product for so many rows.
fn half(weights: &Meta, rows: usize, steps: usize) -> Result<Half> {
    let (depth, columns) = (weights.shape[0], weights.shape[1]);
    let [a, y] = [depth, columns].map(|extent| Meta::new(weights.dtype, [rows, extent]));
    let io = [&a, weights, &y];
    let packing = if steps < MANY { None } else { product::packing(io, Width::ONE)? };
    Ok(match packing {
        Some(packing) if packing.input == 1 => Half {
            pack: Some(packing.pack),
            bytes: packing.bytes.next_multiple_of(ALIGNMENT),
            multiply: packing.rest,
        },
        _ => Half { pack: None, bytes: 0, multiply: product::matmul(io, Width::ONE)? },
    })
}

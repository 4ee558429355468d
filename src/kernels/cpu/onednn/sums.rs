//! Sums of partial results, added in a fixed order.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::team;
use crate::kernels::{Kernel, Width, kernel};

/// Elements that a thread adds at a time.
const GRAIN: usize = 4 << 10;

/// The sum of `count` arrays of `len` numbers of float32, which follow one another with this many
/// bytes from one to the next.
pub fn sums(count: usize, bytes: usize, len: usize, width: Width) -> Arc<dyn Kernel> {
    let seats = width.seats(len.div_ceil(GRAIN));
    kernel(0, move |io| {
        team::ranges(len, GRAIN, seats, &|range, _| {
            for start in range.clone().step_by(GRAIN) {
                let block = start..range.end.min(start + GRAIN);
                // SAFETY: the arrays have `len` elements, and the blocks are disjoint.
                unsafe { add(count, bytes, (io.input(0), io.output(0)), block) };
            }
        })
    })
}

/// # Safety
/// `from` has `count` arrays that reach to the end of the block, `to` one.
unsafe fn add(
    count: usize,
    bytes: usize,
    (from, to): (*const f32, *mut f32),
    block: std::ops::Range<usize>,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let to = to.add(block.start);
        let from = |i: usize| from.byte_add(i * bytes).add(block.start);
        to.copy_from_nonoverlapping(from(0), block.len());
        let to = std::slice::from_raw_parts_mut(to, block.len());
        for i in 1..count {
            let more = std::slice::from_raw_parts(from(i), block.len());
            to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
        }
    }
}

//! Sorting along any axis of any strided tensor: rows of sort keys with their places, which are
//! sorted as integers; then the elements are taken from those places.
#![allow(unsafe_code)]

mod keys;
mod rows;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::space;
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::sort::Sort;
use crate::ops::{Family, Meta, only_stored};
use keys::{Entry, Ordered};

/// Prepares x -> (values, indices).
///
/// # Errors
/// Those of [`Shape::axis`](crate::shape::Shape::axis).
pub fn sort(op: &Sort, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let lines = Lines::new(op, io, axis);
    Ok(crate::dispatch!(computed io[0].dtype, T => match lines.length as u64 >> 32 {
        0 => prepare::<T, <T as Ordered>::Entry>(lines, width),
        // More places than a short entry has room for.
        _ => prepare::<T, u128>(lines, width),
    }, else => return Err(only_stored(op.name(), io[0].dtype))))
}

fn prepare<T: Ordered, E: Entry>(lines: Lines, Width(width): Width) -> Arc<dyn Kernel> {
    let room = rows::room::<E>(lines.length, lines.axis.extent);
    let bytes = space::bytes::<E>(room);
    kernel(width * bytes, move |io| {
        team::ranges(lines.others.elements(), 1, width, &|range, seat| {
            let at = io.scratch::<u8>().wrapping_add(seat * bytes);
            // SAFETY: each seat has its own scratch memory.
            let [held, spare] = unsafe { space::arrays::<E, 2>(at, room) };
            let lines = &lines;
            E::Reach::run(
                Isa::active(),
                Part::<T, E> { lines, io, range, held, spare, of: PhantomData },
            );
        })
    })
}

/// The rows of x, of the values and of the indices along the axis.
struct Lines {
    /// The axis of the outputs, and its step in all three.
    axis: Dim<3>,
    /// The extent of the axis of x.
    length: usize,
    descending: bool,
    /// All other dimensions.
    others: Walk<3>,
}

impl Lines {
    fn new(op: &Sort, io: &[&Meta], axis: usize) -> Lines {
        let mut others = dims([io[1], io[0], io[2]]);
        let axis_of = others.remove(axis);
        Lines {
            axis: axis_of,
            length: io[0].shape[axis],
            descending: op.descending,
            others: Walk::new(others),
        }
    }

    /// Sorts one row, which begins at these offsets.
    #[inline(always)]
    fn row<T: Ordered, E: Entry>(&self, io: &Io, at: [isize; 3], held: &mut [E], spare: &mut [E]) {
        let [to_values, from_x, to_indices] = self.axis.strides;
        let from = io.input::<T>(0).wrapping_offset(at[1]);
        // SAFETY: the row has this many elements, and `place` is one of them.
        let element = |place: usize| unsafe { *from.offset(place as isize * from_x) };
        let sorted = if from_x == 1 {
            // SAFETY: as above; written apart, as only this can be vectorised.
            self.sorted(|place| unsafe { *from.add(place) }, held, spare)
        } else {
            self.sorted(element, held, spare)
        };
        let values = io.output::<T>(0).wrapping_offset(at[0]);
        let indices = io.output::<i64>(1).wrapping_offset(at[2]);
        for (i, entry) in (0isize..).zip(sorted) {
            let place = entry.place();
            // SAFETY: the outputs have as many elements, in rows that belong to one thread.
            unsafe {
                *values.offset(i * to_values) = element(place);
                *indices.offset(i * to_indices) = place as i64;
            }
        }
    }

    /// The entries of a row of these elements, in order.
    #[inline(always)]
    fn sorted<'a, T: Ordered, E: Entry>(
        &self,
        element: impl Fn(usize) -> T,
        held: &'a mut [E],
        spare: &'a mut [E],
    ) -> &'a [E] {
        let flip = if self.descending { u64::MAX } else { 0 };
        let entry = |place: usize| E::new((element(place).key() ^ flip) & T::MASK, place);
        rows::first(self.length, self.axis.extent, entry, held, spare)
    }
}

/// The rows of one thread, and its arrays.
struct Part<'a, T, E> {
    lines: &'a Lines,
    io: &'a Io<'a>,
    range: Range<usize>,
    held: &'a mut [E],
    spare: &'a mut [E],
    of: PhantomData<T>,
}

impl<T: Ordered, E: Entry> Body for Part<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        for at in self.lines.others.offsets(self.range) {
            self.lines.row::<T, E>(self.io, at, self.held, self.spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;

    #[test]
    fn keys_have_the_order_of_the_elements() {
        let ascending = [f64::NEG_INFINITY, -2.0, -1e-300, 0.0, 1e-300, 3.0, f64::INFINITY];
        assert!(ascending.is_sorted_by_key(|x| x.key()));
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert!(f64::NAN.key() > f64::INFINITY.key() && (-f64::NAN).key() == f64::NAN.key());
        assert!([i64::MIN, -1, 0, i64::MAX].is_sorted_by_key(|x| x.key()));
        assert!([-128i8, -1, 0, 127].is_sorted_by_key(|x| x.key() & <i8 as Ordered>::MASK));
        assert_eq!(u8::from_f64(3.0).key(), 3);
    }
}

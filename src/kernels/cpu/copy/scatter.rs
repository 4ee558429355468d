//! Rows written at places, and slices at positions, that a tensor holds.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::elements::check_places;
use super::mover;
use crate::device::team;
use crate::error::{Error, Result};
use crate::kernels::cpu::simd::number::Number;
use crate::kernels::cpu::strided::loops::Loop;
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::scatter::ScatterRows;
use crate::ops::tensor_scatter::TensorScatter;
use crate::ops::{Family, Meta, only_stored};
use crate::shape::{Shape, Strides};

/// The least elements of a row that are worth a thread.
const GRAIN: usize = 256;

/// Prepares (x, places, updates) -> y.
///
/// # Errors
/// [`Error::DType`] for types that are not added.
pub fn scatter_rows(op: &ScatterRows, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let rows = Rows::new(op.name(), io, width);
    if op.adds {
        return Ok(crate::dispatch!(wide io[0].dtype,
            T => rows.kernel(|to: &mut T, from: T| *to = to.plus(from)),
            else => return Err(only_stored(op.name(), io[0].dtype))));
    }
    Ok(by_size!(io[0].dtype.size(), T => rows.kernel(|to: &mut T, from: T| *to = from)))
}

struct Rows {
    name: &'static str,
    /// Copies x.
    copy: Loop<2>,
    /// Where the places are, the rows of the updates, and the elements of each row.
    places: Walk<1>,
    updates: Walk<1>,
    elements: Walk<1>,
    /// The number of rows of x.
    count: usize,
    width: usize,
}

impl Rows {
    fn new(name: &'static str, io: &[&Meta], width: Width) -> Rows {
        let of_updates = dims([io[2]]);
        let [places, updates, elements] = [&dims([io[1]])[..], &of_updates[..1], &of_updates[1..]]
            .map(|dims| Walk::new(dims.iter().copied()));
        let copy = mover(io[0], io[3], width);
        Rows { name, copy, places, updates, elements, count: io[0].shape[0], width: width.0 }
    }

    /// Joins each element of an update with what is at its place.
    fn kernel<T: Copy + 'static>(
        self,
        join: impl Fn(&mut T, T) + Send + Sync + 'static,
    ) -> Arc<dyn Kernel> {
        kernel(0, move |io| {
            check_places(self.name, &self.places, self.count, io, self.width)?;
            let at = [io.input::<u8>(0).cast_mut(), io.output::<u8>(0)];
            if at[0] != at[1] {
                // SAFETY: x and y are what the copy was prepared for.
                unsafe { self.copy.run_at(at)? };
            }
            team::ranges(self.elements.elements(), GRAIN, self.width, &|columns, _| {
                self.write(io, columns, &join);
            })
        })
    }

    /// The places, in order.
    fn places(&self, io: &Io) -> impl Iterator<Item = i64> {
        let from = io.input::<i64>(1);
        // SAFETY: the walk is over the places.
        self.places.offsets(0..self.places.elements()).map(move |[at]| unsafe { *from.offset(at) })
    }

    /// Joins some columns of all updates, in their order.
    fn write<T: Copy>(&self, io: &Io, columns: Range<usize>, join: &impl Fn(&mut T, T)) {
        let (length, step) = (self.elements.elements(), self.elements.inner().strides[0]);
        let rows = self.updates.offsets(0..self.updates.elements());
        let pairs = self.places(io).zip(rows);
        if length == 1 {
            // SAFETY: as below.
            return pairs.for_each(|(place, [row])| unsafe {
                join(&mut *io.output::<T>(0).add(place as usize), *io.input::<T>(2).offset(row));
            });
        }
        for (place, [row]) in pairs {
            let mut column = columns.start;
            for ([at], n) in self.elements.runs(columns.clone()) {
                for k in 0..n {
                    // SAFETY: the places were checked, the walks are over the updates, and these
                    // columns belong to one thread.
                    unsafe {
                        let from = io.input::<T>(2).offset(row + at + k as isize * step);
                        join(
                            &mut *io.output::<T>(0).add(place as usize * length + column + k),
                            *from,
                        );
                    }
                }
                column += n;
            }
        }
    }
}

/// Prepares (past, update, start) -> past.
///
/// # Errors
/// Those of [`Shape::axis`].
pub fn tensor_scatter(op: &TensorScatter, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let ([past, update, start], axis) =
        ([io[0], io[1], io[2]], io[0].shape.axis(op.name(), op.axis)?);
    let size = past.dtype.size() as isize;
    let [to, from] = [past, update].map(|of| Meta {
        dtype: past.dtype,
        shape: update.shape[1..].iter().copied().collect::<Shape>(),
        strides: Strides::from_slice(&of.strides[1..]),
    });
    Ok(Arc::new(Scatter {
        name: op.name(),
        count: past.shape[0],
        most: (past.shape[axis] - update.shape[axis]) as i64,
        steps: [past.strides[0] * size, update.strides[0] * size],
        along: past.strides[axis] * size,
        next: if start.shape[0] == 1 { 0 } else { start.strides[0] },
        copy: mover(&from, &to, width),
    }))
}

struct Scatter {
    name: &'static str,
    /// The number of slices.
    count: usize,
    /// The greatest position.
    most: i64,
    /// Bytes from one slice to the next, of past and of the update.
    steps: [isize; 2],
    /// Bytes from one position to the next.
    along: isize,
    /// The step from one slice's position to the next one's.
    next: isize,
    copy: Loop<2>,
}

impl Scatter {
    fn position(&self, io: &Io, slice: usize) -> i64 {
        // SAFETY: there is a position for each slice.
        unsafe { *io.input::<i64>(2).offset(slice as isize * self.next) }
    }
}

impl Kernel for Scatter {
    fn scratch(&self) -> usize {
        self.copy.scratch()
    }

    fn check(&self, io: &Io) -> Result<()> {
        let mut all = (0..self.count).map(|slice| self.position(io, slice));
        let want = || format!("a position from 0 to {}", self.most);
        match all.find(|at| !(0..=self.most).contains(at)) {
            None => Ok(()),
            Some(at) => Err(Error::value(self.name, at, want())),
        }
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        let [past, update] = self.steps;
        (0..self.count as isize).try_for_each(|slice| {
            let at = slice * past + self.position(io, slice as usize) as isize * self.along;
            let to = [io.output::<u8>(0).wrapping_offset(at)];
            let from = [io.input::<u8>(1).wrapping_offset(slice * update)];
            // SAFETY: the metas are those of a slice, and the position was checked.
            self.copy.run(&unsafe { Io::new(&from, &to, io.scratch()) })
        })
    }
}

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
    let join: Join = if op.adds {
        crate::dispatch!(wide io[0].dtype,
            T => joined(|to: T, from: T| to.plus(from)),
            else => return Err(only_stored(op.name(), io[0].dtype)))
    } else {
        by_size!(io[0].dtype.size(), T => joined(|_: T, from: T| from))
    };
    Ok(Rows::new(op.name(), io, width).kernel(join))
}

/// Joins adjacent elements with so many others, which are so many elements apart.
type Join = Box<dyn Fn(*mut u8, *const u8, usize, isize) + Send + Sync>;

fn joined<T: Copy + 'static>(join: impl Fn(T, T) -> T + Send + Sync + 'static) -> Join {
    Box::new(move |to, from, count, step| {
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        for k in 0..count {
            // SAFETY: the caller names elements of the result and of the updates.
            unsafe {
                let to = to.add(k);
                *to = join(*to, *from.offset(k as isize * step));
            }
        }
    })
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
    /// Bytes of an element.
    size: usize,
    width: usize,
}

impl Rows {
    fn new(name: &'static str, io: &[&Meta], width: Width) -> Rows {
        let of_updates = dims([io[2]]);
        let [places, updates, elements] = [&dims([io[1]])[..], &of_updates[..1], &of_updates[1..]]
            .map(|dims| Walk::new(dims.iter().copied()));
        let copy = mover(io[0], io[3], width);
        let (count, size, width) = (io[0].shape[0], io[0].dtype.size(), width.0);
        Rows { name, copy, places, updates, elements, count, size, width }
    }

    /// Joins each element of an update with what is at its place.
    fn kernel(self, join: Join) -> Arc<dyn Kernel> {
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
    fn places(&self, io: &Io) -> impl Iterator<Item = usize> {
        let from = io.input::<i64>(1);
        let places = self.places.offsets(0..self.places.elements());
        // SAFETY: the walk is over the places.
        places.map(move |[at]| unsafe { *from.offset(at) } as usize)
    }

    /// Joins some columns of all updates, in their order. The places were checked, the walks are
    /// over the updates, and these columns belong to one thread.
    fn write(&self, io: &Io, columns: Range<usize>, join: &Join) {
        let (length, step) = (self.elements.elements(), self.elements.inner().strides[0]);
        let to = |at: usize| io.output::<u8>(0).wrapping_add(at * self.size);
        let from = |at: isize| io.input::<u8>(2).wrapping_offset(at * self.size as isize);
        let rows = self.updates.offsets(0..self.updates.elements());
        for (place, [row]) in self.places(io).zip(rows) {
            if length == 1 {
                join(to(place), from(row), 1, 1);
                continue;
            }
            let mut column = columns.start;
            for ([at], n) in self.elements.runs(columns.clone()) {
                join(to(place * length + column), from(row + at), n, step);
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

//! Elements written at places along an axis, and slices at positions, that a tensor holds.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::lines::{Line, Lines};
use super::mover;
use crate::error::{Error, Result};
use crate::kernels::cpu::simd::number::Number;
use crate::kernels::cpu::strided::loops::Loop;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::scatter::{Join, Scatter};
use crate::ops::tensor_scatter::TensorScatter;
use crate::ops::{Family, Meta, only_stored};
use crate::shape::{Shape, Strides};

/// Prepares (x, places, updates) -> y.
///
/// # Errors
/// Those of [`Shape::axis`]; [`Error::DType`] for types that are only replaced.
pub fn scatter(op: &Scatter, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let ([x, places, updates, y], axis) =
        ([io[0], io[1], io[2], io[3]], io[0].shape.axis(op.name(), op.axis)?);
    let lines = Lines::new(op.name(), [updates, places, y], axis);
    let (join, copy) = (joined(op, x)?, mover(x, y, width));
    Ok(kernel(copy.scratch(), move |io| {
        lines.check(io, width.0)?;
        let at = [io.input::<u8>(0).cast_mut(), io.output::<u8>(0)];
        if at[0] != at[1] {
            // SAFETY: x and y are what the copy was prepared for.
            unsafe { copy.run_at(at)? };
        }
        lines.each(width.0, &|line| join(io, line))
    }))
}

/// Joins the elements of a line with those at their places.
type Joined = Box<dyn Fn(&Io, Line) + Send + Sync>;

fn joined(op: &Scatter, x: &Meta) -> Result<Joined> {
    macro_rules! numbers {
        ($join:ident, $has_rows:literal) => {
            crate::dispatch!(wide x.dtype,
                T => at_places::<T, $has_rows>(|at, update| at.$join(update)),
                else => return Err(only_stored(op.name(), x.dtype)))
        };
    }
    Ok(match op.join {
        Join::None => by_size!(x.dtype.size(), T => at_places::<T, true>(|_, update| update)),
        Join::Add => numbers!(plus, true),
        Join::Mul => numbers!(times, false),
        Join::Max => numbers!(larger, false),
        Join::Min => numbers!(smaller, false),
    })
}

/// `HAS_ROWS` says whether adjacent elements of one place have a loop of their own.
fn at_places<T: Copy + 'static, const HAS_ROWS: bool>(
    join: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Joined {
    Box::new(move |io, line| {
        let (y, updates) = (io.output::<T>(0), io.input::<T>(2));
        let visit = |from, to| {
            // SAFETY: the places are within the axis; what meets at one element is in lines that
            // belong to one thread.
            unsafe { *y.offset(to) = join(*y.offset(to), *updates.offset(from)) }
        };
        if HAS_ROWS { line.each(io, visit) } else { line.each_apart(io, visit) }
    })
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
    Ok(Arc::new(Slices {
        name: op.name(),
        count: past.shape[0],
        most: (past.shape[axis] - update.shape[axis]) as i64,
        steps: [past.strides[0] * size, update.strides[0] * size],
        along: past.strides[axis] * size,
        next: if start.shape[0] == 1 { 0 } else { start.strides[0] },
        copy: mover(&from, &to, width),
    }))
}

struct Slices {
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

impl Slices {
    fn position(&self, io: &Io, slice: usize) -> i64 {
        // SAFETY: there is a position for each slice.
        unsafe { *io.input::<i64>(2).offset(slice as isize * self.next) }
    }
}

impl Kernel for Slices {
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

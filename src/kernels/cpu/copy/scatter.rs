//! Slices written at positions that a tensor holds.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::mover;
use crate::error::{Error, Result};
use crate::kernels::cpu::strided::loops::Loop;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::tensor_scatter::TensorScatter;
use crate::ops::{Family, Meta};
use crate::shape::{Shape, Strides};

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

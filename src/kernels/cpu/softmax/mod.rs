//! Softmax, log-softmax and their gradients along any axis: row by row where the axis is innermost
//! in memory, otherwise several adjacent columns at once. Either way the loops vectorise.
#![allow(unsafe_code)]

mod backward;
mod forward;
pub mod row;

use std::ops::Range;
use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::not_float;
use super::space;
use super::walk::{Dim, Walk, dims};
use super::wide::{Port, Wide};
use crate::device::team;
use crate::error::Result;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::{Family, Meta};
use backward::backward;
use forward::forward;
use row::{Buffer, CHUNK};

/// Prepares x -> y, for softmax or its logarithm.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn softmax(op: &Softmax, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    crate::dispatch!(float io[0].dtype,
        T => Ok(forward(io, axis, op.log, Port::of::<T>(), width)),
        else => not_float(op.name(), io[0]))
}

/// Prepares (dy, y) -> dx.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_grad(op: &SoftmaxGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    crate::dispatch!(float io[0].dtype,
        T => Ok(backward(io, axis, op.log, Port::of::<T>(), width)),
        else => not_float(op.name(), io[0]))
}

/// The number of columns computed together.
const COLUMNS: usize = 64;
/// The maximum length of columns that are kept in a buffer during the computation: a tile of them
/// fits into the L2 cache.
const HELD: usize = 1024;

/// The traversal of `N` tensors, the output first.
struct Plan<const N: usize> {
    axis: Dim<N>,
    /// All other dimensions, in the output's memory order.
    others: Walk<N>,
    /// The others except for the innermost, and the innermost, if columns are computed together.
    columns: Option<(Walk<N>, Dim<N>)>,
}

impl<const N: usize> Plan<N> {
    fn new(metas: [&Meta; N], axis: usize) -> Self {
        let mut others = dims(metas);
        let axis = others.remove(axis);
        others.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        let others = Walk::new(others);
        let inner = others.inner();
        let is_outer = axis.strides[0].unsigned_abs() > inner.strides[0].unsigned_abs();
        let wide = is_outer && others.elements() > 0 && inner.extent >= 8;
        Plan { axis, columns: wide.then(|| others.clone().split_inner()), others }
    }

    /// The number of buffered values of a tile: all, unless columns are too long.
    fn room(&self) -> usize {
        match self.columns {
            Some(_) if self.axis.extent <= HELD => self.axis.extent * COLUMNS,
            Some(_) => COLUMNS,
            None => 0,
        }
    }

    fn tasks(&self) -> usize {
        match &self.columns {
            Some((outer, inner)) => outer.elements() * inner.extent.div_ceil(COLUMNS),
            None => self.others.elements(),
        }
    }
}

/// Adjacent columns: the offsets of the first elements, and the steps from column to column.
struct Tile<const N: usize> {
    at: [isize; N],
    steps: [isize; N],
    width: usize,
}

/// The computation of a row along the axis.
trait Job<const N: usize>: Copy + Send + Sync + 'static {
    type Wide: Wide;
    /// Whether columns are kept in a buffer during the computation.
    const HOLDS: bool;
    /// Computes the row whose first elements are at offsets `at`.
    fn row<L: Level>(
        self,
        io: &Io,
        axis: Dim<N>,
        at: [isize; N],
        buffers: &mut [Buffer<Self::Wide>; 2],
    );
    /// Computes the columns of a tile; `held` has room for all its elements, or for one row of
    /// them.
    fn tile<L: Level>(self, io: &Io, axis: Dim<N>, tile: Tile<N>, held: &mut [Self::Wide]);
}

fn prepare<const N: usize, J: Job<N>>(plan: Plan<N>, job: J, width: Width) -> Arc<dyn Kernel> {
    let room = if J::HOLDS { plan.room() } else { 0 };
    let bytes = space::bytes::<J::Wide>([room]);
    kernel(width.0 * bytes, move |io| {
        team::parallel(width.0, &|part| {
            let range = team::share(plan.tasks(), 1, width.0, part);
            // SAFETY: each part has its own scratch memory.
            let [held] =
                unsafe { space::arrays(io.scratch::<u8>().wrapping_add(part * bytes), [room]) };
            isa::run(Isa::active(), Part { plan: &plan, io, job, range, held });
        })
    })
}

struct Part<'a, const N: usize, J: Job<N>> {
    plan: &'a Plan<N>,
    io: &'a Io<'a>,
    job: J,
    range: Range<usize>,
    held: &'a mut [J::Wide],
}

impl<const N: usize, J: Job<N>> Body for Part<'_, N, J> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match &self.plan.columns {
            None => self.rows::<L>(),
            Some((outer, inner)) => self.columns::<L>(outer, inner),
        }
    }
}

impl<const N: usize, J: Job<N>> Part<'_, N, J> {
    #[inline(always)]
    fn rows<L: Level>(self) {
        let mut buffers = [[J::Wide::default(); CHUNK]; 2];
        let (others, axis) = (&self.plan.others, self.plan.axis);
        let steps = others.inner().strides;
        for (mut at, n) in others.runs(self.range) {
            for _ in 0..n {
                self.job.row::<L>(self.io, axis, at, &mut buffers);
                (0..N).for_each(|t| at[t] += steps[t]);
            }
        }
    }

    #[inline(always)]
    fn columns<L: Level>(self, outer: &Walk<N>, inner: &Dim<N>) {
        let tiles = inner.extent.div_ceil(COLUMNS);
        for task in self.range {
            let (o, first) = (task / tiles, task % tiles * COLUMNS);
            let width = COLUMNS.min(inner.extent - first);
            for (mut at, _) in outer.runs(o..o + 1) {
                (0..N).for_each(|t| at[t] += inner.strides[t] * first as isize);
                let tile = Tile { at, steps: inner.strides, width };
                self.job.tile::<L>(self.io, self.plan.axis, tile, self.held);
            }
        }
    }
}

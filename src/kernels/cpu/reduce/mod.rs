//! Reductions over any axes of any strided tensor.
//!
//! The reduced elements of an output are cut into blocks of a length that depends on the shape
//! alone, each block is folded in a fixed order, and partial results are joined as a binary tree.
//! So the result does not depend on the number of threads.

mod fold;
mod part;

use std::ops::Range;

use crate::device::team;
use crate::dtype::{Bool, DType, Element};
use crate::error::Result;
use crate::kernels::cpu::simd::isa::{Isa, Least, Reach};
use crate::kernels::cpu::simd::number;
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims, sorted};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::{Family, Meta, only_stored};
use fold::{Extreme, Fold, Joined, Operand, Ordered, Place, Truth, store, truths};
pub use part::Job;
use part::Part;

/// The number of elements of a block when folding rows.
const ROW_BLOCK: usize = 8192;
/// The number of outputs computed together when folding columns.
const TILE: usize = 1024;
/// The minimum number of elements of a block of a tile.
const TILE_BLOCK: usize = 65536;
/// Shorter rows are folded as columns.
const SHORT: usize = 32;

/// Prepares x -> y for a reduction.
///
/// # Errors
/// Those of [`Shape::axes`](crate::shape::Shape::axes).
pub fn reduce(op: &Reduce, io: [&Meta; 2], width: Width) -> Result<Reducer> {
    let x = io[0];
    let axes = x.shape.axes(op.name(), &op.axes)?;
    let (result, ordered) = (io[1].dtype, op.f.is_place());
    let job = Reduction { x, axes: &axes, result, ordered, width };
    Ok(crate::dispatch!(computed x.dtype, T => job.of::<T>(op.f),
        else => return Err(only_stored(op.name(), x.dtype))))
}

/// A reduction to be prepared.
struct Reduction<'a> {
    x: &'a Meta,
    axes: &'a [usize],
    /// The output's dtype.
    result: DType,
    /// Whether the elements must be indexed in row-major order.
    ordered: bool,
    width: Width,
}

type Value<T> = <T as Operand>::Value;
type Totals<T> = <Value<T> as Ordered>::Total;
/// The instruction sets of the reductions that dominate training.
type Fast<T> = <Value<T> as number::Value>::Folds;

impl Reduction<'_> {
    /// Prepares the reduction of elements of type `T`.
    fn of<T: Operand<Value: Ordered>>(&self, f: ReduceFn) -> Reducer {
        let mean = f == ReduceFn::Mean;
        match f {
            ReduceFn::Sum | ReduceFn::Mean => {
                self.fold::<T, Joined<Totals<T>, false>, Fast<T>>(mean)
            }
            ReduceFn::Max => self.fold::<T, Extreme<true>, Fast<T>>(false),
            ReduceFn::Min => self.fold::<T, Extreme<false>, Fast<T>>(false),
            ReduceFn::Prod => self.fold::<T, Joined<Totals<T>, true>, Fast<T>>(false),
            ReduceFn::Argmax => self.fold::<T, Place<true>, Least>(false),
            ReduceFn::Argmin => self.fold::<T, Place<false>, Least>(false),
            ReduceFn::Any => self.truth::<T, false>(),
            ReduceFn::All => self.truth::<T, true>(),
        }
    }

    fn fold<T: Operand, F: Fold<Value<T>>, C: Reach>(&self, mean: bool) -> Reducer {
        let store = crate::dispatch!(self.result, O => {
            if mean { store::<O, F::Result, true> } else { store::<O, F::Result, false> }
        });
        let access = Access { load: T::load, direct: T::DIRECT, store };
        prepare::<Value<T>, F, C>(self.x, self.axes, self.ordered, access, self.width)
    }

    fn truth<T: Element, const ALL: bool>(&self) -> Reducer {
        let store = crate::dispatch!(self.result, O => store::<O, i64, false>);
        let access = Access { load: truths::<T>, direct: T::DTYPE == DType::Bool, store };
        prepare::<Bool, Truth<ALL>, Least>(self.x, self.axes, self.ordered, access, self.width)
    }
}

/// The order in which a reduction reads its input.
struct Traversal {
    /// The kept dimensions, in the input and in the output.
    kept: Walk<2>,
    /// The reduced dimensions.
    reduced: Walk<1>,
    /// The kept dimensions except for the innermost, and the innermost, if columns are folded.
    columns: Option<(Walk<2>, Dim<2>)>,
    /// The number of reduced elements per block, and of blocks.
    block: usize,
    blocks: usize,
}

impl Traversal {
    /// `ordered`: the reduced elements must be taken in row-major order.
    fn new(x: &Meta, axes: &[usize], ordered: bool) -> Traversal {
        let mut step = 1;
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for (d, dim) in dims([x]).into_iter().enumerate().rev() {
            if axes.contains(&d) {
                reduced.push(dim);
            } else {
                kept.push(Dim { extent: dim.extent, strides: [dim.strides[0], step] });
                step *= dim.extent as isize;
            }
        }
        kept.reverse();
        reduced.reverse();
        let kept = Walk::new(sorted(&kept, 0));
        let in_memory_order = if ordered { reduced.into() } else { sorted(&reduced, 0) };
        Traversal::of(kept, Walk::new(in_memory_order))
    }

    fn of(kept: Walk<2>, reduced: Walk<1>) -> Traversal {
        let columns = is_by_columns(&kept, &reduced).then(|| kept.clone().split_inner());
        let width = columns.as_ref().map(|(_, dim)| dim.extent.clamp(1, TILE));
        let block = width.map_or(ROW_BLOCK, |width| (TILE_BLOCK / width).max(64));
        let blocks = reduced.elements().div_ceil(block).max(1);
        Traversal { kept, reduced, columns, block, blocks }
    }

    /// The number of tasks.
    fn tasks(&self) -> usize {
        let outputs = match &self.columns {
            Some((outer, dim)) => outer.elements() * dim.extent.div_ceil(TILE),
            None => self.kept.elements(),
        };
        outputs * self.blocks
    }

    /// The reduced elements of block `b`.
    fn block(&self, b: usize) -> Range<usize> {
        b * self.block..((b + 1) * self.block).min(self.reduced.elements())
    }
}

/// Whether it is faster to fold many outputs at once, row by row, than one at a time.
fn is_by_columns(kept: &Walk<2>, reduced: &Walk<1>) -> bool {
    let (k, r) = (kept.inner(), reduced.inner());
    if kept.elements() < 2 {
        return false;
    }
    let is_outer = r.extent < 2 || r.strides[0].unsigned_abs() > k.strides[0].unsigned_abs();
    if is_outer { k.extent >= 8 } else { reduced.elements() < SHORT }
}

/// Access to tensors of any dtype by a reduction of values of type `V` to results of type `R`.
struct Access<V, R> {
    /// Reads elements, as `fold::Operand::load`.
    load: unsafe fn(*const u8, isize, isize, &mut [V]),
    /// Whether the elements themselves are of type `V`.
    direct: bool,
    /// Writes a result, as `fold::store`.
    store: unsafe fn(*mut u8, isize, R, usize),
}

/// Prepares the reduction `F` of `x` over `axes` into a row-major output. `ordered`: the reduced
/// elements must be indexed in row-major order.
fn prepare<V: Element, F: Fold<V>, C: Reach>(
    x: &Meta,
    axes: &[usize],
    ordered: bool,
    access: Access<V, F::Result>,
    width: Width,
) -> Reducer {
    Reducer {
        traversal: Traversal::new(x, axes, ordered),
        accumulator: size_of::<F::Acc>(),
        width,
        part: Box::new(move |traversal, io, job, range| {
            let access = &access;
            C::run(Isa::active(), Part::<V, F> { traversal, io, access, job, range });
        }),
    }
}

/// Runs a part of a reduction.
type Run = dyn Fn(&Traversal, &Io, Job, Range<usize>) + Send + Sync;

/// A prepared reduction. A region runs it task by task, on what it has just computed.
pub struct Reducer {
    traversal: Traversal,
    /// Bytes of a partial result.
    pub accumulator: usize,
    width: Width,
    part: Box<Run>,
}

/// How a reduction goes through the memory of a tensor without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Course {
    /// The elements of each output lie side by side. An output is folded by `blocks` tasks, of
    /// `block` elements each.
    Rows {
        /// The number of outputs.
        outputs: usize,
        /// The elements of an output.
        length: usize,
        /// The tasks of an output.
        blocks: usize,
        /// The elements of a task, except the last.
        block: usize,
    },
    /// The outputs lie side by side, row by row. Task `tile * blocks + b` folds `block` rows of
    /// up to `tile` outputs.
    Columns {
        /// The number of rows.
        rows: usize,
        /// The number of outputs.
        columns: usize,
        /// The tasks of a tile.
        blocks: usize,
        /// The rows of a task, except the last.
        block: usize,
        /// The outputs of a tile, except the last.
        tile: usize,
    },
}

impl Reducer {
    /// How it goes through the memory of its input; None unless in one of these ways.
    pub fn course(&self) -> Option<Course> {
        let Traversal { kept, reduced, columns, block, blocks } = &self.traversal;
        let (block, blocks) = (*block, *blocks);
        let Some((outer, dim)) = columns else {
            let length = reduced.elements();
            let outputs = kept.elements();
            let is_dense = reduced.is_flat() && lies(kept.inner(), outputs, [length as isize, 1]);
            return is_dense.then_some(Course::Rows { outputs, length, blocks, block });
        };
        let (rows, columns, tile) = (reduced.elements(), dim.extent, TILE);
        let is_dense = outer.elements() == 1
            && dim.strides == [1, 1]
            && lies(reduced.inner(), rows, [columns as isize]);
        is_dense.then_some(Course::Columns { rows, columns, blocks, block, tile })
    }

    /// Runs these tasks. For [`Job::Take`], output 1 is memory for a partial result of each output.
    pub fn part(&self, io: &Io, job: Job, range: Range<usize>) {
        (self.part)(&self.traversal, io, job, range);
    }

    /// Joins what the tasks have left of each output.
    ///
    /// # Errors
    /// As [`team::parallel`].
    pub fn join(&self, io: &Io) -> Result<()> {
        if self.traversal.blocks == 1 {
            return Ok(());
        }
        let kept = self.traversal.kept.elements();
        team::ranges(kept, 1, self.width.0, &|range, _| self.part(io, Job::Join, range))
    }
}

/// Whether a dimension has all `extent` steps, of these strides, or there is only one.
fn lies<const N: usize>(dim: Dim<N>, extent: usize, strides: [isize; N]) -> bool {
    dim.extent == extent && (extent == 1 || dim.strides == strides)
}

impl Kernel for Reducer {
    fn scratch(&self) -> usize {
        let Traversal { kept, blocks, .. } = &self.traversal;
        if *blocks > 1 { kept.elements() * blocks * self.accumulator } else { 0 }
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (tasks, width) = (self.traversal.tasks(), self.width.0);
        team::ranges(tasks, 1, width, &|range, _| self.part(io, Job::Fold, range))?;
        self.join(io)
    }
}

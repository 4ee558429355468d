//! Reductions over any axes of any strided tensor.
//!
//! The reduced elements of an output are cut into blocks of a length that depends on the shape
//! alone, each block is folded in a fixed order, and partial results are joined as a binary tree.
//! So the result does not depend on the number of threads.

mod dispatch;
mod fold;
mod part;

use std::ops::Range;
use std::sync::Arc;

pub use dispatch::reduce;

use super::isa::{self, Baseline, Body, Isa};
use super::walk::{Dim, Walk, dims};
use crate::device::team;
use crate::dtype::Element;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;
use fold::Fold;
use part::{Job, Part};

/// The number of elements of a block when folding rows.
const ROW_BLOCK: usize = 8192;
/// The number of outputs computed together when folding columns.
const TILE: usize = 1024;
/// The minimum number of elements of a block of a tile.
const TILE_BLOCK: usize = 65536;
/// Shorter rows are folded as columns.
const SHORT: usize = 32;

/// The order in which a reduction reads its input.
struct Plan {
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

impl Plan {
    /// `ordered`: the reduced elements must be taken in row-major order.
    fn new(x: &Meta, axes: &[usize], ordered: bool) -> Plan {
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
        kept.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        if !ordered {
            reduced.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        }
        Plan::of(Walk::new(kept), Walk::new(reduced))
    }

    fn of(kept: Walk<2>, reduced: Walk<1>) -> Plan {
        let columns = is_by_columns(&kept, &reduced).then(|| kept.clone().split_inner());
        let width = columns.as_ref().map(|(_, dim)| dim.extent.clamp(1, TILE));
        let block = width.map_or(ROW_BLOCK, |width| (TILE_BLOCK / width).max(64));
        let blocks = reduced.elements().div_ceil(block).max(1);
        Plan { kept, reduced, columns, block, blocks }
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
pub struct Access<V, R> {
    /// Reads elements, as `fold::Operand::load`.
    pub load: unsafe fn(*const u8, isize, isize, &mut [V]),
    /// Whether the elements themselves are of type `V`.
    pub direct: bool,
    /// Writes a result, as `fold::store`.
    pub store: unsafe fn(*mut u8, isize, R, usize),
}

/// The instruction sets that a body is compiled for.
pub trait Runner: 'static {
    /// Runs the body.
    fn run<B: Body>(body: B) -> B::Output;
}

/// The best instruction set: for the reductions that dominate training.
pub struct Vector;

impl Runner for Vector {
    fn run<B: Body>(body: B) -> B::Output {
        isa::run(Isa::active(), body)
    }
}

/// The baseline instruction set: compiled once, for the other reductions.
pub struct Plain;

impl Runner for Plain {
    fn run<B: Body>(body: B) -> B::Output {
        body.run::<Baseline>()
    }
}

/// Prepares the reduction `F` of `x` over `axes` into a row-major output. `ordered`: the reduced
/// elements must be indexed in row-major order.
pub fn prepare<V: Element, F: Fold<V>, C: Runner>(
    x: &Meta,
    axes: &[usize],
    ordered: bool,
    access: Access<V, F::Result>,
    width: Width,
) -> Arc<dyn Kernel> {
    let plan = Plan::new(x, axes, ordered);
    let partials = if plan.blocks > 1 { plan.kept.elements() * plan.blocks } else { 0 };
    kernel(partials * size_of::<F::Acc>(), move |io| {
        let part = |job: Job, len: usize, part: usize| {
            let range = team::share(len, 1, width.0, part);
            C::run(Part::<V, F> { plan: &plan, io, access: &access, job, range });
        };
        team::parallel(width.0, &|p| part(Job::Fold, plan.tasks(), p))?;
        if plan.blocks == 1 {
            return Ok(());
        }
        team::parallel(width.0, &|p| part(Job::Join, plan.kept.elements(), p))
    })
}

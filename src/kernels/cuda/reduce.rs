//! Reductions over any axes. The elements of an output are cut into chunks of a length that depends
//! on the shape alone; these are folded in a fixed order, and joined in order: the same bits in
//! every run.

use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/reduce.cu");
/// The elements that one thread folds, at most.
const CHUNK: usize = 256;
/// The blocks that there should be at least, where there is enough to do.
const BLOCKS: usize = 2048;
/// An accumulator's size, at most.
const ACCUMULATOR: usize = 24;

/// The program of a reduction.
///
/// # Errors
/// Those of axes.
pub fn program(op: &Reduce, io: &[&Meta]) -> Result<Program> {
    let axes = io[0].shape.axes(op.name(), &op.axes)?;
    let kept: Vec<usize> = (0..io[0].shape.rank()).filter(|d| !axes.contains(d)).collect();
    Ok(folded(op.name(), &fold(op.f, io[0].dtype), io[0], &kept, &axes, io[1].dtype))
}

/// The template that folds values of this dtype.
fn fold(f: ReduceFn, dtype: DType) -> String {
    let wide = computed(dtype);
    let total = if dtype.is_float() { "double" } else { "int64" };
    match f {
        ReduceFn::Sum => format!("Adding<{wide}, {total}>"),
        ReduceFn::Mean => format!("Averaging<{wide}, {total}>"),
        ReduceFn::Prod => format!("Multiplying<{wide}, {total}>"),
        ReduceFn::Max => format!("Finding<{wide}, true>"),
        ReduceFn::Min => format!("Finding<{wide}, false>"),
        ReduceFn::Argmax => format!("Placing<{wide}, true>"),
        ReduceFn::Argmin => format!("Placing<{wide}, false>"),
        ReduceFn::Any => format!("Holding<{wide}, false>"),
        ReduceFn::All => format!("Holding<{wide}, true>"),
    }
}

/// Folds axes of a tensor into a row-major result.
fn folded(
    name: &'static str,
    fold: &str,
    x: &Meta,
    kept: &[usize],
    axes: &[usize],
    to: DType,
) -> Program {
    let (outer, inner) = (Walk::along(kept, &[x]), Walk::along(axes, &[x]));
    let is_by_rows = is_by_rows(x, kept, axes) && inner.count >= 32;
    let chunk = if is_by_rows { rows_chunk(outer.count * inner.count) } else { CHUNK };
    let chunks = inner.count.div_ceil(chunk).max(1);
    let is_whole = chunks == 1;
    let out = if is_whole { to } else { DType::Int64 };
    let mut source = Source::new(name, &[x.dtype], &[out]).with(TEMPLATES);
    let [kept, reduced] = [&outer, &inner].map(|walk| source.walk(walk));
    let [outputs, count, length, number] =
        [outer.count, inner.count, chunk, chunks].map(|size| source.size(size));
    let call = if is_by_rows { "fold_rows" } else { "fold_columns" };
    let result = if is_whole { "g.out0".into() } else { format!("({fold}::Acc *)g.out0") };
    source.line(format!(
        "{call}<{fold}, {is_whole}>(g.in0, {result}, {kept}, {reduced}, {outputs}, {count}, \
         {length}, {number});"
    ));
    let tasks = outer.count * chunks;
    let source = match is_by_rows {
        true => source.waiting().blocks(tasks),
        false => source.blocks(tasks.div_ceil(THREADS as usize)),
    };
    if is_whole {
        return Program::one(source, 1, 1);
    }
    let mut program = Program::default();
    let partial = program.take(outer.count * chunks * ACCUMULATOR);
    let join = joined(name, fold, [outer.count, inner.count, chunks], to);
    program.then(source, &[Place::Input(0), partial]).then(join, &[partial, Place::Output(0, 0)])
}

/// How many of so many elements a block folds: few enough that all multiprocessors have some.
fn rows_chunk(elements: usize) -> usize {
    let threads = THREADS as usize;
    (elements / BLOCKS).next_multiple_of(4 * threads).clamp(4 * threads, CHUNK * threads)
}

/// Whether neighbours in memory are folded into one output, rather than into neighbours.
fn is_by_rows(x: &Meta, kept: &[usize], axes: &[usize]) -> bool {
    let step = |axes: &[usize]| {
        let long = axes.iter().filter(|&&d| x.shape[d] > 1);
        long.map(|&d| x.strides[d].unsigned_abs()).min().unwrap_or(usize::MAX)
    };
    step(axes) <= step(kept)
}

fn joined(name: &'static str, fold: &str, sizes: [usize; 3], to: DType) -> Source {
    let mut source = Source::new(name, &[DType::Int64], &[to]).with(TEMPLATES);
    let [outputs, count, chunks] = sizes.map(|size| source.size(size));
    source.line(format!(
        "join_chunks<{fold}>((const {fold}::Acc *)g.in0, g.out0, {outputs}, {count}, {chunks});"
    ));
    source.waiting().blocks(sizes[0])
}

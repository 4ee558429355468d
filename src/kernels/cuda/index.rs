//! Copying elements by index, and adding them back in the order of the indices.

use std::ops::Range;

use super::check::{Check, Entries};
use super::copy;
use super::program::{Place, Program};
use super::runs::{self, Runs};
use super::source::{Source, THREADS};
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::copy::Fill;
use crate::ops::index::{Gather, GatherElements, GatherElementsGrad, GatherGrad, Places};
use crate::ops::scatter::{Join, Scatter};
use crate::ops::tensor_scatter::TensorScatter;
use crate::ops::{Family, Meta, Scalar};

pub const TEMPLATES: &str = include_str!("c/index.cu");

/// A walk over some axes of a tensor, row-major.
fn along(meta: &Meta, axes: Range<usize>) -> Walk {
    Walk::along(&axes.collect::<Vec<_>>(), &[meta])
}

fn all(meta: &Meta) -> Walk {
    along(meta, 0..meta.shape.rank())
}

/// The product of some extents.
fn extent(meta: &Meta, axes: Range<usize>) -> usize {
    meta.shape[axes].iter().product()
}

/// What is before some axes of a tensor, along them, and behind them.
fn sizes(source: &mut Source, meta: &Meta, axes: Range<usize>) -> String {
    let parts = [0..axes.start, axes.clone(), axes.end..meta.shape.rank()];
    let [before, along, behind] = parts.map(|part| source.size(extent(meta, part)));
    format!("Sizes{{{before}, {along}, {behind}}}")
}

/// The program of (x, indices) -> y.
///
/// # Errors
/// Those of the axis.
pub fn gather(op: &Gather, io: &[&Meta]) -> Result<Program> {
    let (axis, x, y) = op.row_major(io[0], io[2])?;
    let indices = io[1];
    let mut source = Source::new(op.name(), &[x.dtype, indices.dtype], &[y.dtype]).with(TEMPLATES);
    let walks = [along(&x, 0..axis), all(indices), along(&x, axis + 1..x.shape.rank())];
    let [outer, places, inner] = walks.map(|walk| source.walk(&walk));
    let of = sizes(&mut source, &y, axis..axis + indices.shape.rank());
    let (size, step) = (source.size(x.shape[axis]), source.integer(x.strides[axis] as i64));
    source.line(format!(
        "gather(g.in0, g.in1, g.out0, {outer}, {places}, {inner}, {of}, {size}, {step});"
    ));
    let program = Program::one(source.blocks(y.numel().div_ceil(THREADS as usize)), 2, 1);
    let entries = Entries::of(Some(x.shape[axis]), true);
    Ok(program.checked(Check::entries(op.name(), 1, indices, entries), indices))
}

/// The program of (dy, indices) -> dx.
///
/// # Errors
/// Those of shapes that do not fit.
pub fn gather_grad(op: &GatherGrad, io: &[&Meta]) -> Result<Program> {
    let (dy, indices) = (io[0], io[1]);
    let (_, axis) = op.shape(dy, indices)?;
    let axes = axis..axis + indices.shape.rank();
    let others: Vec<usize> = (0..dy.shape.rank()).filter(|d| !axes.contains(d)).collect();
    let lines = others.iter().map(|&d| dy.shape[d]).product();
    let program = if runs::are_worthwhile(lines, indices.numel()) {
        let dx: Vec<usize> = (0..io[2].shape.rank()).filter(|&d| d != axis).collect();
        let [from, to] = [dy.permuted(&others), io[2].permuted(&dx)];
        let runs = Runs {
            name: op.name(),
            entries: indices.clone(),
            size: op.size,
            first: Walk::along(&(0..others.len()).collect::<Vec<_>>(), &[&from, &to]),
            along: along(dy, axes.clone()),
            step: io[2].strides[axis],
            dtypes: [dy.dtype, dy.dtype.wide()],
            join: ADDED,
        };
        summed(op.name(), io[2], |program, sums| runs.add(program, inputs_and(sums)))?
    } else {
        let source = every_entry(op, axes, [dy, indices]).blocks(lines.div_ceil(THREADS as usize));
        summed(op.name(), io[2], |program, sums| program.then(source, &inputs_and(sums)))?
    };
    let entries = Entries::of(Some(op.size), true);
    Ok(program.checked(Check::entries(op.name(), 1, indices, entries), indices))
}

/// The kernel of which each thread goes through all indices.
fn every_entry(op: &GatherGrad, axes: Range<usize>, [dy, indices]: [&Meta; 2]) -> Source {
    let mut source = sums(op.name(), &[dy.dtype, indices.dtype], dy.dtype);
    let walks = [
        along(dy, 0..axes.start),
        all(indices),
        along(dy, axes.clone()),
        along(dy, axes.end..dy.shape.rank()),
    ];
    let [outer, places, middle, inner] = walks.map(|walk| source.walk(&walk));
    let of = sizes(&mut source, dy, axes);
    let (size, wide) = (source.size(op.size), computed(dy.dtype));
    source.line(format!(
        "gather_grad<{wide}>(g.in0, g.in1, g.out0, {outer}, {places}, {middle}, {inner}, {of}, \
         {size});"
    ));
    source
}

/// The first two inputs, and where the result is.
fn inputs_and(to: Place) -> [Place; 3] {
    [Place::Input(0), Place::Input(1), to]
}

/// What adds an element `b` to a sum `a`.
const ADDED: &str = "return a + load(b);";

/// Joins elements with those of a row-major result along an axis, by places of their own.
fn elements(
    name: &'static str,
    axis: usize,
    [from, places, to]: [&Meta; 3],
    dtypes: [DType; 2],
    join: &'static str,
) -> Runs {
    let others: Vec<usize> = (0..from.shape.rank()).filter(|&d| d != axis).collect();
    let is_shared = others.iter().all(|&d| places.shape[d] == 1 || places.strides[d] == 0);
    let own = if is_shared { vec![axis] } else { [&others[..], &[axis]].concat() };
    Runs {
        name,
        entries: places.permuted(&own),
        size: 0,
        first: Walk::along(&others, &[from, to]),
        along: along(from, axis..axis + 1),
        step: to.strides[axis],
        dtypes,
        join,
    }
}

/// A kernel whose result is in the type that elements are computed in.
fn sums(name: &'static str, inputs: &[DType], dtype: DType) -> Source {
    let wide = dtype.wide();
    Source::new(name, inputs, &[wide]).with(TEMPLATES)
}

/// A program that adds to a result that is cleared before; halves are rounded afterwards.
fn summed(
    name: &'static str,
    to: &Meta,
    add: impl FnOnce(Program, Place) -> Program,
) -> Result<Program> {
    let mut program = Program::default();
    let is_half = matches!(to.dtype, DType::Float16 | DType::BFloat16);
    let dtype = if is_half { DType::Float32 } else { to.dtype };
    let wide = Meta::new(dtype, to.shape.clone());
    let sums = if is_half { program.take(wide.bytes()) } else { Place::Output(0, 0) };
    let zero = Fill { value: Scalar::Int(0), shape: to.shape.clone(), dtype };
    let clear = copy::filled(&zero, &wide)?;
    program = add(program.then(clear, &[sums]), sums);
    Ok(match is_half {
        true => program.then(copy::copy(name, &wide, to), &[sums, Place::Output(0, 0)]),
        false => program,
    })
}

/// The program of (x, places) -> y.
///
/// # Errors
/// Those of the axis.
pub fn gather_elements(op: &GatherElements, io: &[&Meta]) -> Result<Program> {
    let (x, places, y) = (io[0], io[1], io[2]);
    let axis = x.shape.axis(op.name(), op.axis)?;
    let mut source = Source::new(op.name(), &[x.dtype, places.dtype], &[y.dtype]).with(TEMPLATES);
    let walks = [along(x, 0..axis), all(places), along(x, axis + 1..x.shape.rank())];
    let [outer, each, inner] = walks.map(|walk| source.walk(&walk));
    let (of, step) =
        (sizes(&mut source, y, axis..axis + 1), source.integer(x.strides[axis] as i64));
    source.line(format!(
        "gather_elements(g.in0, g.in1, g.out0, {outer}, {each}, {inner}, {of}, {step});"
    ));
    let program = Program::one(source.blocks(y.numel().div_ceil(THREADS as usize)), 2, 1);
    Ok(program.checked(within(op.name(), places, x.shape[axis]), places))
}

/// The program of (dy, places) -> dx.
///
/// # Errors
/// Those of the axis.
pub fn gather_elements_grad(op: &GatherElementsGrad, io: &[&Meta]) -> Result<Program> {
    let (dy, places) = (io[0], io[1]);
    let axis = dy.shape.axis(op.name(), op.axis)?;
    let lines = extent(dy, 0..axis) * extent(dy, axis + 1..dy.shape.rank());
    let dtypes = [dy.dtype, dy.dtype.wide()];
    let program = if runs::are_worthwhile(lines, dy.shape[axis]) {
        let runs = elements(op.name(), axis, [dy, places, io[2]], dtypes, ADDED);
        summed(op.name(), io[2], |program, sums| runs.add(program, inputs_and(sums)))?
    } else {
        let mut source = sums(op.name(), &[dy.dtype, places.dtype], dy.dtype);
        let axes: Vec<usize> = (0..dy.shape.rank()).collect();
        let each = source.walk(&Walk::along(&axes, &[dy, places]));
        let (of, size) = (sizes(&mut source, dy, axis..axis + 1), source.size(op.size));
        source.line(format!(
            "gather_elements_grad<{}>(g.in0, g.in1, g.out0, {each}, {of}, {size});",
            computed(dy.dtype)
        ));
        let source = source.blocks(lines.div_ceil(THREADS as usize));
        summed(op.name(), io[2], |program, sums| program.then(source, &inputs_and(sums)))?
    };
    Ok(program.checked(within(op.name(), places, op.size), places))
}

/// Places are counted from the start.
fn within(name: &'static str, places: &Meta, size: usize) -> Check {
    let entries = Entries::of(Some(size), false);
    Check::entries(name, 1, places, entries)
}

/// The program of indices -> int64 positions.
pub fn places(op: &Places, io: &[&Meta]) -> Program {
    let mut source = Source::new(op.name(), &[io[0].dtype], &[DType::Int64]).with(TEMPLATES);
    let size = source.size(if op.wraps { op.size.unwrap_or(0) } else { 0 });
    let axes: Vec<usize> = (0..io[0].shape.rank()).collect();
    let at = source.each(&Walk::along(&axes, &[io[0], io[1]]));
    source.line(format!("    g.out0[{}] = entry_of(g.in0[{}], {size});", at[1], at[0]));
    source.end();
    let entries = Entries::of(op.size, op.wraps);
    Program::one(source, 1, 1).checked(Check::entries(op.name(), 0, io[0], entries), io[0])
}

/// The program of (x, places, updates) -> y.
///
/// # Errors
/// Those of the axis, and of shapes that do not fit.
pub fn scatter(op: &Scatter, io: &[&Meta]) -> Result<Program> {
    let (x, places, updates, y) = (io[0], io[1], io[2], io[3]);
    let axis = x.shape.axis(op.name(), op.axis)?;
    let count = extent(updates, 0..axis) * extent(updates, axis + 1..updates.shape.rank());
    let (to, join) = (Place::Output(0, 0), joined(op.join));
    let program = Program::default().then(copy::copy(op.name(), x, y), &[Place::Input(0), to]);
    let program = if runs::are_worthwhile(count, updates.shape[axis]) {
        let dtypes = [updates.dtype, y.dtype];
        let runs = elements(op.name(), axis, [updates, places, y], dtypes, join);
        runs.add(program, [Place::Input(2), Place::Input(1), to])
    } else {
        let source = every_place(op.name(), axis, [places, updates, y], join);
        let source = source.blocks(count.div_ceil(THREADS as usize));
        program.then(source, &[Place::Input(1), Place::Input(2), to])
    };
    Ok(program.checked(within(op.name(), places, x.shape[axis]), places))
}

/// The kernel of which each thread goes through all places of a line.
fn every_place(
    name: &'static str,
    axis: usize,
    [places, updates, y]: [&Meta; 3],
    join: &'static str,
) -> Source {
    let dtypes = [DType::Int64, updates.dtype];
    let mut source = Source::new(name, &dtypes, &[y.dtype]).with(TEMPLATES);
    // Where the line of each update begins.
    let mut lines = Meta { shape: updates.shape.clone(), ..y.clone() };
    lines.strides[axis] = 0;
    let axes: Vec<usize> = (0..y.shape.rank()).collect();
    let each = source.walk(&Walk::along(&axes, &[places, updates, &lines]));
    let of = sizes(&mut source, updates, axis..axis + 1);
    let step = source.integer(y.strides[axis] as i64);
    source.line(format!(
        "scatter(g.in0, g.in1, g.out0, {each}, {of}, {step}, [](auto a, auto b) {{ {join} }});"
    ));
    source
}

/// What stands where an update `b` meets `a`.
fn joined(join: Join) -> &'static str {
    match join {
        Join::None => "return b;",
        Join::Add => "return plus(load(a), load(b));",
        Join::Mul => "return times(load(a), load(b));",
        Join::Max => "return larger(load(a), load(b));",
        Join::Min => "return smaller(load(a), load(b));",
    }
}

/// The program of (past, update, start), which writes into past.
///
/// # Errors
/// Those of the axis.
pub fn tensor_scatter(op: &TensorScatter, io: &[&Meta]) -> Result<Program> {
    let (past, update, start) = (io[0], io[1], io[2]);
    let axis = past.shape.axis(op.name(), op.axis)?;
    let inputs = [past.dtype, update.dtype, DType::Int64];
    let mut source = Source::new(op.name(), &inputs, &[past.dtype]).with(TEMPLATES);
    let written = Meta { shape: update.shape.clone(), ..past.clone() };
    let axes: Vec<usize> = (0..past.shape.rank()).collect();
    let each = source.walk(&Walk::along(&axes, &[update, &written]));
    let sizes = [update.numel(), extent(update, 1..update.shape.rank())];
    let sizes = sizes.map(|size| source.size(size)).join(", ");
    let own = if start.shape[0] == 1 { 0 } else { start.strides[0] };
    let steps = [own, past.strides[axis]].map(|step| source.integer(step as i64)).join(", ");
    source.line(format!("tensor_scatter(g.in1, g.in2, g.out0, {each}, {sizes}, {steps});"));
    let program = Program::one(source.blocks(update.numel().div_ceil(THREADS as usize)), 3, 1);
    let (name, most) = (op.name(), past.shape[axis] - update.shape[axis]);
    let refusal = move |found: super::check::Found| {
        Error::value(name, found.integer, format!("a position from 0 to {most}"))
    };
    let bad = |source: &mut Source| format!("x < 0 || x > {}", source.size(most));
    Ok(program.checked(Check::new(2, start, bad, refusal), start))
}

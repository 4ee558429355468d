//! Moving data: copies, casts, fills, ranges and concatenation.

use super::check::{Check, Found};
use super::program::{Place, Program};
use super::source::Source;
use super::types::stored;
use super::walk::{Turn, Walk};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::copy::{Arange, Concat, Fill};
use crate::ops::{Family, Meta, Scalar};

const TEMPLATES: &str = include_str!("c/copy.cu");
/// The side of a tile (`c/copy.cu`).
const SIDE: usize = 32;
/// Matrices with fewer rows or columns are copied element by element.
const NARROW: usize = 8;

/// Copies elements into another layout or dtype.
pub fn copied(name: &'static str, from: &Meta, to: &Meta) -> Program {
    Program::one(copy(name, from, to), 1, 1)
}

/// The kernel that copies elements into another layout or dtype.
pub fn copy(name: &'static str, from: &Meta, to: &Meta) -> Source {
    let mut source = Source::new(name, &[from.dtype], &[to.dtype]);
    let walk = Walk::new(&to.shape, &[from, to]);
    if let Some((turn, rest)) =
        walk.turn().filter(|(turn, _)| turn.rows.min(turn.columns) >= NARROW)
    {
        return turned(source, &turn, &rest);
    }
    let places = source.each(&walk);
    let (input, output) = (format!("g.in0[{}]", places[0]), format!("g.out0[{}]", places[1]));
    match from.dtype == to.dtype {
        true => source.line(format!("    {output} = {input};")),
        false => source.line(format!("    convert({output}, {input});")),
    }
    source.end();
    source
}

/// The kernel that copies a matrix whose rows are dense into one whose columns are.
fn turned(source: Source, turn: &Turn, rest: &Walk) -> Source {
    let mut source = source.with(TEMPLATES).waiting();
    let (walk, count) = (source.walk(rest), source.size(rest.count));
    let Turn { rows, columns, down, across } = *turn;
    let of = source.record("Turn", [rows as i64, columns as i64, down as i64, across as i64]);
    source.line(format!("turned(g.in0, g.out0, {walk}, {count}, {of});"));
    source.blocks(rest.count * rows.div_ceil(SIDE) * columns.div_ceil(SIDE))
}

/// Copies elements into another dtype, which must represent all of them.
pub fn converted(name: &'static str, from: &Meta, to: &Meta) -> Program {
    let (source, target) = (from.dtype, to.dtype);
    let refusal = move |found: Found| {
        let got = match source.is_float() {
            true => found.real.to_string(),
            false => found.integer.to_string(),
        };
        Error::dtype(name, [source], format!("values that {target} can hold, not {got}"))
    };
    let bad = format!("!holds<{}>(x)", stored(target));
    copied(name, from, to).checked(Check::new(0, from, |_| bad, refusal), from)
}

/// Fills a tensor with a value.
///
/// # Errors
/// Those of a value that the dtype does not represent.
pub fn fill(op: &Fill, to: &Meta) -> Result<Program> {
    Ok(Program::one(filled(op, to)?, 0, 1))
}

/// The kernel that fills a tensor with a value.
///
/// # Errors
/// As [`fill`].
pub fn filled(op: &Fill, to: &Meta) -> Result<Source> {
    let mut source = Source::new(op.name(), &[], &[op.dtype]);
    let value = crate::dispatch!(float op.dtype, T => source.number(op.element::<T>()?.to_f64()),
        else => crate::dispatch!(op.dtype, T => source.integer(op.element::<T>()?.to_i64())));
    let places = source.each(&Walk::new(&to.shape, &[to]));
    source.line(format!("    convert(g.out0[{}], {value});", places[0]));
    source.end();
    Ok(source)
}

/// Fills a tensor with numbers at equal distances.
///
/// # Errors
/// Those of numbers that the dtype does not represent.
pub fn arange(op: &Arange, to: &Meta) -> Result<Program> {
    let mut source = Source::new(op.name(), &[], &[op.dtype]);
    let [start, step] = match op.dtype.is_int() {
        true => op.integers()?.map(|number| source.integer(number)),
        false => [op.start, op.step].map(|number: Scalar| source.number(number.to_f64())),
    };
    let axes: Vec<usize> = (0..to.shape.rank()).collect();
    let places = source.each(&Walk::along(&axes, &[to]));
    source.line(format!("    convert(g.out0[{}], {start} + i * {step});", places[0]));
    source.end();
    Ok(Program::one(source, 0, 1))
}

/// Copies each tensor to its part of the result.
///
/// # Errors
/// Those of the axis.
pub fn concat(op: &Concat, io: &[&Meta]) -> Result<Program> {
    let (to, inputs) = io.split_last().expect("an operation has an output");
    let axis = to.shape.axis(op.name(), op.axis)?;
    let (mut program, mut at) = (Program::default(), 0);
    for (i, from) in inputs.iter().enumerate().filter(|(_, from)| from.numel() > 0) {
        let part = Meta { dtype: to.dtype, shape: from.shape.clone(), strides: to.strides.clone() };
        let offset = at as isize * to.strides[axis] * to.dtype.size() as isize;
        let places = [Place::Input(i), Place::Output(0, offset)];
        program = program.then(copy(op.name(), from, &part), &places);
        at += from.shape[axis];
    }
    Ok(program)
}

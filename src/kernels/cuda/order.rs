//! Running totals and sorting along an axis.

use super::program::{Place, Program};
use super::runs::MANY;
use super::source::{Source, THREADS};
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::scan::{Scan, ScanFn};
use crate::ops::sort::Sort;
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/order.cu");

fn others(meta: &Meta, axis: usize) -> Vec<usize> {
    (0..meta.shape.rank()).filter(|&d| d != axis).collect()
}

/// Elements that a thread goes through where there are not as many lines as a GPU has threads.
const PART: usize = 256;

/// The program of a running sum, product or maximum: of long lines in parts, of which the totals are
/// found before, and what each of them begins with.
///
/// # Errors
/// Those of the axis.
pub fn scan(op: &Scan, io: &[&Meta]) -> Result<Program> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let length = io[0].shape[axis];
    let walk = Walk::along(&others(io[0], axis), io);
    let (from, to) = (io[0].strides[axis], io[1].strides[axis]);
    let whole = Scanned { op, dtypes: [io[0].dtype, io[1].dtype], walk, length, steps: [from, to] };
    let mut program = Program::default();
    if length < 2 * PART || whole.walk.count >= MANY {
        return Ok(program.then(whole.every(), &[Place::Input(0), Place::Output(0, 0)]));
    }
    let wide = if io[0].dtype.is_float() { DType::Float64 } else { DType::Int64 };
    let parts = Meta::new(wide, [whole.walk.count, length.div_ceil(PART)]);
    let [ends, starts] = [0, 1].map(|_| program.take(parts.bytes()));
    let before = Scan { exclusive: true, reverse: false, axis: 1, ..op.clone() };
    let totals = Scanned {
        op: &before,
        dtypes: [wide; 2],
        walk: Walk::along(&[0], &[&parts, &parts]),
        length: parts.shape[1],
        steps: [1; 2],
    };
    Ok(program
        .then(whole.totals(wide), &[Place::Input(0), ends])
        .then(totals.every(), &[ends, starts])
        .then(whole.begun(wide), &[Place::Input(0), starts, Place::Output(0, 0)]))
}

/// Lines that are gone through.
struct Scanned<'a> {
    op: &'a Scan,
    dtypes: [DType; 2],
    walk: Walk,
    length: usize,
    steps: [isize; 2],
}

impl Scanned<'_> {
    /// The kernel that writes running values, of whole lines.
    fn every(&self) -> Source {
        let [from, to] = self.dtypes;
        self.kernel(&[from], to, self.length.max(1), ["nullptr", "g.out0", "nullptr"])
    }

    /// The kernel that writes the totals of parts.
    fn totals(&self, wide: DType) -> Source {
        self.kernel(&[self.dtypes[0]], wide, PART, ["nullptr", "(double *)nullptr", "g.out0"])
    }

    /// The kernel that writes running values, of parts that begin with some.
    fn begun(&self, wide: DType) -> Source {
        self.kernel(&[self.dtypes[0], wide], self.dtypes[1], PART, ["g.in1", "g.out0", "nullptr"])
    }

    fn kernel(&self, inputs: &[DType], output: DType, part: usize, places: [&str; 3]) -> Source {
        let mut source = Source::new(self.op.name(), inputs, &[output]).with(TEMPLATES);
        let lines = source.walk(&self.walk);
        let sizes = [self.walk.count, self.length, part].map(|size| source.size(size)).join(", ");
        let steps = self.steps.map(|step| source.integer(step as i64)).join(", ");
        let wide = if self.dtypes[0].is_float() { "double" } else { "int64" };
        let (f, unit) = match self.op.f {
            ScanFn::Sum => ("Sum", "0"),
            ScanFn::Prod => ("Product", "1"),
            ScanFn::Max if wide == "double" => {
                ("Greatest", "__longlong_as_double(0xfff0000000000000)")
            }
            ScanFn::Max => ("Greatest", "-9223372036854775807LL - 1"),
        };
        let [starts, out, ends] = places;
        source.line(format!(
            "scan<{wide}, {f}, {}, {}>(g.in0, (const {wide} *){starts}, {out}, ({wide} *){ends}, \
             {lines}, {sizes}, {steps}, {wide}({unit}), {f}());",
            self.op.exclusive, self.op.reverse
        ));
        source.blocks((self.walk.count * self.length.div_ceil(part)).div_ceil(THREADS as usize))
    }
}

/// A sort of lines of elements.
struct Lines<'a> {
    name: &'static str,
    axis: usize,
    x: &'a Meta,
    is_descending: bool,
}

impl Lines<'_> {
    /// The kernel that merges runs of `width`; the places of the first ones are not stored.
    fn merge(&self, width: usize) -> Source {
        let (is_first, places) = (width == 1, DType::Int64);
        let inputs = if is_first { &[self.x.dtype][..] } else { &[self.x.dtype, places][..] };
        let mut source = Source::new(self.name, inputs, &[places]).with(TEMPLATES);
        let walk = Walk::along(&others(self.x, self.axis), &[self.x]);
        let lines = source.walk(&walk);
        let length = self.x.shape[self.axis];
        let sizes = [walk.count, length].map(|size| source.size(size)).join(", ");
        let step = source.integer(self.x.strides[self.axis] as i64);
        let (width, before) = (source.size(width), if is_first { "nullptr" } else { "g.in1" });
        source.line(format!(
            "merge<{}>(g.in0, (const int64 *){before}, g.out0, {lines}, {sizes}, {step}, {width});",
            self.is_descending
        ));
        source.blocks(self.x.numel().div_ceil(THREADS as usize))
    }

    /// The kernel that writes the first elements in order, and their places.
    fn gather(&self, io: &[&Meta], is_one: bool) -> Source {
        let (x, y) = (self.x, io[1]);
        let inputs = if is_one { &[x.dtype][..] } else { &[x.dtype, DType::Int64][..] };
        let mut source = Source::new(self.name, inputs, &[y.dtype, DType::Int64]).with(TEMPLATES);
        let walk = Walk::along(&others(x, self.axis), io);
        let lines = source.walk(&walk);
        let sizes = [walk.count, x.shape[self.axis], y.shape[self.axis]];
        let sizes = sizes.map(|size| source.size(size)).join(", ");
        let steps = [x, y].map(|meta| source.integer(meta.strides[self.axis] as i64)).join(", ");
        let places = if is_one { "nullptr" } else { "g.in1" };
        source.line(format!(
            "sorted(g.in0, (const int64 *){places}, g.out0, g.out1, {lines}, {sizes}, {steps});"
        ));
        source.blocks(y.numel().div_ceil(THREADS as usize))
    }
}

/// The program of x -> (values, indices).
///
/// # Errors
/// Those of the axis.
pub fn sort(op: &Sort, io: &[&Meta]) -> Result<Program> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let (x, is_descending) = (io[0], op.descending);
    let (lines, length) = (Lines { name: op.name(), axis, x, is_descending }, x.shape[axis]);
    let outputs = [Place::Output(0, 0), Place::Output(1, 0)];
    if length <= 1 {
        let places = [&[Place::Input(0)], &outputs[..]].concat();
        return Ok(Program::default().then(lines.gather(io, true), &places));
    }
    let (program, order) = merged(Program::default(), &lines, Place::Input(0));
    Ok(program.then(lines.gather(io, false), &[&[Place::Input(0), order], &outputs[..]].concat()))
}

/// Adds a stable sort of numbers (lines, length), row-major, along the last axis, which has two at
/// least; where their places in order are, int64.
pub fn ascending(program: Program, name: &'static str, x: &Meta, from: Place) -> (Program, Place) {
    merged(program, &Lines { name, axis: 1, x, is_descending: false }, from)
}

/// Adds the merging of runs of two elements at least, until there is one run; where their places are.
fn merged(mut program: Program, lines: &Lines, from: Place) -> (Program, Place) {
    let (x, length) = (lines.x, lines.x.shape[lines.axis]);
    let rooms = [0, 1].map(|_| program.take(x.numel() * size_of::<i64>()));
    let (mut width, mut turn) = (1, 0);
    while width < length {
        let mut places = vec![from];
        places.extend((width > 1).then_some(rooms[1 - turn]));
        places.push(rooms[turn]);
        program = program.then(lines.merge(width), &places);
        (width, turn) = (2 * width, 1 - turn);
    }
    (program, rooms[1 - turn])
}

//! Running totals and sorting along an axis.

use super::program::{Place, Program};
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

/// The program of a running sum, product or maximum.
///
/// # Errors
/// Those of the axis.
pub fn scan(op: &Scan, io: &[&Meta]) -> Result<Program> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let mut source = Source::new(op.name(), &[io[0].dtype], &[io[1].dtype]).with(TEMPLATES);
    let walk = Walk::along(&others(io[0], axis), io);
    let lines = source.walk(&walk);
    let [count, length] = [walk.count, io[0].shape[axis]].map(|size| source.size(size));
    let [from, to] = [0, 1].map(|i| source.integer(io[i].strides[axis] as i64));
    let wide = if io[0].dtype.is_float() { "double" } else { "int64" };
    let (f, unit) = match op.f {
        ScanFn::Sum => ("Sum", "0"),
        ScanFn::Prod => ("Product", "1"),
        ScanFn::Max if wide == "double" => ("Greatest", "__longlong_as_double(0xfff0000000000000)"),
        ScanFn::Max => ("Greatest", "-9223372036854775807LL - 1"),
    };
    source.line(format!(
        "scan<{wide}, {f}, {}, {}>(g.in0, g.out0, {lines}, {count}, {length}, {from}, {to}, \
         {wide}({unit}), {f}());",
        op.exclusive, op.reverse
    ));
    Ok(Program::one(source.blocks(walk.count.div_ceil(THREADS as usize)), 1, 1))
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
    let mut program = Program::default();
    let rooms = match length > 1 {
        true => [0, 1].map(|_| program.take(x.numel() * size_of::<i64>())),
        false => [Place::Scratch(0); 2],
    };
    let (mut width, mut turn) = (1, 0);
    while width < length {
        let mut places = vec![Place::Input(0)];
        places.extend((width > 1).then_some(rooms[1 - turn]));
        places.push(rooms[turn]);
        program = program.then(lines.merge(width), &places);
        (width, turn) = (2 * width, 1 - turn);
    }
    let mut places = vec![Place::Input(0)];
    places.extend((length > 1).then_some(rooms[1 - turn]));
    places.extend([Place::Output(0, 0), Place::Output(1, 0)]);
    Ok(program.then(lines.gather(io, length <= 1), &places))
}

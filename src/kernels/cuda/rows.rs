//! Operations on rows along one axis: softmax, its logarithm, cross entropy and their gradients.

use super::check::{Check, Entries};
use super::program::{Place, Program};
use super::source::Source;
use super::types::{computed, stored};
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::cross_entropy::{SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad, has_labels};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/rows.cu");
const MATRIX: &str = "struct Matrix { int64 down, across; };\n";

/// A kernel with a block for each row of tensors of one shape, along an axis.
fn by_rows(name: &'static str, template: &str, axis: usize, io: &[&Meta]) -> Program {
    let outer: Vec<usize> = (0..io[0].shape.rank()).filter(|&d| d != axis).collect();
    let (walk, length) = (Walk::along(&outer, io), io[0].shape[axis]);
    let (inputs, dtype) = (io.len() - 1, io[0].dtype);
    let mut source = begun(name, &vec![dtype; inputs], &[dtype], length).blocks(walk.count);
    let (rows, count) = (source.walk(&walk), source.size(walk.count));
    let tensors: Vec<String> = (0..inputs).map(|i| format!("g.in{i}")).collect();
    let length = source.size(length);
    let steps: Vec<String> = io.iter().map(|m| source.integer(m.strides[axis] as i64)).collect();
    let (tensors, steps) = (tensors.join(", "), steps.join(", "));
    source.line(format!("{template}({tensors}, g.out0, {rows}, {count}, {length}, {steps});"));
    Program::one(source, inputs, 1)
}

/// A kernel whose blocks share rows of such a length.
fn begun(name: &'static str, inputs: &[DType], outputs: &[DType], length: usize) -> Source {
    Source::new(name, inputs, outputs).with(MATRIX).with(TEMPLATES).sharing(length)
}

/// The program of a softmax or its logarithm.
///
/// # Errors
/// Those of the axis.
pub fn softmax(op: &Softmax, io: &[&Meta]) -> Result<Program> {
    let template = format!("softmax<{}, {}>", computed(io[0].dtype), op.log);
    Ok(by_rows(op.name(), &template, io[0].shape.axis(op.name(), op.axis)?, io))
}

/// The program of its gradient.
///
/// # Errors
/// Those of the axis.
pub fn softmax_grad(op: &SoftmaxGrad, io: &[&Meta]) -> Result<Program> {
    let template = format!("softmax_grad<{}, {}>", computed(io[0].dtype), op.log);
    Ok(by_rows(op.name(), &template, io[0].shape.axis(op.name(), op.axis)?, io))
}

/// The program of a cross entropy.
///
/// # Errors
/// Those of targets that are neither labels nor weights.
pub fn loss(op: &SoftmaxCrossEntropy, io: &[&Meta]) -> Result<Program> {
    let (x, t) = (io[0], io[1]);
    let has_labels = has_labels(op.name(), x, t)?;
    let mut program = Program::default();
    let each = program.take(x.shape[0] * size_of::<f64>());
    let outputs = [DType::Float64, DType::Float64];
    let mut source = begun(op.name(), &[x.dtype, t.dtype], &outputs, x.shape[1]).blocks(x.shape[0]);
    let [count, length] = [0, 1].map(|d| source.size(x.shape[d]));
    let [down, across] = [0, 1].map(|d| source.integer(x.strides[d] as i64));
    let targets_of = |source: &mut Source| targets(source, "g.in1", t, has_labels, op.ignored);
    let targets = targets_of(&mut source);
    source.line(format!(
        "losses<{}>(g.in0, g.out0, g.out1, {count}, {length}, {down}, {across}, {targets});",
        computed(x.dtype)
    ));
    let mut mean = begun(op.name(), &[DType::Float64, t.dtype], &[x.dtype], x.shape[0]);
    let (count, targets) = (mean.size(x.shape[0]), targets_of(&mut mean));
    mean.line(format!("mean_loss(g.in0, g.out0, {count}, {targets});"));
    let places = [Place::Input(0), Place::Input(1), each, Place::Output(1, 0)];
    let program =
        program.then(source, &places).then(mean, &[each, Place::Input(1), Place::Output(0, 0)]);
    Ok(if has_labels { checked(program, op.name(), 1, x, t, op.ignored) } else { program })
}

/// The program of its gradient.
///
/// # Errors
/// As [`loss`].
pub fn loss_grad(op: &SoftmaxCrossEntropyGrad, io: &[&Meta]) -> Result<Program> {
    let (x, t) = (io[1], io[2]);
    let has_labels = has_labels(op.name(), x, t)?;
    let mut inputs: Vec<DType> = io[..4].iter().map(|meta| meta.dtype).collect();
    let mut places: Vec<Place> = (0..4).map(Place::Input).collect();
    let mut program = Program::default();
    let mut counted = "(const double *)0";
    if has_labels && op.ignored.is_some() {
        let count = program.take(size_of::<f64>());
        program = program.then(counting(op, x, t), &[Place::Input(2), count]);
        inputs.push(DType::Float64);
        places.push(count);
        counted = "g.in4";
    }
    places.push(Place::Output(0, 0));
    let mut source = begun(op.name(), &inputs, &[x.dtype], x.shape[1]).blocks(x.shape[0]);
    let [count, length] = [0, 1].map(|d| source.size(x.shape[d]));
    let steps = [x, io[3], io[4]].map(|meta| {
        let [down, across] = [0, 1].map(|d| source.integer(meta.strides[d] as i64));
        format!("Matrix{{{down}, {across}}}")
    });
    let targets = targets(&mut source, "g.in2", t, has_labels, op.ignored);
    source.line(format!(
        "losses_grad<{}>(g.in0, g.in1, g.in3, g.out0, {count}, {length}, {}, {targets}, {counted});",
        computed(x.dtype),
        steps.join(", ")
    ));
    let program = program.then(source, &places);
    Ok(if has_labels { checked(program, op.name(), 2, x, t, op.ignored) } else { program })
}

/// Labels -> the number of rows that count.
fn counting(op: &SoftmaxCrossEntropyGrad, x: &Meta, t: &Meta) -> Source {
    let mut source = begun(op.name(), &[t.dtype], &[DType::Float64], x.shape[0]);
    let rows = source.size(x.shape[0]);
    let targets = targets(&mut source, "g.in0", t, true, op.ignored);
    source.line(format!("count_rows(g.out0, {rows}, {targets});"));
    source
}

fn targets(
    source: &mut Source,
    name: &str,
    t: &Meta,
    has_labels: bool,
    ignored: Option<i64>,
) -> String {
    let step = source.integer(t.strides[0] as i64);
    if has_labels {
        let (ignores, ignored) = (ignored.is_some(), source.integer(ignored.unwrap_or(0)));
        return format!("Labels<{}>{{{name}, {step}, {ignores}, {ignored}}}", stored(t.dtype));
    }
    let across = source.integer(t.strides[1] as i64);
    format!("Weights<{}>{{{name}, {step}, {across}}}", stored(t.dtype))
}

/// Labels are classes without a fraction.
fn checked(
    program: Program,
    name: &'static str,
    input: usize,
    x: &Meta,
    t: &Meta,
    ignored: Option<i64>,
) -> Program {
    let want = "a class index without a fraction";
    let entries = Entries { size: Some(x.shape[1]), wraps: false, ignored, want };
    program.checked(Check::entries(name, input, t, entries), t)
}

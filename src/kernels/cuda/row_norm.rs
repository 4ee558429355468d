//! Layer normalisation and root mean square normalisation of matrices, and their gradients.

use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::{computed, stored};
use crate::dtype::DType;
use crate::ops::layer_norm::{LayerNorm, LayerNormGrad};
use crate::ops::rms_norm::{RmsNorm, RmsNormGrad};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/row_norm.cu");
/// The rows that a block sums up.
const CHUNK: usize = 256;

/// A kernel for the rows of a matrix `x`.
fn begun(name: &'static str, x: &Meta, inputs: &[DType], outputs: &[DType]) -> Source {
    let source = Source::new(name, inputs, outputs).with(TEMPLATES);
    source.sharing(x.shape[1]).blocks(x.shape[0])
}

fn matrix(source: &mut Source, meta: &Meta) -> String {
    let [down, across] = [0, 1].map(|d| source.integer(meta.strides[d] as i64));
    format!("Matrix{{{down}, {across}}}")
}

fn step(source: &mut Source, meta: Option<&Meta>) -> String {
    source.integer(meta.map_or(0, |meta| meta.strides[0] as i64))
}

/// The statistics of rows, which are given under these names; None has no mean.
fn rows(
    source: &mut Source,
    kind: &str,
    mean: Option<(String, &Meta)>,
    inverse: (&str, &Meta),
) -> String {
    let first = mean.as_ref().map_or(format!("({kind} *)0"), |(name, _)| format!("g.{name}"));
    let steps = [mean.map(|(_, meta)| meta), Some(inverse.1)].map(|meta| step(source, meta));
    format!("Rows<{kind}>{{{first}, g.{}, {}}}", inverse.0, steps.join(", "))
}

fn sizes(source: &mut Source, x: &Meta) -> String {
    [0, 1].map(|d| source.size(x.shape[d])).join(", ")
}

/// The program of (x, scale, perhaps bias) -> (y, perhaps mean, inverse).
fn forward(name: &'static str, eps: f64, is_centred: bool, io: &[&Meta]) -> Program {
    let outputs = if is_centred { 3 } else { 2 };
    let inputs = io.len() - outputs;
    let (x, p) = (io[0], io[0].dtype.wide());
    let dtypes = [&[x.dtype][..], &[p, p][..outputs - 1]].concat();
    let mut source = begun(name, x, &vec![x.dtype; inputs], &dtypes);
    let (kind, inverse) = (computed(p), format!("out{}", outputs - 1));
    let mean = is_centred.then(|| ("out1".to_string(), io[inputs + 1]));
    let made = rows(&mut source, kind, mean, (&inverse, io[io.len() - 1]));
    let sizes = sizes(&mut source, x);
    let [from, to] = [x, io[inputs]].map(|meta| matrix(&mut source, meta));
    let given = io[..inputs].get(2).copied();
    let steps = [Some(io[1]), given].map(|meta| step(&mut source, meta)).join(", ");
    let (eps, bias) = (source.number(eps), if given.is_some() { "g.in2" } else { "0" });
    let element = stored(x.dtype);
    source.line(format!(
        "normalize_rows<{kind}, {is_centred}>(g.in0, g.in1, (const {element} *){bias}, g.out0, \
         {made}, {sizes}, {from}, {to}, {steps}, {eps});"
    ));
    Program::one(source, inputs, outputs)
}

/// The program of (dy, x, scale, perhaps mean, inverse) -> (dx, dscale, perhaps dbias). dx may be in
/// the memory of an input, so that it comes last.
fn backward(name: &'static str, is_centred: bool, io: &[&Meta]) -> Program {
    let inputs = if is_centred { 5 } else { 4 };
    let (x, p) = (io[1], io[1].dtype.wide());
    let (kind, element) = (computed(p), stored(x.dtype));
    let dtypes = [vec![x.dtype; 3], vec![p; inputs - 3]].concat();
    let inverse = format!("in{}", inputs - 1);
    let given = |source: &mut Source| {
        let mean = is_centred.then(|| ("in3".to_string(), io[3]));
        rows(source, &format!("const {kind}"), mean, (&inverse, io[inputs - 1]))
    };

    let vectors = io.len() - inputs - 1;
    let mut program = Program::default();
    let chunks = x.shape[0].div_ceil(CHUNK);
    let sums = program.take(2 * chunks * x.shape[1] * size_of::<f64>());
    let mut parts = Source::new(name, &dtypes, &[DType::Float64]).with(TEMPLATES).waiting();
    let (of, extents) = (given(&mut parts), sizes(&mut parts, x));
    let each = [io[0], x].map(|meta| matrix(&mut parts, meta)).join(", ");
    let chunk = parts.size(CHUNK);
    parts.line(format!(
        "chunk_columns_grad<{kind}>(g.in0, g.in1, {of}, (Sums *)g.out0, {extents}, {each}, {chunk});"
    ));
    let parts = parts.blocks(chunks * x.shape[1].div_ceil(32));

    let mut columns = Source::new(name, &[DType::Float64], &vec![x.dtype; vectors]).with(TEMPLATES);
    let extents = [x.shape[1], chunks].map(|size| columns.size(size)).join(", ");
    let made = [io[inputs + 1], io[io.len() - 1]];
    let steps = made.map(|meta| step(&mut columns, Some(meta))).join(", ");
    let bias = if vectors == 2 { "g.out1" } else { "0" };
    columns.line(format!(
        "normalize_columns_grad<{kind}>((const Sums *)g.in0, g.out0, ({element} *){bias}, {extents}, \
         {steps});"
    ));
    let columns = columns.blocks(x.shape[1].div_ceil(THREADS as usize));

    let mut down = begun(name, x, &dtypes, &[x.dtype]);
    let (of, extents) = (given(&mut down), sizes(&mut down, x));
    let each = [io[0], x, io[inputs]].map(|meta| matrix(&mut down, meta)).join(", ");
    let scale = step(&mut down, Some(io[2]));
    down.line(format!(
        "normalize_rows_grad<{kind}, {is_centred}>(g.in0, g.in1, g.in2, {of}, g.out0, {extents}, \
         {each}, {scale});"
    ));
    let from: Vec<Place> = (0..inputs).map(Place::Input).collect();
    let to_sums: Vec<Place> = from.iter().copied().chain([sums]).collect();
    let to_vectors: Vec<Place> =
        [sums].into_iter().chain((1..=vectors).map(|o| Place::Output(o, 0))).collect();
    let to_x: Vec<Place> = from.iter().copied().chain([Place::Output(0, 0)]).collect();
    program.then(parts, &to_sums).then(columns, &to_vectors).then(down, &to_x)
}

/// The program of a layer normalisation.
pub fn layer_norm(op: &LayerNorm, io: &[&Meta]) -> Program {
    forward(op.name(), op.eps.0, true, io)
}

/// The program of its gradient.
pub fn layer_norm_grad(op: &LayerNormGrad, io: &[&Meta]) -> Program {
    backward(op.name(), true, io)
}

/// The program of a root mean square normalisation.
pub fn rms_norm(op: &RmsNorm, io: &[&Meta]) -> Program {
    forward(op.name(), op.eps.0, false, io)
}

/// The program of its gradient.
pub fn rms_norm_grad(op: &RmsNormGrad, io: &[&Meta]) -> Program {
    backward(op.name(), false, io)
}

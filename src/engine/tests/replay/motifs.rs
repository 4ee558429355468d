//! Motifs: operations that belong together, such as one and its gradient, which random steps are
//! unlikely to hit.

mod linalg;
mod networks;
mod recurrent;

use serde_json::{Value, json};

use super::generate::Random;
use super::play::{Look, Player, Step};
use super::*;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};
use crate::ops::index::Places;
use crate::ops::unary::{Saves, UnaryFn};
use crate::ops::{Catalog, Metas};
use crate::view::SliceRange;
use linalg::linear_algebra;
use networks::*;
use recurrent::recurrence;

/// Steps that are tried one by one; valid ones are kept.
pub struct Sketch<'a, 'e> {
    pub random: &'a mut Random,
    pub player: &'a mut Player<'e>,
    /// The number of given tensors, of which the learning rate is the last.
    pub fixed: usize,
    pub steps: Vec<Step>,
}

type Motif = fn(&mut Sketch) -> Option<()>;

const MOTIFS: &[Motif] = &[
    unary,
    binary,
    reduce,
    normalised_rows,
    cross_entropy,
    dropout,
    random,
    convolution,
    max_pool,
    avg_pool,
    attention,
    batch_norm,
    inference,
    statistics,
    folded,
    // More often than others, because it stands for several.
    optimizer,
    optimizer,
    optimizer,
    optimizer,
    product,
    indexed,
    moved,
    selected,
    host,
    packed,
    recurrence,
    linear_algebra,
];

impl Sketch<'_, '_> {
    /// Draws a motif.
    pub fn motif(&mut self) {
        MOTIFS[self.random.below(MOTIFS.len())](self);
    }

    /// Tries a step; returns the number of the first tensor that it made, if it is valid.
    fn step(&mut self, step: Step) -> Option<usize> {
        let made = self.player.tensors.len();
        self.player.step(&step).ok()?;
        self.steps.push(step);
        Some(made)
    }

    fn op(&mut self, attributes: Value, from: &[usize]) -> Option<usize> {
        let kind = serde_json::from_value(attributes).expect("an operation");
        self.step(Step::Op(kind, from.to_vec()))
    }

    fn view(&mut self, of: usize, look: Look) -> Option<usize> {
        self.step(Step::View(of, look))
    }

    /// A random tensor among those that fit.
    fn any(&mut self, fits: impl Fn(&Meta) -> bool) -> Option<usize> {
        let live: Vec<usize> = (0..self.player.tensors.len())
            .filter(|&i| self.player.tensors[i].as_ref().is_some_and(|view| fits(&view.meta)))
            .collect();
        (!live.is_empty()).then(|| self.random.pick(&live))
    }

    fn floats(&mut self) -> Option<usize> {
        self.any(|meta| meta.dtype == DType::Float32 && (1..200).contains(&meta.numel()))
    }

    fn shape(&self, of: usize) -> Vec<usize> {
        self.player.get(of).meta.shape.to_vec()
    }

    fn fill(&mut self, shape: &[usize], value: f64, dtype: &str) -> Option<usize> {
        self.op(json!({"op": "fill", "value": value, "shape": shape, "dtype": dtype}), &[])
    }

    /// Numbers between -1 and 1 of this shape, derived from a tensor of the program.
    fn numbers(&mut self, shape: &[usize]) -> Option<usize> {
        let (from, count) = (self.floats()?, shape.iter().product::<usize>());
        let size = self.player.get(from).meta.numel();
        let small = self.op(json!({"op": "unary", "f": "tanh"}), &[from])?;
        let flat = self.view(small, Look::Reshape(vec![size]))?;
        let times = count.div_ceil(size).max(1);
        let wide = self.view(flat, Look::Expand(vec![times, size]))?;
        let flat = self.view(wide, Look::Reshape(vec![times * size]))?;
        let part = self.view(flat, Look::Slice(vec![SliceRange { start: 0, count, step: 1 }]))?;
        self.view(part, Look::Reshape(shape.to_vec()))
    }

    /// Truth values.
    fn truths(&mut self, shape: &[usize]) -> Option<usize> {
        let x = self.numbers(shape)?;
        self.op(json!({"op": "binary_scalar", "f": "gt", "scalar": 0, "reverse": false}), &[x])
    }

    /// Zeros and ones, which are valid indices for any axis with two entries.
    fn places(&mut self, shape: &[usize]) -> Option<usize> {
        let dtype = self.random.pick(&["int32", "int64", "uint8", "float32"]);
        let truths = self.truths(shape)?;
        self.op(json!({"op": "cast", "dtype": dtype}), &[truths])
    }

    fn is(&mut self) -> bool {
        self.random.below(2) == 0
    }
}

// ---- elements -----------------------------------------------------------------------------------

/// A random unary function, with its parameters if it has any.
fn function(random: &mut Random) -> Value {
    match random.pick(UnaryFn::NAMES) {
        name @ "leakyrelu" => json!({name: {"a": 0.1}}),
        name @ "elu" => json!({name: {"alpha": 0.5}}),
        name @ "selu" => json!({name: {"alpha": 1.6, "gamma": 1.1}}),
        name @ "hardsigmoid" => json!({name: {"alpha": 0.2, "gamma": 0.5}}),
        name @ "polygamma" => json!({name: {"n": 2.0}}),
        name @ "clip" => json!({name: {"min": -0.5, "max": null}}),
        name => json!(name),
    }
}

/// Several functions, since there are so many.
fn unary(s: &mut Sketch) -> Option<()> {
    (0..4).try_for_each(|_| function_of_one(s))
}

fn function_of_one(s: &mut Sketch) -> Option<()> {
    let (f, x) = (function(s.random), s.floats()?);
    let y = s.op(json!({"op": "unary", "f": f}), &[x])?;
    let kind = serde_json::from_value::<UnaryFn>(f.clone()).expect("a function");
    let dy = s.numbers(&s.shape(x))?;
    let saved = match kind.saves() {
        Saves::Nothing => vec![dy],
        Saves::Input => vec![dy, x],
        Saves::Output => vec![dy, y],
    };
    s.op(json!({"op": "unary_grad", "f": f}), &saved).map(drop)
}

fn binary(s: &mut Sketch) -> Option<()> {
    let f = s.random.pick(&[
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "floor_divide",
        "remainder",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and",
        "or",
        "xor",
    ]);
    let whole = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"];
    let bits = s.random.pick(&whole);
    let (places, reverse) = ([s.places(&[3, 4])?, s.places(&[3, 4])?], s.is());
    let ints = [
        s.op(json!({"op": "cast", "dtype": "int32"}), &[places[0]])?,
        s.op(json!({"op": "cast", "dtype": "int32"}), &[places[1]])?,
    ];
    s.op(json!({"op": "binary", "f": bits}), &ints)?;
    let with_scalar = json!({"op": "binary_scalar", "f": bits, "scalar": 3, "reverse": reverse});
    s.op(with_scalar, &ints[..1])?;
    let (a, reverse) = (s.floats()?, s.is());
    let b = s.numbers(&s.shape(a))?;
    s.op(json!({"op": "binary", "f": f}), &[a, b])?;
    s.op(json!({"op": "binary_scalar", "f": f, "scalar": 0.5, "reverse": reverse}), &[a]).map(drop)
}

fn selected(s: &mut Sketch) -> Option<()> {
    let a = s.floats()?;
    let shape = s.shape(a);
    let (condition, b) = (s.truths(&shape)?, s.numbers(&shape)?);
    s.op(json!({"op": "where"}), &[condition, a, b]).map(drop)
}

/// Casts, conversions, copies, a range and a concatenation.
fn moved(s: &mut Sketch) -> Option<()> {
    let (x, dtype) =
        (s.floats()?, s.random.pick(&["float16", "bfloat16", "float64", "int8", "uint16"]));
    s.op(json!({"op": "cast", "dtype": dtype}), &[x])?;
    let places = s.places(&[3, 4])?;
    s.op(json!({"op": "convert", "dtype": dtype}), &[places])?;
    s.op(json!({"op": "copy"}), &[places])?;
    let all = json!({"op": "arange", "start": 1, "step": 0.5, "count": 4, "dtype": "float32"});
    let numbers = s.op(all, &[])?;
    s.op(json!({"op": "concat", "axis": -1}), &[numbers, numbers]).map(drop)
}

struct Reversed;

impl HostFn for Reversed {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Ok(smallvec::smallvec![Meta::new(inputs[0].dtype, inputs[0].shape.clone())])
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        let elements = inputs[0].bytes.chunks_exact(inputs[0].dtype.size()).rev();
        let to = outputs[0].bytes.chunks_exact_mut(inputs[0].dtype.size());
        to.zip(elements).for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }
}

fn host(s: &mut Sketch) -> Option<()> {
    let x = s.floats()?;
    let reversed = Host::new("host", std::sync::Arc::new(Reversed));
    s.step(Step::Op(reversed.into(), vec![x])).map(drop)
}

// ---- rows ---------------------------------------------------------------------------------------

fn reduce(s: &mut Sketch) -> Option<()> {
    let f = s.random.pick(&["sum", "mean", "max", "min", "prod", "argmax", "argmin"]);
    let (x, keepdims) = (s.floats()?, s.is());
    s.op(json!({"op": "reduce", "f": f, "axes": [-1], "keepdims": keepdims}), &[x])?;
    let (truths, f) = (s.truths(&[3, 4])?, s.random.pick(&["any", "all"]));
    s.op(json!({"op": "reduce", "f": f, "axes": [0], "keepdims": keepdims}), &[truths]).map(drop)
}

fn normalised_rows(s: &mut Sketch) -> Option<()> {
    match s.random.below(3) {
        0 => softmax(s),
        1 => layer_norm(s),
        _ => ordered(s),
    }
}

fn ordered(s: &mut Sketch) -> Option<()> {
    let (x, axis, forward) = (s.numbers(&[3, 4])?, s.random.below(2), s.is());
    let (f, count) = (s.random.pick(&["sum", "prod", "max"]), s.is().then_some(2));
    let scan = json!({"op": "scan", "f": f, "axis": axis, "exclusive": s.is(), "reverse": forward});
    let y = s.op(scan, &[x])?;
    let sort = json!({"op": "sort", "axis": axis, "descending": forward, "count": count});
    let values = s.op(sort, &[y])?;
    let (places, size) = (values + 1, s.shape(y)[axis]);
    s.op(json!({"op": "gather_elements", "axis": axis}), &[x, places])?;
    let add = json!({"op": "gather_elements_grad", "axis": axis, "size": size});
    s.op(add, &[values, places])?;
    scattered(s, x)
}

fn scattered(s: &mut Sketch, x: usize) -> Option<()> {
    let (indices, updates) = (s.places(&[2, 4])?, s.numbers(&[2, 4])?);
    let places = s.op(json!({"op": "places", "of": "scatter_nd", "size": 3}), &[indices])?;
    let join = s.random.pick(&["none", "add", "mul", "max", "min"]);
    let write = json!({"op": "scatter", "axis": 0, "join": join});
    s.op(write, &[x, places, updates]).map(drop)
}

fn softmax(s: &mut Sketch) -> Option<()> {
    let (x, log) = (s.floats()?, s.is());
    let y = s.op(json!({"op": "softmax", "axis": -1, "log": log}), &[x])?;
    let dy = s.numbers(&s.shape(x))?;
    s.op(json!({"op": "softmax_grad", "axis": -1, "log": log}), &[dy, y]).map(drop)
}

fn cross_entropy(s: &mut Sketch) -> Option<()> {
    let (x, targets) = (s.numbers(&[4, 3])?, s.places(&[4])?);
    let loss = s.op(json!({"op": "softmax_cross_entropy"}), &[x, targets])?;
    let dloss = s.fill(&[1], 0.5, "float32")?;
    let from = [dloss, x, targets, loss + 1];
    s.op(json!({"op": "softmax_cross_entropy_grad"}), &from).map(drop)
}

fn indexed(s: &mut Sketch) -> Option<()> {
    let (x, places) = (s.numbers(&[3, 4])?, s.places(&[2, 2])?);
    let y = s.op(json!({"op": "gather", "axis": 0}), &[x, places])?;
    s.op(json!({"op": "gather_grad", "axis": 0, "size": 3}), &[y, places])?;
    for _ in 0..3 {
        let name = s.random.pick(&Places::names());
        let (of, wraps) = (name.trim_end_matches("_places"), s.is());
        s.op(json!({"op": "places", "of": of, "size": 2, "wraps": wraps}), &[places])?;
    }
    Some(())
}

// ---- random numbers -----------------------------------------------------------------------------

fn dropout(s: &mut Sketch) -> Option<()> {
    let x = s.floats()?;
    let y = s.op(json!({"op": "dropout", "ratio": 0.4}), &[x])?;
    let dy = s.numbers(&s.shape(x))?;
    s.op(json!({"op": "dropout_grad", "ratio": 0.4}), &[dy, y + 1]).map(drop)
}

fn random(s: &mut Sketch) -> Option<()> {
    let dist = s.random.pick(&[
        json!({"uniform": {"low": -1, "high": 1}}),
        json!({"normal": {"mean": 0, "std": 1}}),
        json!({"bernoulli": {"p": 0.5}}),
    ]);
    let drawn = json!({"op": "random", "dist": dist, "shape": [3, 4], "dtype": "float32"});
    s.op(drawn, &[]).map(drop)
}

//! Operations that belong together, such as one and its gradient: what a random step cannot guess.

use serde_json::{Value, json};

use super::generate::Random;
use super::play::{Look, Player, Step};
use super::*;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};
use crate::ops::packed::{Pack, Packed};
use crate::ops::unary::{Saves, UnaryFn};
use crate::ops::{Metas, Width};
use crate::view::SliceRange;

/// Steps that are tried one by one; those that fit are kept.
pub struct Sketch<'a, 'e> {
    pub random: &'a mut Random,
    pub player: &'a mut Player<'e>,
    /// The tensors that are given, the learning rate last.
    pub fixed: usize,
    pub steps: Vec<Step>,
}

type Motif = fn(&mut Sketch) -> Option<()>;

const MOTIFS: &[Motif] = &[
    unary,
    binary,
    reduce,
    softmax,
    cross_entropy,
    dropout,
    random,
    convolution,
    max_pool,
    avg_pool,
    batch_norm,
    inference,
    statistics,
    folded,
    adam,
    adagrad,
    rmsprop,
    momentum,
    product,
    indexed,
    moved,
    selected,
    host,
    packed,
];

impl Sketch<'_, '_> {
    /// Draws a motif.
    pub fn motif(&mut self) {
        MOTIFS[self.random.below(MOTIFS.len())](self);
    }

    /// The number of the first tensor that a step made, if it fits.
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

    /// One of the tensors that fit.
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

    /// Numbers between -1 and 1 of this shape, made of a tensor of the program's.
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

    /// Zeros and ones, which are places in any axis of two entries.
    fn places(&mut self, shape: &[usize]) -> Option<usize> {
        let dtype = self.random.pick(&["int32", "int64", "uint8", "float32"]);
        let truths = self.truths(shape)?;
        self.op(json!({"op": "cast", "dtype": dtype}), &[truths])
    }

    fn is(&mut self) -> bool {
        self.random.below(2) == 0
    }
}

// ---- elements ------------------------------------------------------------------------------------

/// A function of one variable, with parameters if it has any.
fn function(random: &mut Random) -> Value {
    match random.pick(UnaryFn::NAMES) {
        name @ "leakyrelu" => json!({name: {"a": 0.1}}),
        name @ "elu" => json!({name: {"alpha": 0.5}}),
        name @ "selu" => json!({name: {"alpha": 1.6, "gamma": 1.1}}),
        name @ "hardsigmoid" => json!({name: {"alpha": 0.2, "gamma": 0.5}}),
        name @ "clip" => json!({name: {"min": -0.5, "max": null}}),
        name => json!(name),
    }
}

fn unary(s: &mut Sketch) -> Option<()> {
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

/// Elements as they are, or as another dtype, side by side, in order.
fn moved(s: &mut Sketch) -> Option<()> {
    let (x, dtype) = (s.floats()?, s.random.pick(&["float16", "bfloat16", "float64", "int8"]));
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

// ---- rows ----------------------------------------------------------------------------------------

fn reduce(s: &mut Sketch) -> Option<()> {
    let f = s.random.pick(&["sum", "mean", "max", "min", "prod", "argmax", "argmin"]);
    let (x, keepdims) = (s.floats()?, s.is());
    s.op(json!({"op": "reduce", "f": f, "axes": [-1], "keepdims": keepdims}), &[x])?;
    let (truths, f) = (s.truths(&[3, 4])?, s.random.pick(&["any", "all"]));
    s.op(json!({"op": "reduce", "f": f, "axes": [0], "keepdims": keepdims}), &[truths]).map(drop)
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
    let of = s.random.pick(&["onehot", "scatter_elements"]);
    s.op(json!({"op": "places", "of": of, "size": 2}), &[places]).map(drop)
}

// ---- random numbers ------------------------------------------------------------------------------

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

// ---- images --------------------------------------------------------------------------------------

fn convolution(s: &mut Sketch) -> Option<()> {
    let (groups, stride) = (1 + s.random.below(2), 1 + s.random.below(2));
    let geometry = json!({"stride": [stride, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1],
                          "groups": groups});
    let with = |name, more| joined([json!({"op": name}), geometry.clone(), more]);
    let (x, w) = (s.numbers(&[2, 2, 4, 4])?, s.numbers(&[4, 2 / groups, 3, 3])?);
    let b = s.numbers(&[4])?;
    let from = &[x, w, b][..2 + s.random.below(2)];
    let y = s.op(with("conv2d", json!({})), from)?;
    let dy = s.numbers(&s.shape(y))?;
    let dx = s.op(with("conv2d_grad_input", json!({"size": [4, 4]})), &[dy, w])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[dx])?;
    s.op(with("conv2d_grad_weight", json!({"kernel": [3, 3]})), &[dy, x])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[y]).map(drop)
}

/// One object of several.
fn joined<const N: usize>(parts: [Value; N]) -> Value {
    parts.iter().flat_map(|part| part.as_object().expect("an object").clone()).collect()
}

fn window() -> Value {
    json!({"kernel": [2, 2], "stride": [2, 1], "padding": [0, 1, 0, 1]})
}

fn max_pool(s: &mut Sketch) -> Option<()> {
    let x = s.numbers(&[2, 2, 4, 4])?;
    let y = s.op(joined([json!({"op": "max_pool2d"}), window()]), &[x])?;
    let dy = s.numbers(&s.shape(y))?;
    let gradient = json!({"op": "max_pool2d_grad", "size": [4, 4]});
    s.op(joined([gradient, window()]), &[dy, y + 1]).map(drop)
}

fn avg_pool(s: &mut Sketch) -> Option<()> {
    let (x, padded) = (s.numbers(&[2, 2, 4, 4])?, s.is());
    let padding = json!({"count_include_pad": padded});
    let y = s.op(joined([json!({"op": "avg_pool2d"}), window(), padding.clone()]), &[x])?;
    let dy = s.numbers(&s.shape(y))?;
    let gradient = json!({"op": "avg_pool2d_grad", "size": [4, 4]});
    s.op(joined([gradient, window(), padding]), &[dy]).map(drop)
}

// ---- normalisation -------------------------------------------------------------------------------

/// x, scale and bias, of two channels.
fn normalised(s: &mut Sketch) -> Option<[usize; 3]> {
    Some([s.numbers(&[3, 2, 2, 2])?, s.numbers(&[2])?, s.numbers(&[2])?])
}

fn batch_norm(s: &mut Sketch) -> Option<()> {
    let [x, scale, bias] = normalised(s)?;
    let y = s.op(json!({"op": "batch_norm", "eps": 1e-5}), &[x, scale, bias])?;
    let dy = s.numbers(&[3, 2, 2, 2])?;
    let from = [dy, x, scale, y + 1, y + 2];
    s.op(json!({"op": "batch_norm_grad", "eps": 1e-5}), &from)?;
    let running = s.fill(&[2], 0.5, "float32")?;
    let average = json!({"op": "running_average", "momentum": 0.1, "factor": 1.5});
    s.op(average, &[running, y + 1])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[y]).map(drop)
}

fn inference(s: &mut Sketch) -> Option<()> {
    let [x, scale, bias] = normalised(s)?;
    let (mean, var) = (s.numbers(&[2])?, s.fill(&[2], 0.7, "float32")?);
    let from = [x, scale, bias, mean, var];
    s.op(json!({"op": "batch_norm_inference", "eps": 1e-5}), &from)?;
    let dy = s.numbers(&[3, 2, 2, 2])?;
    let gradient = json!({"op": "batch_norm_inference_grad", "eps": 1e-5});
    s.op(gradient, &[dy, x, scale, mean, var]).map(drop)
}

fn statistics(s: &mut Sketch) -> Option<()> {
    let ([x, scale, bias], relu, adds) = (normalised(s)?, s.is(), s.is());
    let mean = s.op(json!({"op": "batch_norm_statistics", "eps": 1e-5}), &[x, scale, bias])?;
    let [var, factor, term] = [mean + 1, mean + 2, mean + 3];
    let from = [x, mean, factor, term, x];
    let normalize = json!({"op": "normalize", "adds": adds, "relu": relu});
    s.op(normalize, &from[..4 + usize::from(adds)])?;
    let dy = s.numbers(&[3, 2, 2, 2])?;
    let gradient = json!({"op": "batch_norm_relu_grad", "eps": 1e-5});
    s.op(gradient, &[dy, x, scale, mean, var, factor, term]).map(drop)
}

fn folded(s: &mut Sketch) -> Option<()> {
    let (w, scale, bias) = (s.numbers(&[2, 3])?, s.numbers(&[2])?, s.numbers(&[2])?);
    let (mean, var) = (s.numbers(&[2])?, s.fill(&[2], 0.7, "float32")?);
    s.op(json!({"op": "batch_norm_factor", "eps": 1e-5}), &[scale, var])?;
    let fold = json!({"op": "fold_batch_norm", "eps": 1e-5, "axis": 0});
    s.op(fold, &[w, scale, bias, mean, var]).map(drop)
}

// ---- updates -------------------------------------------------------------------------------------

/// A parameter, a gradient of its shape, and the learning rate.
fn updated(s: &mut Sketch) -> Option<[usize; 3]> {
    let parameter = s.fixed - 2;
    let gradient = s.numbers(&s.shape(parameter))?;
    Some([parameter, gradient, s.fixed - 1])
}

fn state(s: &mut Sketch) -> Option<usize> {
    let shape = s.shape(s.fixed - 2);
    s.fill(&shape, 0.25, "float32")
}

fn ones(s: &mut Sketch, value: f64) -> Option<usize> {
    s.fill(&[1], value, "float32")
}

/// The moments and hyperparameters of Adam (and whether they decay) behind its first three inputs.
fn moments(s: &mut Sketch) -> Option<Vec<usize>> {
    let mut all = vec![state(s)?, state(s)?];
    for value in [0.9, 0.99, 1e-8] {
        all.push(ones(s, value)?);
    }
    all.push(s.fill(&[1], 2.0, "int32")?);
    all.push(ones(s, 0.01)?);
    Some(all)
}

fn adam(s: &mut Sketch) -> Option<()> {
    let (first, rest, decoupled) = (updated(s)?, moments(s)?, s.is());
    let update = json!({"op": "adam", "decoupled": decoupled, "weight_decay": true});
    s.op(update, &[&first[..], &rest].concat()).map(drop)
}

fn adagrad(s: &mut Sketch) -> Option<()> {
    let (first, history, eps) = (updated(s)?, state(s)?, ones(s, 1e-8)?);
    let update = json!({"op": "adagrad", "weight_decay": false});
    s.op(update, &[&first[..], &[history, eps]].concat()).map(drop)
}

fn rmsprop(s: &mut Sketch) -> Option<()> {
    let (first, average) = (updated(s)?, state(s)?);
    let (rho, eps) = (ones(s, 0.9)?, ones(s, 1e-8)?);
    let update = json!({"op": "rmsprop", "weight_decay": false});
    s.op(update, &[&first[..], &[average, rho, eps]].concat()).map(drop)
}

fn momentum(s: &mut Sketch) -> Option<()> {
    let (first, buffer, nesterov) = (updated(s)?, state(s)?, s.is());
    let (decay, momentum, dampening) = (ones(s, 0.01)?, ones(s, 0.9)?, ones(s, 0.0)?);
    let update = json!({"op": "sgd", "momentum": true, "nesterov": nesterov, "weight_decay": true});
    s.op(update, &[&first[..], &[decay, buffer, momentum, dampening]].concat()).map(drop)
}

// ---- products ------------------------------------------------------------------------------------

/// Products with what may follow them, and an update whose gradient is a product.
fn product(s: &mut Sketch) -> Option<()> {
    let (a, b, c) = (s.numbers(&[4, 3])?, s.numbers(&[3, 5])?, s.numbers(&[5])?);
    let y = s.op(json!({"op": "matmul"}), &[a, b])?;
    let sum = s.op(json!({"op": "binary", "f": "add"}), &[y, c])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[sum])?;
    s.op(json!({"op": "matmul_add"}), &[a, b, c])?;
    let (weight, history, eps) =
        (s.numbers(&[4, 5])?, s.fill(&[4, 5], 0.25, "float32")?, ones(s, 1e-8)?);
    let update = json!({"op": "matmul_update", "update": "adagrad", "weight_decay": false});
    let rate = s.fixed - 1;
    s.op(update, &[weight, a, rate, history, eps, b]).map(drop)
}

/// An operation whose weight is brought into its kernel's layout apart.
fn packed(s: &mut Sketch) -> Option<()> {
    let (x, w) = (s.numbers(&[1, 16, 6, 6])?, s.numbers(&[16, 16, 3, 3])?);
    let convolution = json!({"op": "conv2d", "stride": [1, 1], "padding": [1, 1, 1, 1],
                             "dilation": [1, 1], "groups": 1});
    let kind: Kind = serde_json::from_value(convolution).expect("an operation");
    let [x_meta, w_meta] = [x, w].map(|i| (*s.player.get(i).meta).clone());
    let y = kind.family().infer(&[&x_meta, &w_meta]).ok()?.remove(0);
    s.step(Step::Op(kind.clone(), vec![x, w]))?;
    let (of, meta) = (Box::new(kind), w_meta.clone());
    let io = vec![x_meta, w_meta, y];
    let packing = of.family().packing(&io.iter().collect::<Vec<_>>(), Width(1)).ok()??;
    let (input, bytes) = (packing.input, packing.bytes);
    let pack = Pack { of: of.clone(), io, width: 1, input, bytes };
    let opaque = s.step(Step::Op(pack.into(), vec![w]))?;
    s.step(Step::Op(Packed { of, input, meta }.into(), vec![x, opaque]))?;
    s.step(Step::Drop(opaque)).map(drop) // not all of its bytes need be written
}

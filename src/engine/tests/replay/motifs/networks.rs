//! Building blocks of networks: convolutions, pooling, normalisation, products, updates.

use serde_json::{Value, json};

use super::super::play::Step;
use super::Sketch;
use crate::kernels::Width;
use crate::ops::Kind;
use crate::ops::optim::{Input, Rule, Update};
use crate::ops::packed::{Pack, Packed};

// ---- images -------------------------------------------------------------------------------------

/// Two leading extents, and those of one to three spatial axes.
fn spatial(leading: [usize; 2], axes: usize, extent: usize) -> Vec<usize> {
    [&leading[..], &vec![extent; axes]].concat()
}

/// The first number for the first axis, the second for all others.
fn first(axes: usize, numbers: [usize; 2]) -> Vec<usize> {
    (0..axes).map(|d| numbers[d.min(1)]).collect()
}

pub(super) fn convolution(s: &mut Sketch) -> Option<()> {
    let (groups, stride, axes) =
        (1 + s.random.below(2), 1 + s.random.below(2), 1 + s.random.below(3));
    let geometry = json!({"stride": first(axes, [stride, 1]), "padding": vec![1; 2 * axes],
                          "dilation": vec![1; axes], "groups": groups});
    let with = |name, more| joined([json!({"op": name}), geometry.clone(), more]);
    let x = s.numbers(&spatial([2, 2], axes, 4))?;
    let w = s.numbers(&spatial([4, 2 / groups], axes, 3))?;
    let b = s.numbers(&[4])?;
    let from = &[x, w, b][..2 + s.random.below(2)];
    let y = s.op(with("conv", json!({})), from)?;
    let dy = s.numbers(&s.shape(y))?;
    let dx = s.op(with("conv_grad_input", json!({"size": vec![4; axes]})), &[dy, w])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[dx])?;
    s.op(with("conv_grad_weight", json!({"kernel": vec![3; axes]})), &[dy, x])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[y]).map(drop)
}

/// Merges several JSON objects into one.
fn joined<const N: usize>(parts: [Value; N]) -> Value {
    parts.iter().flat_map(|part| part.as_object().expect("an object").clone()).collect()
}

fn window(s: &mut Sketch, axes: usize) -> Value {
    let pads = [first(axes, [0, 1]), first(axes, [0, 1])].concat();
    json!({"kernel": vec![2; axes], "stride": first(axes, [2, 1]), "padding": pads,
           "ceil_mode": s.is()})
}

pub(super) fn max_pool(s: &mut Sketch) -> Option<()> {
    let axes = 1 + s.random.below(3);
    let (x, window) = (s.numbers(&spatial([2, 2], axes, 4))?, window(s, axes));
    let gaps = if s.is() { json!({"dilation": vec![2; axes]}) } else { json!({}) };
    let with = |more| joined([more, window.clone(), gaps.clone()]);
    let y = s.op(with(json!({"op": "max_pool"})), &[x])?;
    let dy = s.numbers(&s.shape(y))?;
    s.op(with(json!({"op": "max_pool_grad", "size": vec![4; axes]})), &[dy, y + 1]).map(drop)
}

pub(super) fn avg_pool(s: &mut Sketch) -> Option<()> {
    let axes = 1 + s.random.below(3);
    let (x, window, padded) = (s.numbers(&spatial([2, 2], axes, 4))?, window(s, axes), s.is());
    let divisor = if s.is() { json!({"divisor": 3}) } else { json!({}) };
    let mean = joined([json!({"count_include_pad": padded}), divisor]);
    let with = |more| joined([more, window.clone(), mean.clone()]);
    let y = s.op(with(json!({"op": "avg_pool"})), &[x])?;
    let dy = s.numbers(&s.shape(y))?;
    s.op(with(json!({"op": "avg_pool_grad", "size": vec![4; axes]})), &[dy]).map(drop)
}

// ---- attention ----------------------------------------------------------------------------------

pub(super) fn attention(s: &mut Sketch) -> Option<()> {
    if s.random.below(4) == 0 {
        return cached(s);
    }
    let (mask, dropout) = (s.is(), if s.is() { 0.4 } else { 0.0 });
    let rule = json!({"scale": 0.5, "causal": s.is(), "dropout": dropout, "mask": mask,
                      "lengths": false, "start": false});
    let q = s.numbers(&[2, 4, 3, 4])?;
    let (k, v) = (s.numbers(&[2, 2, 5, 4])?, s.numbers(&[2, 2, 5, 3])?);
    let masks = if mask { vec![s.numbers(&[3, 5])?] } else { vec![] };
    let from = [&[q, k, v], &masks[..]].concat();
    let y = s.op(joined([json!({"op": "attention"}), rule.clone()]), &from)?;
    let dy = s.numbers(&[2, 4, 3, 3])?;
    let drawn = if dropout > 0.0 { vec![y + 2] } else { vec![] };
    let from = [&[dy, q, k, v, y, y + 1], &masks[..], &drawn[..]].concat();
    let grad = json!({"op": "attention_grad", "scores": s.is()});
    s.op(joined([grad, rule]), &from)?;
    s.op(json!({"op": "unary", "f": "relu"}), &[y]).map(drop)
}

fn cached(s: &mut Sketch) -> Option<()> {
    let past = s.fill(&[2, 5, 4], 0.5, "float32")?;
    let update = s.numbers(&[2, 2, 4])?;
    let position = s.random.below(4);
    let start = json!({"op": "fill", "value": position, "shape": [1], "dtype": "int64"});
    let start = s.op(start, &[])?;
    s.op(json!({"op": "tensor_scatter", "axis": 1}), &[past, update, start])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[past]).map(drop)
}

// ---- normalisation ------------------------------------------------------------------------------

/// x, scale and bias, of two channels.
fn normalised(s: &mut Sketch) -> Option<[usize; 3]> {
    Some([s.numbers(&[3, 2, 2, 2])?, s.numbers(&[2])?, s.numbers(&[2])?])
}

pub(super) fn batch_norm(s: &mut Sketch) -> Option<()> {
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

pub(super) fn inference(s: &mut Sketch) -> Option<()> {
    let [x, scale, bias] = normalised(s)?;
    let (mean, var) = (s.numbers(&[2])?, s.fill(&[2], 0.7, "float32")?);
    let from = [x, scale, bias, mean, var];
    s.op(json!({"op": "batch_norm_inference", "eps": 1e-5}), &from)?;
    let dy = s.numbers(&[3, 2, 2, 2])?;
    let gradient = json!({"op": "batch_norm_inference_grad", "eps": 1e-5});
    s.op(gradient, &[dy, x, scale, mean, var]).map(drop)
}

pub(super) fn statistics(s: &mut Sketch) -> Option<()> {
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

pub(super) fn folded(s: &mut Sketch) -> Option<()> {
    let (w, scale, bias) = (s.numbers(&[2, 3])?, s.numbers(&[2])?, s.numbers(&[2])?);
    let (mean, var) = (s.numbers(&[2])?, s.fill(&[2], 0.7, "float32")?);
    s.op(json!({"op": "batch_norm_factor", "eps": 1e-5}), &[scale, var])?;
    let fold = json!({"op": "fold_batch_norm", "eps": 1e-5, "axis": 0});
    s.op(fold, &[w, scale, bias, mean, var]).map(drop)
}

pub(super) fn layer_norm(s: &mut Sketch) -> Option<()> {
    let (x, scale, bias) = (s.numbers(&[3, 4])?, s.numbers(&[4])?, s.numbers(&[4])?);
    let from = &[x, scale, bias][..2 + s.random.below(2)];
    let y = s.op(json!({"op": "layer_norm", "eps": 1e-5}), from)?;
    let dy = s.numbers(&[3, 4])?;
    s.op(json!({"op": "layer_norm_grad"}), &[dy, x, scale, y + 1, y + 2])?;
    let y = s.op(json!({"op": "rms_norm", "eps": 1e-5}), &[x, scale])?;
    s.op(json!({"op": "rms_norm_grad"}), &[dy, x, scale, y + 1]).map(drop)
}

// ---- updates ------------------------------------------------------------------------------------

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

/// An update by any rule.
pub(super) fn optimizer(s: &mut Sketch) -> Option<()> {
    let rules = Rule::all();
    let rule = rules[s.random.below(rules.len())].clone();
    let update = Update { rule, weight_decay: s.is() };
    let mut inputs = updated(s)?.to_vec();
    for input in update.inputs().skip(inputs.len()) {
        inputs.push(match input {
            Input::Moment => state(s)?,
            Input::Step => s.fill(&[1], 2.0, "int32")?,
            Input::Decay => ones(s, 0.01)?,
            _ => ones(s, 0.9)?,
        });
    }
    s.step(Step::Op(update.into(), inputs)).map(drop)
}

// ---- products -----------------------------------------------------------------------------------

/// Products with what may follow them, and an update whose gradient is a product.
pub(super) fn product(s: &mut Sketch) -> Option<()> {
    let (a, b, c) = (s.numbers(&[4, 3])?, s.numbers(&[3, 5])?, s.numbers(&[5])?);
    let y = s.op(json!({"op": "matmul"}), &[a, b])?;
    let sum = s.op(json!({"op": "binary", "f": "add"}), &[y, c])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[sum])?;
    let matmul = |factors: [usize; 2]| json!({"kind": {"op": "matmul"}, "operands": factors});
    let add = json!({"kind": {"op": "binary", "f": "add"}, "operands": [3, 2]});
    let region = json!({"op": "region", "inputs": 3, "producer": matmul([0, 1]), "links": [add],
                        "outputs": [1], "exact": false});
    s.op(region, &[a, b, c])?;
    let (weight, history, eps) =
        (s.numbers(&[4, 5])?, s.fill(&[4, 5], 0.25, "float32")?, ones(s, 1e-8)?);
    let adagrad = json!({"op": "update", "f": "adagrad", "weight_decay": false});
    let update = json!({"op": "region", "inputs": 6, "producer": matmul([1, 5]),
                        "consumer": {"kind": adagrad, "operands": [0, 6, 2, 3, 4]},
                        "outputs": [1, 2]});
    let rate = s.fixed - 1;
    s.op(update, &[weight, a, rate, history, eps, b]).map(drop)
}

/// A convolution whose weight is packed by a separate operation.
pub(super) fn packed(s: &mut Sketch) -> Option<()> {
    let (x, w) = (s.numbers(&[1, 16, 6, 6])?, s.numbers(&[16, 16, 3, 3])?);
    let convolution = json!({"op": "conv", "stride": [1, 1], "padding": [1, 1, 1, 1],
                             "dilation": [1, 1], "groups": 1});
    let kind: Kind = serde_json::from_value(convolution).expect("an operation");
    let [x_meta, w_meta] = [x, w].map(|i| (*s.player.get(i).meta).clone());
    let y = kind.family().infer(&[&x_meta, &w_meta]).ok()?.remove(0);
    s.step(Step::Op(kind.clone(), vec![x, w]))?;
    let (of, meta) = (Box::new(kind), w_meta.clone());
    let io = vec![x_meta, w_meta, y];
    let packing = crate::kernels::target(crate::kernels::host())
        .unwrap()
        .packing(&of, &io.iter().collect::<Vec<_>>(), Width(1))
        .ok()??;
    let (input, bytes) = (packing.input, packing.bytes);
    let pack = Pack { of: of.clone(), io, width: 1, input, bytes };
    let opaque = s.step(Step::Op(pack.into(), vec![w]))?;
    s.step(Step::Op(Packed { of, input, meta }.into(), vec![x, opaque]))?;
    s.step(Step::Drop(opaque)).map(drop) // padding bytes may be left unwritten
}

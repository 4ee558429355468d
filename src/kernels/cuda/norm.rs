//! Batch normalisation, in one operation or in two, and its gradients.

use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::ops::fold::{BatchNormFactor, FoldBatchNorm};
use crate::ops::norm::{
    BatchNorm, BatchNormGrad, BatchNormInference, BatchNormInferenceGrad, RunningAverage, parameter,
};
use crate::ops::normalize::{BatchNormReluGrad, BatchNormStatistics, Normalize};
use crate::ops::{Family, Meta};
use crate::shape::Shape;

const TEMPLATES: &str = include_str!("c/norm.cu");

/// A tensor with one element per channel, named `name`, as the kernels take it.
fn channel(source: &mut Source, name: &str, step: isize, dtype: DType) -> String {
    let kind = computed(parameter(dtype));
    let constant = if name.contains("in") { "const " } else { "" };
    format!("Channel<{constant}{kind}>{{g.{name}, {}}}", source.integer(step as i64))
}

/// The axes other than that of the channels.
fn others(x: &Meta) -> Vec<usize> {
    (0..x.shape.rank()).filter(|&d| d != 1).collect()
}

/// A tensor with one element per channel, repeated to the shape of x.
fn spread(meta: &Meta, x: &Meta) -> Meta {
    let on_axis = |one: isize| move |d: usize| if d == 1 { one } else { 0 };
    let shape: Shape = (0..x.shape.rank()).map(|d| if d == 1 { x.shape[1] } else { 1 }).collect();
    let strides = (0..x.shape.rank()).map(on_axis(meta.strides[0])).collect();
    Meta { dtype: meta.dtype, shape, strides }
}

/// The kernel that finds the statistics of x: given scale and bias, it writes mean, variance, factor
/// and term, with these steps.
fn statistics(name: &'static str, eps: f64, io: [&Meta; 3], steps: [isize; 4]) -> Source {
    let (x, p) = (io[0], parameter(io[0].dtype));
    let mut source = Source::new(name, &[x.dtype, p, p], &[p; 4]).with(TEMPLATES).waiting();
    let walk = Walk::along(&others(x), &[x]);
    let rest = source.walk(&walk);
    let (count, channels) = (source.size(walk.count), source.size(x.shape[1]));
    let (step, eps) = (source.integer(x.strides[1] as i64), source.number(eps));
    let given = [1, 2].map(|i| channel(&mut source, &format!("in{i}"), io[i].strides[0], x.dtype));
    let made = [0, 1, 2, 3].map(|o| channel(&mut source, &format!("out{o}"), steps[o], x.dtype));
    source.line(format!(
        "batch_statistics<{}>(g.in0, {}, {}, {rest}, {count}, {channels}, {step}, {eps});",
        computed(p),
        given.join(", "),
        made.join(", ")
    ));
    source.blocks(x.shape[1])
}

/// The kernel of `(x - mean) * factor + term`, perhaps with another tensor added, perhaps rectified.
fn applied(op: &Normalize, name: &'static str, io: &[&Meta]) -> Source {
    let (x, y) = (io[0], io[io.len() - 1]);
    let wide = computed(parameter(x.dtype));
    let dtypes: Vec<DType> = io[..io.len() - 1].iter().map(|meta| meta.dtype).collect();
    let mut source = Source::new(name, &dtypes, &[y.dtype]).with(TEMPLATES);
    let channels: Vec<Meta> = io[1..4].iter().map(|meta| spread(meta, x)).collect();
    let walked: Vec<&Meta> =
        [x].into_iter().chain(&channels).chain(io[4..].iter().copied()).collect();
    let at = source.each(&Walk::new(&x.shape, &walked));
    let load = |i: usize| format!("load(g.in{i}[{}])", at[i]);
    source.line(format!(
        "    {wide} value = normalized<{wide}>({}, {}, {}, {});",
        load(0),
        load(1),
        load(2),
        load(3)
    ));
    if op.adds {
        source.line(format!("    value = value + {};", load(4)));
    }
    if op.relu {
        source.line(format!("    value = larger(value, {wide}(0));"));
    }
    source.line(format!("    store(g.out0[{}], value);", at[io.len() - 1]));
    source.end();
    source
}

const PLAIN: Normalize = Normalize { adds: false, relu: false };

/// A row-major parameter of the channels of x.
fn row(x: &Meta) -> Meta {
    Meta::new(parameter(x.dtype), [x.shape[1]])
}

/// The program of (x, scale, bias) -> (y, mean, var).
pub fn batch_norm(op: &BatchNorm, io: &[&Meta]) -> Program {
    let (x, made) = (io[0], row(io[0]));
    let mut program = Program::default();
    let [factor, term] = [0, 1].map(|_| program.take(made.bytes()));
    let steps = [io[4].strides[0], io[5].strides[0], 1, 1];
    let found = statistics(op.name(), op.eps.0, [x, io[1], io[2]], steps);
    let apply = applied(&PLAIN, op.name(), &[x, io[4], &made, &made, io[3]]);
    let [mean, var] = [1, 2].map(|o| Place::Output(o, 0));
    let [x, scale, bias] = [0, 1, 2].map(Place::Input);
    program
        .then(found, &[x, scale, bias, mean, var, factor, term])
        .then(apply, &[x, mean, factor, term, Place::Output(0, 0)])
}

/// The program of (x, scale, bias) -> (mean, var, factor, term).
pub fn batch_norm_statistics(op: &BatchNormStatistics, io: &[&Meta]) -> Program {
    let steps = [3, 4, 5, 6].map(|o| io[o].strides[0]);
    let found = statistics(op.name(), op.norm.eps.0, [io[0], io[1], io[2]], steps);
    Program::one(found, 3, 4)
}

/// The program of (x, mean, factor, term, perhaps another tensor) -> y.
pub fn normalize(op: &Normalize, io: &[&Meta]) -> Program {
    Program::one(applied(op, op.name(), io), io.len() - 1, 1)
}

/// The kernel of (scale, var) -> factor.
fn factors(name: &'static str, eps: f64, scale: &Meta, var: &Meta, step: isize) -> Source {
    let p = scale.dtype;
    let mut source = Source::new(name, &[p, p], &[p]).with(TEMPLATES);
    let (channels, eps) = (source.size(scale.shape[0]), source.number(eps));
    let given = [(0, scale), (1, var)]
        .map(|(i, meta)| channel(&mut source, &format!("in{i}"), meta.strides[0], p));
    let made = channel(&mut source, "out0", step, p);
    let given = given.join(", ");
    source.line(format!("batch_factor<{}>({given}, {made}, {channels}, {eps});", computed(p)));
    source.blocks(scale.shape[0].div_ceil(THREADS as usize))
}

/// The program of (scale, var) -> factor.
pub fn batch_norm_factor(op: &BatchNormFactor, io: &[&Meta]) -> Program {
    let source = factors(op.name(), op.eps.0, io[0], io[1], io[2].strides[0]);
    Program::one(source, 2, 1)
}

/// The program of (x, scale, bias, mean, var) -> y.
pub fn batch_norm_inference(op: &BatchNormInference, io: &[&Meta]) -> Program {
    let (x, made) = (io[0], row(io[0]));
    let mut program = Program::default();
    let factor = program.take(made.bytes());
    let found = factors(op.name(), op.eps.0, io[1], io[4], 1);
    let apply = applied(&PLAIN, op.name(), &[x, io[3], &made, io[2], io[5]]);
    let [x, scale, bias, mean, var] = [0, 1, 2, 3, 4].map(Place::Input);
    program
        .then(found, &[scale, var, factor])
        .then(apply, &[x, mean, factor, bias, Place::Output(0, 0)])
}

/// A gradient, of statistics that are constants or not.
struct Gradient {
    name: &'static str,
    eps: f64,
    is_fixed: bool,
    /// Whether dy passes only where the rectified result was positive.
    is_rectified: bool,
}

impl Gradient {
    /// The program of (dy, x, scale, mean, var, perhaps factor, term) -> (dx, dscale, dbias).
    fn program(&self, io: &[&Meta]) -> Program {
        let inputs = if self.is_rectified { 7 } else { 5 };
        let (x, p) = (io[1], parameter(io[1].dtype));
        let dtypes: Vec<DType> = io[..inputs].iter().map(|meta| meta.dtype).collect();
        let source = Source::new(self.name, &dtypes, &[x.dtype, p, p]);
        let mut source = source.with(TEMPLATES).waiting();
        let each = [io[0], x, io[inputs]];
        let walk = Walk::along(&others(x), &each);
        let rest = source.walk(&walk);
        let sizes = [walk.count, x.shape[1]].map(|size| source.size(size));
        let steps = each.map(|meta| source.integer(meta.strides[1] as i64));
        let eps = source.number(self.eps);
        let mut given = |i: usize| {
            let name = if i < inputs { format!("in{i}") } else { format!("out{}", i - inputs) };
            channel(&mut source, &name, io[i].strides[0], x.dtype)
        };
        let [scale, mean, var] = [2, 3, 4].map(&mut given);
        let made = [inputs + 1, inputs + 2].map(&mut given).join(", ");
        let kind = computed(p);
        let passes = match self.is_rectified {
            true => {
                let terms = [5, 6].map(&mut given).join(", ");
                format!("Rectified<{kind}>{{{mean}, {terms}}}")
            }
            false => format!("All<{kind}>{{}}"),
        };
        let (sizes, steps) = (sizes.join(", "), steps.join(", "));
        source.line(format!(
            "batch_gradient<{kind}, {}>(g.in0, g.in1, {scale}, {mean}, {var}, g.out0, {made}, \
             {rest}, {sizes}, {steps}, {eps}, {passes});",
            self.is_fixed
        ));
        Program::one(source.blocks(x.shape[1]), inputs, 3)
    }
}

/// The program of a batch normalisation's gradient.
pub fn batch_norm_grad(op: &BatchNormGrad, io: &[&Meta]) -> Program {
    let (name, eps) = (op.name(), op.eps.0);
    Gradient { name, eps, is_fixed: false, is_rectified: false }.program(io)
}

/// The program of the gradient of one that is followed by a ReLU.
pub fn batch_norm_relu_grad(op: &BatchNormReluGrad, io: &[&Meta]) -> Program {
    let (name, eps) = (op.name(), op.norm.eps.0);
    Gradient { name, eps, is_fixed: false, is_rectified: true }.program(io)
}

/// The program of the gradient of one by given statistics.
pub fn batch_norm_inference_grad(op: &BatchNormInferenceGrad, io: &[&Meta]) -> Program {
    let (name, eps) = (op.name(), op.eps.0);
    Gradient { name, eps, is_fixed: true, is_rectified: false }.program(io)
}

/// The program of a running average.
pub fn running_average(op: &RunningAverage, io: &[&Meta]) -> Program {
    let dtype = io[0].dtype;
    let mut source = Source::new(op.name(), &[dtype, dtype], &[dtype]);
    let weights = [1.0 - op.momentum.0, op.momentum.0 * op.factor.0];
    let [old, new] = weights.map(|weight| source.number(weight));
    let at = source.each(&Walk::new(&io[0].shape, &[io[1], io[0]]));
    let (running, batch) = (format!("g.out0[{}]", at[1]), format!("g.in1[{}]", at[0]));
    source.line(format!("    double value = {old} * load({running}) + {new} * load({batch});"));
    source.line(format!("    convert({running}, value);"));
    source.end();
    Program::one(source, 2, 1)
}

/// The program of (w, scale, bias, mean, var, perhaps b) -> (weights, bias).
pub fn fold_batch_norm(op: &FoldBatchNorm, io: &[&Meta]) -> Program {
    let (inputs, w) = (io.len() - 2, io[0]);
    let (dtype, kind) = (w.dtype, computed(w.dtype));
    let places: Vec<Place> = (0..inputs).map(Place::Input).collect();
    let mut bias = Source::new(op.name(), &vec![dtype; inputs], &[dtype]).with(TEMPLATES);
    let (channels, eps) = (bias.size(w.shape[op.axis]), bias.number(op.eps.0));
    let given = [1, 2, 3, 4]
        .map(|i| channel(&mut bias, &format!("in{i}"), io[i].strides[0], dtype))
        .join(", ");
    let own = match inputs {
        6 => format!("g.in5, {}", bias.integer(io[5].strides[0] as i64)),
        _ => format!("(const {kind} *)0, 0"),
    };
    let made = channel(&mut bias, "out0", io[inputs + 1].strides[0], dtype);
    bias.line(format!("folded_bias<{kind}>({given}, {own}, {made}, {channels}, {eps});"));
    let bias = bias.blocks(w.shape[op.axis].div_ceil(THREADS as usize));
    let to_bias: Vec<Place> = places.iter().copied().chain([Place::Output(1, 0)]).collect();

    let mut weights = Source::new(op.name(), &[dtype, dtype, dtype], &[dtype]);
    let eps = weights.number(op.eps.0);
    let along = |meta: &Meta| {
        let on_axis = |d: usize, one: usize| if d == op.axis { one } else { 1 };
        let shape: Shape = (0..w.shape.rank()).map(|d| on_axis(d, w.shape[op.axis])).collect();
        let strides =
            (0..w.shape.rank()).map(|d| if d == op.axis { meta.strides[0] } else { 0 }).collect();
        Meta { dtype, shape, strides }
    };
    let (scale, var) = (along(io[1]), along(io[4]));
    let at = weights.each(&Walk::new(&w.shape, &[w, &scale, &var, io[inputs]]));
    weights.line(format!(
        "    double factor = (double)g.in1[{}] / sqrt((double)g.in2[{}] + {eps});",
        at[1], at[2]
    ));
    weights.line(format!("    g.out0[{}] = {kind}((double)g.in0[{}] * factor);", at[3], at[0]));
    weights.end();
    let to_weights = [Place::Input(0), Place::Input(1), Place::Input(4), Place::Output(0, 0)];
    Program::default().then(bias, &to_bias).then(weights, &to_weights)
}

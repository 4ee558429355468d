//! Batch normalisation, in one operation or in two, and its gradients.

use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::ops::fold::{BatchNormFactor, FoldBatchNorm};
use crate::ops::norm::{
    BatchNorm, BatchNormGrad, BatchNormInference, BatchNormInferenceGrad, RunningAverage,
};
use crate::ops::normalize::{BatchNormReluGrad, BatchNormStatistics, Normalize};
use crate::ops::{Family, Meta};
use crate::shape::Shape;

const TEMPLATES: &str = include_str!("c/norm.cu");
/// The elements of a channel that a block sums up, at least; and the most chunks of a channel.
const CHUNK: usize = 8192;
const MOST_CHUNKS: usize = 256;

/// A tensor with one element per channel, named `name`, as the kernels take it.
fn channel(source: &mut Source, name: &str, step: isize, dtype: DType) -> String {
    let kind = computed(dtype.wide());
    let constant = if name.contains("in") { "const " } else { "" };
    format!("Channel<{constant}{kind}>{{g.{name}, {}}}", source.integer(step as i64))
}

/// The axes other than that of the channels.
fn others(x: &Meta) -> Vec<usize> {
    (0..x.shape.rank()).filter(|&d| d != 1).collect()
}

/// The numbers of the channels, as if they were the elements of a tensor of the shape of x.
fn numbers(x: &Meta) -> Meta {
    let strides = (0..x.shape.rank()).map(|d| isize::from(d == 1)).collect();
    let shape: Shape = (0..x.shape.rank()).map(|d| if d == 1 { x.shape[1] } else { 1 }).collect();
    Meta { dtype: DType::Int64, shape, strides }
}

/// How the elements of each channel are cut into chunks that blocks sum up.
struct Chunks {
    channels: usize,
    count: usize,
    length: usize,
    number: usize,
}

impl Chunks {
    fn of(x: &Meta) -> Chunks {
        let (channels, count) = (x.shape[1], x.numel().checked_div(x.shape[1]).unwrap_or(0));
        let number = count.div_ceil(CHUNK).clamp(1, MOST_CHUNKS);
        Chunks { channels, count, length: count.div_ceil(number).max(1), number }
    }

    fn argument(&self, source: &mut Source) -> String {
        let Chunks { channels, count, length, number } = *self;
        source.record("Chunks", [channels, count, length, number].map(|size| size as i64))
    }

    /// A block for each chunk.
    fn each(&self, source: Source) -> Source {
        source.sharing(self.length).blocks(self.channels * self.number)
    }

    /// A block for each channel, with a thread for each of its chunks.
    fn joined(&self, source: Source) -> Source {
        source.sharing(self.number).blocks(self.channels)
    }

    /// Room for `doubles` of each chunk.
    fn room(&self, program: &mut Program, doubles: usize) -> Place {
        program.take(self.channels * self.number * doubles * size_of::<f64>())
    }
}

/// Adds the kernels that find the statistics of x: given scale and bias, they write mean, variance,
/// factor and term, with these steps, to `places`, which those of x, scale and bias precede.
fn statistics(
    mut program: Program,
    name: &'static str,
    eps: f64,
    io: [&Meta; 3],
    steps: [isize; 4],
    places: [Place; 7],
) -> Program {
    let (x, p, chunks) = (io[0], io[0].dtype.wide(), Chunks::of(io[0]));
    let room = chunks.room(&mut program, 3);
    let mut parts = Source::new(name, &[x.dtype], &[DType::Float64]).with(TEMPLATES);
    let rest = parts.walk(&Walk::along(&others(x), &[x]));
    let (of, step) = (chunks.argument(&mut parts), parts.integer(x.strides[1] as i64));
    parts.line(format!("chunk_moments(g.in0, (Moments *)g.out0, {rest}, {of}, {step});"));
    let mut whole = Source::new(name, &[DType::Float64, p, p], &[p; 4]).with(TEMPLATES);
    let given = [1, 2].map(|i| channel(&mut whole, &format!("in{i}"), io[i].strides[0], x.dtype));
    let made = [0, 1, 2, 3].map(|o| channel(&mut whole, &format!("out{o}"), steps[o], x.dtype));
    let (of, eps) = (chunks.argument(&mut whole), whole.number(eps));
    whole.line(format!(
        "batch_statistics<{}>((const Moments *)g.in0, {}, {}, {of}, {eps});",
        computed(p),
        given.join(", "),
        made.join(", ")
    ));
    let [of_x, rest @ ..] = places;
    program
        .then(chunks.each(parts), &[of_x, room])
        .then(chunks.joined(whole), &[&[room], &rest[..]].concat())
}

/// The kernel of `(x - mean) * factor + term`, perhaps with another tensor added, perhaps rectified.
fn applied(op: &Normalize, name: &'static str, io: &[&Meta]) -> Source {
    let (x, y) = (io[0], io[io.len() - 1]);
    let wide = computed(x.dtype.wide());
    let dtypes: Vec<DType> = io[..io.len() - 1].iter().map(|meta| meta.dtype).collect();
    let mut source = Source::new(name, &dtypes, &[y.dtype]).with(TEMPLATES);
    let of_channels =
        [1, 2, 3].map(|i| channel(&mut source, &format!("in{i}"), io[i].strides[0], x.dtype));
    let numbers = numbers(x);
    let walked: Vec<&Meta> =
        [x, &numbers, y].into_iter().chain(io[4..io.len() - 1].iter().copied()).collect();
    let at = source.each(&Walk::new(&x.shape, &walked));
    let [mean, factor, term] = of_channels.map(|channel| format!("({wide}){channel}[{}]", at[1]));
    source.line(format!(
        "    {wide} value = normalized<{wide}>(load(g.in0[{}]), {mean}, {factor}, {term});",
        at[0]
    ));
    if op.adds {
        source.line(format!("    value = value + load(g.in4[{}]);", at[3]));
    }
    if op.relu {
        source.line(format!("    value = larger(value, {wide}(0));"));
    }
    source.line(format!("    store(g.out0[{}], value);", at[2]));
    source.end();
    source
}

const PLAIN: Normalize = Normalize { adds: false, relu: false };

/// A row-major parameter of the channels of x.
fn row(x: &Meta) -> Meta {
    Meta::new(x.dtype.wide(), [x.shape[1]])
}

/// The program of (x, scale, bias) -> (y, mean, var).
pub fn batch_norm(op: &BatchNorm, io: &[&Meta]) -> Program {
    let (x, made) = (io[0], row(io[0]));
    let mut program = Program::default();
    let [factor, term] = [0, 1].map(|_| program.take(made.bytes()));
    let steps = [io[4].strides[0], io[5].strides[0], 1, 1];
    let apply = applied(&PLAIN, op.name(), &[x, io[4], &made, &made, io[3]]);
    let [mean, var] = [1, 2].map(|o| Place::Output(o, 0));
    let [of_x, scale, bias] = [0, 1, 2].map(Place::Input);
    let places = [of_x, scale, bias, mean, var, factor, term];
    statistics(program, op.name(), op.eps.0, [x, io[1], io[2]], steps, places)
        .then(apply, &[of_x, mean, factor, term, Place::Output(0, 0)])
}

/// The program of (x, scale, bias) -> (mean, var, factor, term).
pub fn batch_norm_statistics(op: &BatchNormStatistics, io: &[&Meta]) -> Program {
    let steps = [3, 4, 5, 6].map(|o| io[o].strides[0]);
    let [x, scale, bias] = [0, 1, 2].map(Place::Input);
    let [mean, var, factor, term] = [0, 1, 2, 3].map(|o| Place::Output(o, 0));
    let places = [x, scale, bias, mean, var, factor, term];
    let (name, eps) = (op.name(), op.norm.eps.0);
    statistics(Program::default(), name, eps, [io[0], io[1], io[2]], steps, places)
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
        let (inputs, x) = (if self.is_rectified { 7 } else { 5 }, io[1]);
        let (mut program, chunks) = (Program::default(), Chunks::of(x));
        let room = chunks.room(&mut program, 2);
        let lines = program.take(3 * row(x).bytes());
        let [dy, of_x, scale, mean, var] = [0, 1, 2, 3, 4].map(Place::Input);
        let [dx, dscale, dbias] = [0, 1, 2].map(|o| Place::Output(o, 0));
        let passing = (5..inputs).map(Place::Input);
        let among = |first: &[Place], to: Place| -> Vec<Place> {
            first.iter().copied().chain(passing.clone()).chain([to]).collect()
        };
        program
            .then(chunks.each(self.sums(io, &chunks)), &among(&[dy, of_x, mean], room))
            .then(
                chunks.joined(self.lines(io, inputs, &chunks)),
                &[scale, var, room, dscale, dbias, lines],
            )
            .then(self.applied(io, io[inputs]), &among(&[dy, of_x, mean, lines], dx))
    }

    /// The kernel of (dy, x, mean, perhaps factor, term) -> sums of chunks.
    fn sums(&self, io: &[&Meta], chunks: &Chunks) -> Source {
        let (dy, x, p) = (io[0], io[1], io[1].dtype.wide());
        let mut source = self.begun(&[dy.dtype, x.dtype, p], DType::Float64);
        let rest = source.walk(&Walk::along(&others(x), &[dy, x]));
        let of = chunks.argument(&mut source);
        let steps = [dy, x].map(|meta| source.integer(meta.strides[1] as i64)).join(", ");
        let mean = channel(&mut source, "in2", io[3].strides[0], x.dtype);
        let passes = self.passes(&mut source, io, &mean, 3);
        source.line(format!(
            "chunk_gradient<{}>(g.in0, g.in1, {mean}, (Sums *)g.out0, {rest}, {of}, {steps}, \
             {passes});",
            computed(p)
        ));
        source
    }

    /// The kernel of (scale, var, sums) -> (dscale, dbias, lines).
    fn lines(&self, io: &[&Meta], inputs: usize, chunks: &Chunks) -> Source {
        let (dtype, p) = (io[1].dtype, io[1].dtype.wide());
        let mut source = Source::new(self.name, &[p, p, DType::Float64], &[p; 3]).with(TEMPLATES);
        let all = [("in0", 2), ("in1", 4), ("out0", inputs + 1), ("out1", inputs + 2)];
        let [scale, var, dscale, dbias] =
            all.map(|(name, i)| channel(&mut source, name, io[i].strides[0], dtype));
        let (of, eps, kind) = (chunks.argument(&mut source), source.number(self.eps), computed(p));
        source.line(format!(
            "batch_gradient<{kind}, {}>({scale}, {var}, (const Sums *)g.in2, {dscale}, {dbias}, \
             (Line<{kind}> *)g.out2, {of}, {eps});",
            self.is_fixed
        ));
        source
    }

    /// The kernel of (dy, x, mean, lines, perhaps factor, term) -> dx.
    fn applied(&self, io: &[&Meta], dx: &Meta) -> Source {
        let (dy, x, p) = (io[0], io[1], io[1].dtype.wide());
        let mut source = self.begun(&[dy.dtype, x.dtype, p, p], dx.dtype);
        let mean = channel(&mut source, "in2", io[3].strides[0], x.dtype);
        let (passes, kind) = (self.passes(&mut source, io, &mean, 4), computed(p));
        let at = source.each(&Walk::new(&x.shape, &[dy, x, &numbers(x), dx]));
        let c = &at[2];
        source.line(format!("    {kind} x = load(g.in1[{}]);", at[1]));
        source.line(format!("    {kind} dy = {passes}(load(g.in0[{}]), x, {c});", at[0]));
        source.line(format!(
            "    store(g.out0[{}], on_line<{kind}>(dy, x, {mean}[{c}], ((const Line<{kind}> \
             *)g.in3)[{c}]));",
            at[3]
        ));
        source.end();
        source
    }

    /// A kernel with factor and term behind these inputs, if there are any.
    fn begun(&self, inputs: &[DType], output: DType) -> Source {
        let p = inputs[2];
        let passing: &[DType] = if self.is_rectified { &[p, p] } else { &[] };
        Source::new(self.name, &[inputs, passing].concat(), &[output]).with(TEMPLATES)
    }

    /// What of dy passes; factor and term are inputs from `first` on.
    fn passes(&self, source: &mut Source, io: &[&Meta], mean: &str, first: usize) -> String {
        let dtype = io[1].dtype;
        let kind = computed(dtype.wide());
        if !self.is_rectified {
            return format!("All<{kind}>{{}}");
        }
        let terms = [0, 1]
            .map(|i| channel(source, &format!("in{}", first + i), io[5 + i].strides[0], dtype));
        format!("Rectified<{kind}>{{{mean}, {}}}", terms.join(", "))
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

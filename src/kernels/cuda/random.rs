//! Random numbers, dropout, and the generator's advance: the words are those of every other target.

use super::program::Program;
use super::source::Source;
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::ops::random::{Advance, Distribution, Dropout, DropoutGrad, Random};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/random.cu");

/// The program of a fill with random numbers.
pub fn draw(op: &Random, to: &Meta) -> Program {
    let mut source = Source::new(op.name(), &[DType::Int64], &[op.dtype]).with(TEMPLATES);
    let (offset, wide) = (source.integer(op.offset as i64), computed(op.dtype));
    let sampler = match op.dist {
        Distribution::Uniform { low, high } => {
            let most = crate::dispatch!(op.dtype, T => below::<T>(high.0));
            let [low, high, most] = [low.0, high.0, most].map(|bound| source.number(bound));
            format!("Uniform<{wide}>{{{wide}({low}), {wide}({high}), {wide}({most})}}")
        }
        Distribution::Normal { mean, std } => {
            let [mean, std] = [mean.0, std.0].map(|number| source.number(number));
            format!("Normal<{wide}>{{{wide}({mean}), {wide}({std})}}")
        }
        Distribution::Bernoulli { p } => bernoulli(&mut source, p.0),
    };
    let is_bernoulli = matches!(op.dist, Distribution::Bernoulli { .. });
    let per_block = if op.dtype == DType::Float64 && !is_bernoulli { 2 } else { 4 };
    source.line(format!("const auto sample = {sampler};"));
    let axes: Vec<usize> = (0..to.shape.rank()).collect();
    let places = source.each(&Walk::along(&axes, &[to]));
    source.line(format!("    Words words = philox(g.in0, {offset}, i / {per_block});"));
    source.line(format!("    convert(g.out0[{}], sample(words, i % {per_block}));", places[0]));
    source.end();
    Program::one(source, 1, 1)
}

fn bernoulli(source: &mut Source, p: f64) -> String {
    let bound = source.integer((p * 2f64.powi(32)).round() as i64);
    format!("Bernoulli{{(uint64){bound}}}")
}

/// The largest value of a float dtype that is less than `bound`.
fn below<T: crate::dtype::Element>(bound: f64) -> f64 {
    let nearest = T::from_f64(bound).to_f64();
    let (mut low, mut high) = (nearest.next_down(), nearest);
    if nearest < bound {
        return nearest;
    }
    // Steps double until they leave the value that rounds to the bound.
    let mut step = nearest.abs().max(f64::MIN_POSITIVE) * f64::EPSILON;
    while T::from_f64(low).to_f64() >= bound {
        low = nearest - step;
        step *= 2.0;
    }
    while low.next_up() < high {
        let middle = low / 2.0 + high / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if T::from_f64(middle).to_f64() < bound { low = middle } else { high = middle }
    }
    T::from_f64(low).to_f64()
}

/// The program of an advance of the generator.
pub fn advance(op: &Advance) -> Program {
    let mut source = Source::new(op.name(), &[DType::Int64], &[DType::Int64]);
    source.threads = 1;
    let by = source.integer(op.by as i64);
    source.line(format!("g.out0[1] = (int64)((uint64)g.out0[1] + (uint64){by});"));
    Program::one(source, 1, 1)
}

/// The program of a dropout: both results are dense in one order, in which words are drawn.
pub fn dropout(op: &Dropout, io: &[&Meta]) -> Program {
    let (dtype, wide) = (io[0].dtype, computed(io[0].dtype));
    let mut source =
        Source::new(op.name(), &[dtype, DType::Int64], &[dtype, DType::Bool]).with(TEMPLATES);
    let offset = source.integer(op.offset as i64);
    let keep = bernoulli(&mut source, 1.0 - op.ratio.0);
    let scale = source.number(1.0 / (1.0 - op.ratio.0));
    source.line(format!("const auto keep = {keep};"));
    let places = source.each(&Walk::new(&io[0].shape, &[io[0], io[3], io[2]]));
    source.line(format!("    bool is_kept = keep(philox(g.in1, {offset}, i / 4), i % 4);"));
    source.line(format!("    {wide} x = load(g.in0[{}]);", places[0]));
    source.line(format!(
        "    store(g.out0[{}], is_kept ? x * {wide}({scale}) : {wide}(0));",
        places[2]
    ));
    source.line(format!("    store(g.out1[{}], is_kept);", places[1]));
    source.end();
    Program::one(source, 2, 2)
}

/// The program of its gradient.
pub fn dropout_grad(op: &DropoutGrad, io: &[&Meta]) -> Program {
    let (dtype, wide) = (io[0].dtype, computed(io[0].dtype));
    let mut source = Source::new(op.name(), &[dtype, DType::Bool], &[dtype]);
    let scale = source.number(1.0 / (1.0 - op.ratio.0));
    let places = source.each(&Walk::new(&io[0].shape, &[io[0], io[1], io[2]]));
    source.line(format!("    {wide} dy = load(g.in0[{}]);", places[0]));
    source.line(format!("    bool is_kept = load(g.in1[{}]);", places[1]));
    source.line(format!(
        "    store(g.out0[{}], is_kept ? dy * {wide}({scale}) : {wide}(0));",
        places[2]
    ));
    source.end();
    Program::one(source, 2, 1)
}

use super::*;
use crate::ops::Real;
use crate::ops::norm::{BatchNorm, BatchNormGrad, BatchNormInference};
use crate::ops::unary::UnaryGrad;
use crate::rewrite::batch_norm as rule;

/// A recording of batch normalisation, ReLU, and the gradients of both.
struct Block {
    recorder: Recorder,
    x: View,
    scale: View,
    bias: View,
    dy: View,
    z: View,
    y: View,
}

const RELU: UnaryFn = UnaryFn::Relu;
const STATISTICS: &str = "batch_norm_statistics";
const EPS: Real = Real(1e-5);

impl Block {
    fn new(dtype: DType) -> Block {
        let mut recorder = Recorder::default();
        let mut given = |dtype, shape: &[usize]| {
            let view = View::new(cpu::device(), Meta::new(dtype, shape));
            recorder.number(&view, Role::Captured);
            view
        };
        let [x, dy] = [(); 2].map(|()| given(dtype, &[2, 3, 4, 4]));
        let [scale, bias] = [(); 2].map(|()| given(DType::Float32, &[3]));
        let (z, y) = (like(&x), like(&x));
        Block { recorder, x, scale, bias, dy, z, y }
    }

    fn forward(&mut self) -> [View; 2] {
        self.forward_of(&self.z.clone())
    }

    /// The same with the ReLU of another tensor.
    fn forward_of(&mut self, bent: &View) -> [View; 2] {
        let [mean, var] = [(); 2].map(|()| like(&self.scale));
        let inputs = [&self.x, &self.scale, &self.bias].map(View::clone);
        let outputs = [self.z.clone(), mean.clone(), var.clone()];
        self.recorder.push(BatchNorm { eps: EPS }, &inputs, &outputs);
        let (bent, y) = (std::slice::from_ref(bent), std::slice::from_ref(&self.y));
        self.recorder.push(Unary { f: RELU }, bent, y);
        [mean, var]
    }

    /// With something in between.
    fn backward(&mut self, statistics: [View; 2], between: impl FnOnce(&mut Recorder)) {
        let given = [self.dy.clone(), self.y.clone()];
        self.backward_of(RELU, given, statistics, between);
    }

    /// The same with the gradient of another function, of other tensors.
    fn backward_of(
        &mut self,
        f: UnaryFn,
        given: [View; 2],
        [mean, var]: [View; 2],
        between: impl FnOnce(&mut Recorder),
    ) {
        let (dz, dx) = (like(&self.x), like(&self.x));
        self.recorder.push(UnaryGrad { f }, &given, std::slice::from_ref(&dz));
        between(&mut self.recorder);
        let parameters = [(); 2].map(|()| like(&self.scale));
        let outputs = [&[dx][..], &parameters].concat();
        outputs.iter().for_each(|view| {
            self.recorder.number(view, Role::Slot);
        });
        let given = [dz, self.x.clone(), self.scale.clone(), mean, var];
        self.recorder.push(BatchNormGrad { eps: EPS }, &given, &outputs);
    }
}

#[test]
fn normalisation_takes_the_relu_along() {
    let mut block = Block::new(DType::Float32);
    let stats = block.forward();
    block.backward(stats, |_| ());
    assert_eq!(
        rewritten(block.recorder, rule::apply).0,
        [STATISTICS, "normalize", "batch_norm_relu_grad"]
    );
}

#[test]
fn not_where_what_was_normalised_is_seen_otherwise() {
    let whole = [STATISTICS, "normalize", "relu", "relu_grad", "batch_norm_grad"];
    let mut kept = Block::new(DType::Float32);
    let z = kept.z.clone();
    kept.recorder.number(&z, Role::Slot);
    let stats = kept.forward();
    kept.backward(stats, |_| ());
    assert_eq!(rewritten(kept.recorder, rule::apply).0, whole);

    let mut read = Block::new(DType::Float32);
    let (stats, z) = (read.forward(), read.z.clone());
    read.recorder.negate(&z, &like(&z));
    read.backward(stats, |_| ());
    assert_eq!(
        rewritten(read.recorder, rule::apply).0,
        [&whole[..3], &["neg"], &whole[3..]].concat()
    );

    let mut half = Block::new(DType::Float16);
    let stats = half.forward();
    half.backward(stats, |_| ());
    let apart = [STATISTICS, "normalize", "relu_grad", "batch_norm_grad"];
    assert_eq!(rewritten(half.recorder, rule::apply).0, apart);
}

#[test]
fn gradients_stay_apart_where_their_inputs_changed() {
    let apart = [STATISTICS, "normalize", "relu_grad", "neg", "batch_norm_grad"];
    for which in 0..2 {
        let mut block = Block::new(DType::Float32);
        let stats = block.forward();
        let changed = if which == 0 { block.scale.clone() } else { block.dy.clone() };
        block.backward(stats, |recorder| {
            let other = like(&changed);
            recorder.number(&other, Role::Captured);
            recorder.negate(&other, &changed);
        });
        assert_eq!(rewritten(block.recorder, rule::apply).0, apart);
    }
    let mut other = Block::new(DType::Float32);
    let [mean, var] = other.forward();
    let second = like(&mean);
    other.recorder.number(&second, Role::Captured);
    other.backward([second, var], |_| ());
    let apart = [STATISTICS, "normalize", "relu_grad", "batch_norm_grad"];
    assert_eq!(rewritten(other.recorder, rule::apply).0, apart);
}

#[test]
fn gradients_do_not_read_the_bias() {
    let mut block = Block::new(DType::Float32);
    let (stats, bias) = (block.forward(), block.bias.clone());
    block.backward(stats, |recorder| recorder.negate(&bias, &bias));
    let joined = [STATISTICS, "normalize", "neg", "batch_norm_relu_grad"];
    assert_eq!(rewritten(block.recorder, rule::apply).0, joined);
}

#[test]
fn gradients_of_something_else_stay_apart() {
    for (f, is_turned) in [(UnaryFn::Tanh, false), (RELU, true)] {
        let mut block = Block::new(DType::Float32);
        let (stats, mut given) = (block.forward(), [block.dy.clone(), block.y.clone()]);
        if is_turned {
            given.reverse();
        }
        block.backward_of(f, given, stats, |_| ());
        let (names, _) = rewritten(block.recorder, rule::apply);
        assert_eq!((names.len(), names[3]), (4, "batch_norm_grad"), "{names:?}");
    }
}

#[test]
fn the_relu_of_what_lies_otherwise_stays_apart() {
    let turned = |view: &View| view.permute(&[0, 1, 3, 2]).unwrap();
    let mut read = Block::new(DType::Float32);
    read.forward_of(&turned(&read.z.clone()));
    let mut written = Block::new(DType::Float32);
    written.y = turned(&written.y);
    written.forward();
    for block in [read, written] {
        assert_eq!(rewritten(block.recorder, rule::apply).0, [STATISTICS, "normalize", "relu"]);
    }
}

#[test]
fn what_the_relu_made_stays_where_it_is_needed() {
    let mut block = Block::new(DType::Float32);
    let (stats, y) = (block.forward(), block.y.clone());
    let out = like(&y);
    block.recorder.number(&out, Role::Slot);
    block.backward(stats, |_| ());
    block.recorder.add(&y, &y, &out);
    let (names, graph) = rewritten(block.recorder, rule::apply);
    assert_eq!(names, [STATISTICS, "normalize", "batch_norm_relu_grad", "add"]);
    graph.verify().unwrap();
}

/// `relu(batch_norm(x) + other)`, the other operand first or second.
fn residual(dtype: DType, is_first: bool, relu: bool) -> Block {
    let mut block = Block::new(dtype);
    let (sum, other) = (like(&block.x), block.dy.clone());
    let [mean, var] = [(); 2].map(|()| like(&block.scale));
    let (x, scale, z) = (block.x.clone(), block.scale.clone(), block.z.clone());
    let outputs = [z.clone(), mean, var];
    block.recorder.push(BatchNorm { eps: EPS }, &[x, scale.clone(), scale], &outputs);
    let (a, b) = if is_first { (&other, &z) } else { (&z, &other) };
    block.recorder.add(a, b, &sum);
    let y = block.y.clone();
    let end = if relu { RELU } else { UnaryFn::Neg };
    block.recorder.push(Unary { f: end }, std::slice::from_ref(&sum), std::slice::from_ref(&y));
    block
}

#[test]
fn normalisation_takes_an_addition_along() {
    for is_first in [true, false] {
        let block = residual(DType::Float32, is_first, true);
        assert_eq!(rewritten(block.recorder, rule::apply).0, [STATISTICS, "normalize"]);
    }
    let block = residual(DType::Float32, false, false);
    assert_eq!(rewritten(block.recorder, rule::apply).0, [STATISTICS, "normalize", "neg"]);
    let block = residual(DType::Float16, false, true);
    assert_eq!(rewritten(block.recorder, rule::apply).0, [STATISTICS, "normalize", "add", "relu"]);
}

/// `relu(batch_norm(x) + other)` by given statistics.
fn evaluation(adds: bool) -> Block {
    let mut block = Block::new(DType::Float32);
    let (x, scale, z, y) = (block.x.clone(), block.scale.clone(), block.z.clone(), block.y.clone());
    let inputs = [vec![x], vec![scale; 4]].concat();
    block.recorder.push(BatchNormInference { eps: EPS }, &inputs, std::slice::from_ref(&z));
    let sum = like(&z);
    if adds {
        block.recorder.add(&z, &block.dy.clone(), &sum);
    }
    let last = if adds { sum } else { z };
    block.recorder.number(&y, Role::Slot);
    block.recorder.push(Unary { f: RELU }, &[last], &[y]);
    block
}

#[test]
fn normalisation_by_given_statistics_is_one_pass() {
    for adds in [true, false] {
        let (names, graph) = rewritten(evaluation(adds).recorder, rule::apply);
        assert_eq!(names, ["batch_norm_factor", "normalize"]);
        graph.verify().unwrap();
    }
    let mut seen = evaluation(false);
    let (z, out) = (seen.z.clone(), like(&seen.z));
    seen.recorder.number(&out, Role::Slot);
    seen.recorder.negate(&z, &out);
    let names = rewritten(seen.recorder, rule::apply).0;
    assert_eq!(names, ["batch_norm_factor", "normalize", "relu", "neg"]);
}

use std::sync::Arc;

use super::rewrite;
use crate::device::cpu;
use crate::dtype::DType;
use crate::graph::draft::Draft;
use crate::graph::testing::Recorder;
use crate::graph::{Graph, Role};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::ops::norm::{BatchNorm, BatchNormGrad};
use crate::ops::optim::Sgd;
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};
use crate::ops::{Kind, Meta, Prepared, Real, View};

/// The names of the operations that are left of a recording.
fn rewritten(recorder: Recorder) -> (Vec<&'static str>, Graph) {
    let mut prepare =
        |kind: &Kind, inputs: &[View]| Prepared::new(kind, inputs, None, 1).map(Arc::new);
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    rewrite(&mut draft, &mut prepare).unwrap();
    let (queue, roles) = draft.finish(&[]);
    let graph = Graph::new(queue, roles).unwrap();
    (graph.nodes().iter().map(|node| node.op.name()).collect(), graph)
}

/// Batch normalisation, ReLU, and the gradients of both.
struct Block {
    recorder: Recorder,
    x: View,
    scale: View,
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
        let scale = given(DType::Float32, &[3]);
        let (z, y) = (like(&x), like(&x));
        Block { recorder, x, scale, dy, z, y }
    }

    fn forward(&mut self) -> [View; 2] {
        let [mean, var] = [(); 2].map(|()| like(&self.scale));
        let (x, scale) = (self.x.clone(), self.scale.clone());
        let outputs = [self.z.clone(), mean.clone(), var.clone()];
        self.recorder.push(BatchNorm { eps: EPS }, &[x, scale.clone(), scale], &outputs);
        self.recorder.push(
            Unary { f: RELU },
            std::slice::from_ref(&self.z),
            std::slice::from_ref(&self.y),
        );
        [mean, var]
    }

    /// With something in between.
    fn backward(&mut self, [mean, var]: [View; 2], between: impl FnOnce(&mut Recorder)) {
        let (dz, dx) = (like(&self.x), like(&self.x));
        let given = [self.dy.clone(), self.y.clone()];
        self.recorder.push(UnaryGrad { f: RELU }, &given, std::slice::from_ref(&dz));
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

fn like(view: &View) -> View {
    View::of(cpu::device(), &view.meta)
}

#[test]
fn normalisation_takes_the_relu_along() {
    let mut block = Block::new(DType::Float32);
    let stats = block.forward();
    block.backward(stats, |_| ());
    assert_eq!(rewritten(block.recorder).0, [STATISTICS, "normalize", "batch_norm_relu_grad"]);
}

#[test]
fn not_where_what_was_normalised_is_seen_otherwise() {
    let whole = [STATISTICS, "normalize", "relu", "relu_grad", "batch_norm_grad"];
    let mut kept = Block::new(DType::Float32);
    let z = kept.z.clone();
    kept.recorder.number(&z, Role::Slot);
    let stats = kept.forward();
    kept.backward(stats, |_| ());
    assert_eq!(rewritten(kept.recorder).0, whole);

    let mut read = Block::new(DType::Float32);
    let (stats, z) = (read.forward(), read.z.clone());
    read.recorder.negate(&z, &like(&z));
    read.backward(stats, |_| ());
    assert_eq!(rewritten(read.recorder).0, [&whole[..3], &["neg"], &whole[3..]].concat());

    let mut half = Block::new(DType::Float16);
    let stats = half.forward();
    half.backward(stats, |_| ());
    let apart = [STATISTICS, "normalize", "relu_grad", "batch_norm_grad"];
    assert_eq!(rewritten(half.recorder).0, apart);
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
        assert_eq!(rewritten(block.recorder).0, apart);
    }
    let mut other = Block::new(DType::Float32);
    let [mean, var] = other.forward();
    let second = like(&mean);
    other.recorder.number(&second, Role::Captured);
    other.backward([second, var], |_| ());
    let apart = [STATISTICS, "normalize", "relu_grad", "batch_norm_grad"];
    assert_eq!(rewritten(other.recorder).0, apart);
}

#[test]
fn what_the_relu_made_stays_where_it_is_needed() {
    let mut block = Block::new(DType::Float32);
    let (stats, y) = (block.forward(), block.y.clone());
    let out = like(&y);
    block.recorder.number(&out, Role::Slot);
    block.backward(stats, |_| ());
    block.recorder.add(&y, &y, &out);
    let (names, graph) = rewritten(block.recorder);
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
        assert_eq!(rewritten(block.recorder).0, [STATISTICS, "normalize"]);
    }
    let block = residual(DType::Float32, false, false);
    assert_eq!(rewritten(block.recorder).0, [STATISTICS, "normalize", "neg"]);
    let block = residual(DType::Float16, false, true);
    assert_eq!(rewritten(block.recorder).0, [STATISTICS, "normalize", "chain"]);
}

/// A gradient of a weight as a product, and the update; with something in between. Sizes are
/// those of the weight.
fn update(
    [rows, columns]: [usize; 2],
    role: Role,
    between: impl FnOnce(&mut Recorder, [&View; 3]),
) -> Vec<&'static str> {
    let mut recorder = Recorder::default();
    let of = |shape: &[usize]| View::new(cpu::device(), Meta::new(DType::Float32, shape));
    let [x, dy, w, lr] = [&[8, rows][..], &[8, columns], &[rows, columns], &[1]].map(of);
    for view in [&x, &dy, &w, &lr] {
        recorder.number(view, Role::Captured);
    }
    let (transposed, g) = (x.permute(&[1, 0]).unwrap(), like(&w));
    recorder.number(&g, role);
    recorder.push(Matmul, &[transposed, dy.clone()], std::slice::from_ref(&g));
    between(&mut recorder, [&x, &g, &w]);
    let sgd = Sgd { momentum: false, nesterov: false, weight_decay: false };
    recorder.push(sgd, &[w.clone(), g, lr], &[w]);
    rewritten(recorder).0
}

#[test]
fn a_large_gradient_is_made_where_its_weight_is_updated() {
    assert_eq!(update([640, 100], Role::Temporary, |_, _| ()), ["matmul_update"]);
}

#[test]
fn a_gradient_is_made_apart_where_it_is_small_or_used_otherwise() {
    let apart = ["matmul", "sgd"];
    assert_eq!(update([64, 10], Role::Temporary, |_, _| ()), apart);
    assert_eq!(update([640, 100], Role::Slot, |_, _| ()), apart);
    let reads = |recorder: &mut Recorder, [_, g, _]: [&View; 3]| recorder.negate(g, &like(g));
    assert_eq!(update([640, 100], Role::Temporary, reads), ["matmul", "neg", "sgd"]);
    let writes = |recorder: &mut Recorder, [x, ..]: [&View; 3]| recorder.negate(x, x);
    assert_eq!(update([640, 100], Role::Temporary, writes), ["matmul", "neg", "sgd"]);
}

/// Elementwise operations of a few tensors of this shape.
struct Elementwise {
    recorder: Recorder,
    shape: Vec<usize>,
}

impl Elementwise {
    fn new(shape: &[usize]) -> Self {
        Elementwise { recorder: Recorder::default(), shape: shape.into() }
    }

    fn given(&mut self, shape: &[usize]) -> View {
        let view = View::new(cpu::device(), Meta::new(DType::Float32, shape));
        self.recorder.number(&view, Role::Captured);
        view
    }

    fn made(&mut self, role: Role) -> View {
        let view = View::new(cpu::device(), Meta::new(DType::Float32, &self.shape[..]));
        self.recorder.number(&view, role);
        view
    }

    fn push(&mut self, kind: impl Into<Kind>, inputs: &[&View], role: Role) -> View {
        let to = self.made(role);
        let inputs: Vec<View> = inputs.iter().map(|&view| view.clone()).collect();
        self.recorder.push(kind, &inputs, std::slice::from_ref(&to));
        to
    }
}

const ADD: Binary = Binary { f: BinaryFn::Add };
const TANH: Unary = Unary { f: UnaryFn::Tanh };

#[test]
fn elementwise_operations_become_one_pass() {
    let mut all = Elementwise::new(&[512, 256]);
    let (x, bias, one) = (all.given(&[512, 256]), all.given(&[1, 256]), all.given(&[1]));
    let biased = all.push(ADD, &[&x, &bias], Role::Temporary);
    let bent = all.push(TANH, &[&biased], Role::Temporary);
    let twice = all.push(ADD, &[&bent, &bent], Role::Temporary);
    all.push(ADD, &[&twice, &one], Role::Slot);
    let (names, graph) = rewritten(all.recorder);
    assert_eq!(names, ["chain"]);
    let node = &graph.nodes()[0];
    assert_eq!((graph.inputs(node).len(), graph.outputs(node).len()), (3, 1));
    assert!(graph.arena_bytes() < 512 * 256 * 4);
}

#[test]
fn what_is_read_elsewhere_is_written_by_the_pass() {
    let mut all = Elementwise::new(&[512, 256]);
    let x = all.given(&[512, 256]);
    let bent = all.push(TANH, &[&x], Role::Slot);
    all.push(ADD, &[&bent, &x], Role::Slot);
    let (names, graph) = rewritten(all.recorder);
    assert_eq!(names, ["chain"]);
    assert_eq!(graph.outputs(&graph.nodes()[0]).len(), 2);
}

#[test]
fn operations_stay_apart_where_one_pass_would_be_wrong_or_take_more() {
    // What lies between is read before the second operation.
    let mut early = Elementwise::new(&[512, 256]);
    let x = early.given(&[512, 256]);
    let bent = early.push(TANH, &[&x], Role::Temporary);
    let transposed = bent.permute(&[1, 0]).unwrap();
    early.recorder.push(
        Matmul,
        &[transposed, x.clone()],
        &[View::new(cpu::device(), Meta::new(DType::Float32, [256, 256]))],
    );
    early.push(ADD, &[&bent, &x], Role::Slot);
    assert_eq!(rewritten(early.recorder).0, ["tanh", "matmul", "add"]);

    // An input of the first changes in between.
    let mut changed = Elementwise::new(&[512, 256]);
    let x = changed.given(&[512, 256]);
    let bent = changed.push(TANH, &[&x], Role::Temporary);
    changed.recorder.push(TANH, &[x.clone()], &[x.clone()]);
    changed.push(ADD, &[&bent, &bent], Role::Slot);
    assert_eq!(rewritten(changed.recorder).0, ["tanh", "tanh", "add"]);

    // Columns that broadcast do not lie in rows.
    let mut columns = Elementwise::new(&[512, 256]);
    let (x, column) = (columns.given(&[512, 256]), columns.given(&[512, 1]));
    let bent = columns.push(TANH, &[&x], Role::Temporary);
    columns.push(ADD, &[&bent, &column], Role::Slot);
    assert_eq!(rewritten(columns.recorder).0, ["tanh", "add"]);
}

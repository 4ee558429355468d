use super::*;
use crate::ops::attr::{Real, Scalar};
use crate::ops::binary::{Binary, BinaryFn, BinaryScalar};
use crate::ops::gemm::Matmul;
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::rewrite::fusion::links as rule;

/// A recording of elementwise operations on a few tensors of this shape.
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

/// The rule with its default thresholds.
fn apply(draft: &mut Draft) -> Result<()> {
    let limits = draft.target().fusing();
    rule::apply(draft, limits)
}

const ADD: Binary = Binary { f: BinaryFn::Add };
const MUL: Binary = Binary { f: BinaryFn::Mul };
const DIV: Binary = Binary { f: BinaryFn::Div };
const TANH: Unary = Unary { f: UnaryFn::Tanh };

#[test]
fn elementwise_operations_become_one_pass() {
    let mut all = Elementwise::new(&[512, 256]);
    let (x, bias, one) = (all.given(&[512, 256]), all.given(&[1, 256]), all.given(&[1]));
    let column = all.given(&[512, 1]);
    let scaled = all.push(ADD, &[&x, &column], Role::Temporary);
    let biased = all.push(ADD, &[&scaled, &bias], Role::Temporary);
    let bent = all.push(TANH, &[&biased], Role::Temporary);
    let twice = all.push(ADD, &[&bent, &bent], Role::Temporary);
    all.push(ADD, &[&twice, &one], Role::Slot);
    let (names, graph) = rewritten(all.recorder, apply);
    assert_eq!(names, ["chain"]);
    let node = &graph.ops()[0];
    assert_eq!((node.inputs.len(), node.outputs.len()), (4, 1));
    assert!(graph.arena_bytes() < 512 * 256 * 4);
}

#[test]
fn what_is_read_elsewhere_is_written_by_the_pass() {
    let mut all = Elementwise::new(&[512, 256]);
    let x = all.given(&[512, 256]);
    let bent = all.push(TANH, &[&x], Role::Slot);
    all.push(ADD, &[&bent, &x], Role::Slot);
    let (names, graph) = rewritten(all.recorder, apply);
    assert_eq!(names, ["chain"]);
    assert_eq!(graph.ops()[0].outputs.len(), 2);
}

/// Hand-written cross entropy of probabilities, and its gradient, for logits computed by `tanh`.
fn cross_entropy(shape: &[usize], axis: i64) -> Elementwise {
    let mut all = Elementwise::new(shape);
    let (x, t) = (all.given(shape), all.given(shape));
    let tiny = BinaryScalar { f: BinaryFn::Add, scalar: Scalar::Real(Real(1e-4)), reverse: false };
    let log = Unary { f: UnaryFn::Log };
    let logits = all.push(TANH, &[&x], Role::Temporary);
    let p = all.push(Softmax { axis, log: false }, &[&logits], Role::Temporary);
    let kept = all.push(tiny.clone(), &[&p], Role::Temporary);
    let logarithm = all.push(log, &[&kept], Role::Temporary);
    let terms = all.push(MUL, &[&logarithm, &t], Role::Temporary);
    let loss = View::new(cpu::device(), Meta::new(DType::Float32, [0; 0]));
    let sum = Reduce { f: ReduceFn::Sum, axes: smallvec::SmallVec::new(), keepdims: false };
    all.recorder.push(sum, &[terms], &[loss]);
    let safe = all.push(tiny, &[&p], Role::Temporary);
    let slope = all.push(DIV, &[&t, &safe], Role::Temporary);
    all.push(SoftmaxGrad { axis, log: false }, &[&slope, &p], Role::Slot);
    all
}

#[test]
fn softmax_and_cross_entropy_become_one_pass_forward_and_one_backward() {
    for shape in [&[32, 10][..], &[1024, 1024], &[4, 512, 1000]] {
        let (names, _) = rewritten(cross_entropy(shape, -1).recorder, apply);
        assert_eq!(names, ["chain", "sum", "chain"], "{shape:?}");
    }
    // Along another axis, or the last counted from the first; with rows that are too long, and with
    // results that stay in the cache.
    for (shape, axis) in
        [([1024, 1024], 0), ([1024, 1024], 1), ([512, 5000], -1), ([512, 1000], -1)]
    {
        let (names, _) = rewritten(cross_entropy(&shape, axis).recorder, apply);
        assert_eq!(names, ["tanh", "softmax", "chain", "sum", "chain", "softmax_grad"]);
    }
}

/// Results of this size stay in the cache between two operations, but not in the producer's.
#[test]
fn what_works_on_rows_becomes_one_pass_behind_a_product_that_is_made_in_blocks() {
    for is_made in [true, false] {
        let mut all = Elementwise::new(&[1024, 512]);
        let (a, b) = (all.given(&[1024, 32]), all.given(&[32, 512]));
        let x = match is_made {
            true => all.push(Matmul, &[&a, &b], Role::Temporary),
            false => all.given(&[1024, 512]),
        };
        let p = all.push(Softmax { axis: -1, log: false }, &[&x], Role::Temporary);
        all.push(TANH, &[&p], Role::Slot);
        let want = if is_made { ["matmul", "chain"] } else { ["softmax", "tanh"] };
        assert_eq!(rewritten(all.recorder, apply).0, want);
    }
}

/// The fused result can reuse the memory of an input that only the first operation reads.
#[test]
fn what_is_needed_by_the_first_only_is_kept_for_the_next_step() {
    let shape = [1024, 1024];
    let mut all = Elementwise::new(&shape);
    let x = all.given(&shape);
    let (dy, y) = (all.push(TANH, &[&x], Role::Temporary), all.push(TANH, &[&x], Role::Temporary));
    let product = all.given(&shape);
    all.recorder.push(Matmul, &[dy.clone(), y.clone()], &[product]);
    let grad = SoftmaxGrad { axis: -1, log: false };
    let dx = all.push(grad, &[&dy, &y], Role::Temporary);
    all.push(MUL, &[&dx, &x], Role::Temporary);
    let (names, graph) = rewritten(all.recorder, apply);
    assert_eq!(names, ["tanh", "tanh", "matmul", "chain"]);
    assert!(graph.arena_bytes() < 3 * 1024 * 1024 * 4);
}

#[test]
fn operations_stay_apart_where_one_pass_would_be_wrong_or_take_more() {
    // The intermediate is read before the second operation.
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
    assert_eq!(rewritten(early.recorder, apply).0, ["tanh", "matmul", "add"]);

    // An input of the first changes in between.
    let mut changed = Elementwise::new(&[512, 256]);
    let x = changed.given(&[512, 256]);
    let bent = changed.push(TANH, &[&x], Role::Temporary);
    let again = std::slice::from_ref(&x);
    changed.recorder.push(TANH, again, again);
    changed.push(ADD, &[&bent, &bent], Role::Slot);
    assert_eq!(rewritten(changed.recorder, apply).0, ["tanh", "tanh", "add"]);

    // The intermediate is also read in part.
    let mut part = Elementwise::new(&[512, 256]);
    let x = part.given(&[512, 256]);
    let bent = part.push(TANH, &[&x], Role::Temporary);
    part.push(ADD, &[&bent, &first_rows(&bent, 1)], Role::Slot);
    assert_eq!(rewritten(part.recorder, apply).0, ["tanh", "add"]);

    // The first result has a layout other than the fused pass would give it.
    let mut turned = Elementwise::new(&[512, 512]);
    let x = turned.given(&[512, 512]);
    let bent = turned.made(Role::Slot).permute(&[1, 0]).unwrap();
    turned.recorder.push(TANH, std::slice::from_ref(&x), std::slice::from_ref(&bent));
    turned.push(ADD, &[&x, &bent], Role::Slot);
    assert_eq!(rewritten(turned.recorder, apply).0, ["tanh", "add"]);

    // Broadcast planes are neither rows nor columns of one matrix.
    let mut planes = Elementwise::new(&[8, 64, 256]);
    let (x, plane) = (planes.given(&[8, 64, 256]), planes.given(&[8, 1, 256]));
    let bent = planes.push(TANH, &[&x], Role::Temporary);
    planes.push(ADD, &[&bent, &plane], Role::Slot);
    assert_eq!(rewritten(planes.recorder, apply).0, ["tanh", "add"]);
}

#[test]
fn what_is_added_is_kept_for_the_next_operation_but_not_while_others_run() {
    for is_apart in [false, true] {
        let mut all = Elementwise::new(&[512, 256]);
        let (a, b) = (all.given(&[512, 32]), all.given(&[32, 256]));
        let [x, y] = [(); 2].map(|()| all.push(Matmul, &[&a, &b], Role::Temporary));
        let sum = all.push(ADD, &[&x, &y], Role::Temporary);
        if is_apart {
            all.push(Matmul, &[&a, &b], Role::Slot);
        }
        all.push(TANH, &[&sum], Role::Slot);
        let want = if is_apart { &["add", "matmul", "tanh"][..] } else { &["chain"] };
        assert_eq!(rewritten(all.recorder, apply).0[2..], *want);
    }
}

use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::rewrite::chain as rule;

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
    let column = all.given(&[512, 1]);
    let scaled = all.push(ADD, &[&x, &column], Role::Temporary);
    let biased = all.push(ADD, &[&scaled, &bias], Role::Temporary);
    let bent = all.push(TANH, &[&biased], Role::Temporary);
    let twice = all.push(ADD, &[&bent, &bent], Role::Temporary);
    all.push(ADD, &[&twice, &one], Role::Slot);
    let (names, graph) = rewritten(all.recorder, rule::apply);
    assert_eq!(names, ["chain"]);
    let node = &graph.nodes()[0];
    assert_eq!((graph.inputs(node).len(), graph.outputs(node).len()), (4, 1));
    assert!(graph.arena_bytes() < 512 * 256 * 4);
}

#[test]
fn what_is_read_elsewhere_is_written_by_the_pass() {
    let mut all = Elementwise::new(&[512, 256]);
    let x = all.given(&[512, 256]);
    let bent = all.push(TANH, &[&x], Role::Slot);
    all.push(ADD, &[&bent, &x], Role::Slot);
    let (names, graph) = rewritten(all.recorder, rule::apply);
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
    assert_eq!(rewritten(early.recorder, rule::apply).0, ["tanh", "matmul", "add"]);

    // An input of the first changes in between.
    let mut changed = Elementwise::new(&[512, 256]);
    let x = changed.given(&[512, 256]);
    let bent = changed.push(TANH, &[&x], Role::Temporary);
    let again = std::slice::from_ref(&x);
    changed.recorder.push(TANH, again, again);
    changed.push(ADD, &[&bent, &bent], Role::Slot);
    assert_eq!(rewritten(changed.recorder, rule::apply).0, ["tanh", "tanh", "add"]);

    // Planes that are repeated are neither rows nor columns of one matrix.
    let mut planes = Elementwise::new(&[8, 64, 256]);
    let (x, plane) = (planes.given(&[8, 64, 256]), planes.given(&[8, 1, 256]));
    let bent = planes.push(TANH, &[&x], Role::Temporary);
    planes.push(ADD, &[&bent, &plane], Role::Slot);
    assert_eq!(rewritten(planes.recorder, rule::apply).0, ["tanh", "add"]);
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
        assert_eq!(rewritten(all.recorder, rule::apply).0[2..], *want);
    }
}

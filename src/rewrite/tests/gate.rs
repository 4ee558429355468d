use super::products::Net;
use super::*;
use crate::device::onednn;
use crate::ops::attr::Real;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::conv::Conv;
use crate::ops::geometry::Geometry;
use crate::rewrite::fusion::gate as rule;

const MUL: Binary = Binary { f: BinaryFn::Mul };
const SIGMOID: Unary = Unary { f: UnaryFn::Sigmoid };

/// A convolution's result of this role, and what a function of it makes.
fn gated(net: &mut Net, role: Role, gate: UnaryFn) -> [View; 2] {
    let (x, w) = (net.given(&[1, 16, 12, 12]), net.given(&[32, 16, 3, 3]));
    let geometry = Geometry::new(&[1, 1], &[1, 1, 1, 1], &[1, 1], 1);
    let y = net.push(Conv { geometry }, &[&x, &w], role);
    let gate = net.push(Unary { f: gate }, &[&y], Role::Temporary);
    [y, gate]
}

fn names(net: Net) -> Vec<&'static str> {
    net.rewritten(rule::apply).0
}

#[test]
fn convolutions_multiply_by_functions_of_their_results() {
    let hard = UnaryFn::HardSigmoid { alpha: Real(1.0 / 6.0), gamma: Real(0.5) };
    for (gate, apart) in [(UnaryFn::Sigmoid, APART), (hard, ["conv2d", "hardsigmoid", "mul"])] {
        for is_first in [false, true] {
            let mut net = Net::new();
            let [y, gate] = gated(&mut net, Role::Temporary, gate.clone());
            let operands = if is_first { [&gate, &y] } else { [&y, &gate] };
            net.push(MUL, &operands, Role::Slot);
            let want = if onednn::is_available() { &["conv2d_chain"][..] } else { &apart };
            assert_eq!(names(net), want);
        }
    }
}

const APART: [&str; 3] = ["conv2d", "sigmoid", "mul"];

#[test]
fn products_stay_apart_where_the_result_is_needed_or_the_function_is_of_something_else() {
    let mut kept = Net::new();
    let [y, gate] = gated(&mut kept, Role::Slot, UnaryFn::Sigmoid);
    kept.push(MUL, &[&y, &gate], Role::Slot);
    assert_eq!(names(kept), APART);

    let mut read = Net::new();
    let [y, gate] = gated(&mut read, Role::Temporary, UnaryFn::Sigmoid);
    read.push(MUL, &[&y, &gate], Role::Slot);
    read.push(SIGMOID, &[&y], Role::Slot);
    assert_eq!(names(read), [&APART[..], &["sigmoid"]].concat());

    let mut other = Net::new();
    let [_, gate] = gated(&mut other, Role::Temporary, UnaryFn::Sigmoid);
    let x = other.given(&[1, 32, 12, 12]);
    other.push(MUL, &[&x, &gate], Role::Slot);
    assert_eq!(names(other), APART);

    let mut squared = Net::new();
    let [_, gate] = gated(&mut squared, Role::Temporary, UnaryFn::Sigmoid);
    squared.push(MUL, &[&gate, &gate], Role::Slot);
    assert_eq!(names(squared), APART);

    let mut relu = Net::new();
    let [y, gate] = gated(&mut relu, Role::Temporary, UnaryFn::Relu);
    relu.push(MUL, &[&y, &gate], Role::Slot);
    assert_eq!(names(relu), ["conv2d", "relu", "mul"]);
}

#[test]
fn they_multiply_only_where_results_may_round() {
    for rounds in [false, true] {
        let mut net = Net::new();
        let [y, gate] = gated(&mut net, Role::Temporary, UnaryFn::Sigmoid);
        net.push(MUL, &[&y, &gate], Role::Slot);
        let all: Rule = if rounds { by::<true> } else { by::<false> };
        let has_both = net.rewritten(all).0.contains(&"conv2d_chain");
        assert_eq!(has_both, rounds && onednn::is_available());
    }
}

/// All rules.
fn by<const ROUNDS: bool>(draft: &mut Draft) -> Result<()> {
    rewrite(draft, Allowed { keeps: false, rounds: ROUNDS, limits: Limits::DEFAULT }).map(|_| ())
}

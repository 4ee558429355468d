use super::products::Net;
use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::conv::Conv;
use crate::ops::geometry::Geometry;
use crate::rewrite::fold_affine as rule;

const ADD: Binary = Binary { f: BinaryFn::Add };
const SUB: Binary = Binary { f: BinaryFn::Sub };
const MUL: Binary = Binary { f: BinaryFn::Mul };
const DIV: Binary = Binary { f: BinaryFn::Div };

/// The result of a convolution with 8 channels.
fn convolved(net: &mut Net, has_bias: bool, role: Role) -> View {
    let (x, w, b) = (net.given(&[2, 4, 9, 9]), net.given(&[8, 4, 3, 3]), net.given(&[8]));
    let kind = Conv { geometry: Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1) };
    let inputs = [&x, &w, &b];
    net.push(kind, &inputs[..if has_bias { 3 } else { 2 }], role)
}

/// What is left of a convolution followed by an operation with an operand of this shape.
fn names(f: Binary, has_bias: bool, shape: &[usize]) -> Vec<&'static str> {
    let mut net = Net::new();
    let (y, c) = (convolved(&mut net, has_bias, Role::Temporary), net.given(shape));
    net.push(f, &[&y, &c], Role::Slot);
    net.rewritten(rule::apply).0
}

#[test]
fn factors_go_into_weights_and_bias() {
    for shape in [&[8, 1, 1][..], &[1, 8, 1, 1], &[1], &[], &[1, 1, 1, 1]] {
        for (f, name) in [(MUL, "mul"), (DIV, "div")] {
            assert_eq!(names(f.clone(), true, shape), [name, name, "conv2d"]);
            assert_eq!(names(f, false, shape), [name, "conv2d"]);
        }
    }
}

#[test]
fn terms_go_into_the_bias() {
    for shape in [&[8, 1, 1][..], &[1, 8, 1, 1]] {
        assert_eq!(names(ADD, true, shape), ["add", "conv2d"]);
        assert_eq!(names(SUB, true, shape), ["sub", "conv2d"]);
        assert_eq!(names(ADD, false, shape), ["conv2d"]);
        assert_eq!(names(SUB, false, shape), ["neg", "conv2d"]);
    }
    assert_eq!(names(SUB, true, &[]), ["sub", "conv2d"]);
    assert_eq!(names(ADD, false, &[1]), ["conv2d", "add"], "no bias of one element");
}

#[test]
fn a_chain_of_them_is_one_convolution() {
    let mut net = Net::new();
    let y = convolved(&mut net, false, Role::Temporary);
    let [scale, shift] = [(); 2].map(|()| net.given(&[8, 1, 1]));
    let scaled = net.push(MUL, &[&scale, &y], Role::Temporary);
    net.push(ADD, &[&shift, &scaled], Role::Slot);
    assert_eq!(net.rewritten(rule::apply).0, ["mul", "conv2d"]);
}

#[test]
fn operands_may_be_made_late_if_images_need_not_be_kept_for_it() {
    for is_read in [false, true] {
        let mut net = Net::new();
        let x = net.given(&[2, 4, 9, 9]);
        let x = net.push(Unary { f: UnaryFn::Exp }, &[&x], Role::Temporary);
        let (w, c) = (net.given(&[2, 4, 3, 3]), net.given(&[2, 1, 1]));
        let kind = Conv { geometry: Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1) };
        let y = net.push(kind, &[&x, &w], Role::Temporary);
        let c = net.push(Unary { f: UnaryFn::Neg }, &[&c], Role::Temporary);
        net.push(MUL, &[&y, &c], Role::Slot);
        if is_read {
            net.push(Unary { f: UnaryFn::Exp }, &[&x], Role::Slot);
        }
        let want = if is_read {
            &["exp", "neg", "mul", "conv2d", "exp"][..]
        } else {
            &["exp", "conv2d", "neg", "mul"]
        };
        assert_eq!(net.rewritten(rule::apply).0, want);
    }
}

/// Weights and bias are made where the convolution was, so that its images need not be kept.
#[test]
fn constants_are_no_reason_to_run_later() {
    let mut net = Net::new();
    let (y, c) = (convolved(&mut net, true, Role::Temporary), net.given(&[8, 1, 1]));
    let x = net.given(&[5]);
    net.push(Unary { f: UnaryFn::Exp }, &[&x], Role::Slot);
    net.push(MUL, &[&y, &c], Role::Slot);
    assert_eq!(net.rewritten(rule::apply).0, ["mul", "mul", "conv2d", "exp"]);
}

/// As where images are (N, H, W, C) for everything but convolutions.
#[test]
fn channels_may_be_any_axis_of_what_is_seen() {
    for (shape, fits) in [(&[8][..], true), (&[9, 1], false), (&[1, 1, 1, 8], true)] {
        let mut net = Net::new();
        let (y, c) = (convolved(&mut net, true, Role::Temporary), net.given(shape));
        let y = y.permute(&[0, 2, 3, 1]).unwrap();
        let scaled = net.push(MUL, &[&y, &c], Role::Temporary);
        net.push(ADD, &[&scaled, &c], Role::Slot);
        let want =
            if fits { &["mul", "mul", "add", "conv2d"][..] } else { &["conv2d", "mul", "add"] };
        let (names, graph) = net.rewritten(rule::apply);
        assert_eq!(names, want, "{shape:?}");
        let images = if fits { 3 } else { 0 };
        assert_eq!(graph.ops()[images].outputs[0].meta.shape[..], [2, 8, 9, 9]);
    }
}

#[test]
fn not_what_is_no_affine_map_of_each_channel() {
    for shape in [&[9][..], &[9, 9], &[2, 1, 1, 1], &[1, 8, 9, 1], &[3, 2, 8, 1, 1]] {
        assert_eq!(names(MUL, true, shape), ["conv2d", "mul"], "{shape:?}");
    }
    assert_eq!(names(Binary { f: BinaryFn::Maximum }, true, &[1]), ["conv2d", "maximum"]);
    for f in [SUB, DIV] {
        let mut net = Net::new();
        let (y, c) = (convolved(&mut net, true, Role::Temporary), net.given(&[1]));
        net.push(f.clone(), &[&c, &y], Role::Slot);
        assert_eq!(net.rewritten(rule::apply).0, ["conv2d", Kind::from(f).family().name()]);
    }
}

#[test]
fn not_where_the_result_is_needed_or_operands_change() {
    let mut kept = Net::new();
    let (y, c) = (convolved(&mut kept, true, Role::Slot), kept.given(&[1]));
    kept.push(MUL, &[&y, &c], Role::Slot);
    assert_eq!(kept.rewritten(rule::apply).0, ["conv2d", "mul"]);

    let mut changing = Net::new();
    let (y, c) = (convolved(&mut changing, true, Role::Temporary), changing.given(&[1]));
    changing.push(MUL, &[&y, &c], Role::Slot);
    changing.recorder.negate(&c, &c);
    assert_eq!(changing.rewritten(rule::apply).0, ["conv2d", "mul", "neg"]);
}

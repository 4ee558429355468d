use super::products::{ADD, Net};
use super::*;
use crate::graph::testing::Empty;
use crate::ops::conv::Conv;
use crate::ops::gemm::Matmul;
use crate::ops::geometry::Geometry;
use crate::ops::linalg::{Linalg, LinalgFn};
use crate::rewrite::fusion::producer as rule;

const RELU: Unary = Unary { f: UnaryFn::Relu };
const NEG: Unary = Unary { f: UnaryFn::Neg };
const LARGE: [usize; 2] = [1024, 512];

/// The rule with its default thresholds.
fn apply(draft: &mut Draft) -> Result<()> {
    let limits = draft.target().fusing();
    rule::apply(draft, limits)
}

#[test]
fn a_product_takes_along_what_follows() {
    for shape in [LARGE, [8, 4]] {
        let mut net = Net::new();
        let y = net.product(shape, Role::Temporary);
        let bias = net.given(&[shape[1]]);
        net.push(ADD, &[&y, &bias], Role::Slot);
        let (names, graph) = net.rewritten(apply);
        assert_eq!(names, ["matmul_chain"]);
        assert_eq!(graph.ops()[0].outputs.len(), 1);
        assert!(graph.arena_bytes() <= (shape[0] * shape[1] * 4).next_multiple_of(64));
    }
}

#[test]
fn scores_of_attention_take_along_their_scale() {
    let mut net = Net::new();
    let [q, k] = [(); 2].map(|()| net.given(&[4, 128, 8, 32]));
    let (q, k) = (q.permute(&[0, 2, 1, 3]).unwrap(), k.permute(&[0, 2, 3, 1]).unwrap());
    let scores = net.push(Matmul, &[&q, &k], Role::Temporary);
    let scale = net.given(&[1]);
    net.push(ADD, &[&scores, &scale], Role::Slot);
    assert_eq!(net.rewritten(apply).0, ["matmul_chain"]);
}

#[test]
fn a_convolution_takes_along_what_follows() {
    let mut net = Net::new();
    let (x, w) = (net.given(&[32, 3, 32, 32]), net.given(&[16, 3, 3, 3]));
    let geometry = Geometry::new(&[1; 2], &[1; 4], &[1; 2], 1);
    let y = net.push(Conv { geometry }, &[&x, &w], Role::Temporary);
    net.push(RELU, &[&y], Role::Slot);
    assert_eq!(net.rewritten(apply).0, ["conv2d_chain"]);
}

#[test]
fn a_result_that_is_read_elsewhere_is_written_too() {
    for role in [Role::Temporary, Role::Slot] {
        let mut net = Net::new();
        let y = net.product(LARGE, role);
        let z = net.push(RELU, &[&y], Role::Slot);
        net.push(ADD, &[&z, &y], Role::Slot);
        let (names, graph) = net.rewritten(apply);
        assert_eq!(names, ["matmul_chain", "add"]);
        assert_eq!(graph.ops()[0].outputs.len(), 2);
    }
}

/// Two large products x^T dy, and their sum: in a new tensor, or in place of the first.
fn collected(is_new: bool) -> (Vec<&'static str>, Graph) {
    let mut net = Net::new();
    let (x, dy) = (net.given(&[64, 640]), net.given(&[64, 512]));
    let x = x.permute(&[1, 0]).unwrap();
    let [first, second] = [(); 2].map(|()| net.push(Matmul, &[&x, &dy], Role::Temporary));
    if is_new {
        net.push(ADD, &[&first, &second], Role::Slot);
    } else {
        net.recorder.add(&first, &second, &first);
        net.push(RELU, &[&first], Role::Slot);
    }
    net.rewritten(apply)
}

#[test]
fn a_gradient_that_is_added_to_others_takes_no_memory_of_its_own() {
    for is_new in [true, false] {
        let (names, graph) = collected(is_new);
        assert_eq!(names[..2], ["matmul", "matmul_chain"]);
        assert!(graph.arena_bytes() < 2 * 640 * 512 * 4);
    }
}

#[test]
fn what_stays_after_the_run_is_not_written_before_what_may_fail() {
    for may_fail in [true, false] {
        let mut net = Net::new();
        let (kept, square) = (net.given(&LARGE), net.given(&[8, 8]));
        let y = net.product(LARGE, Role::Temporary);
        let f = if may_fail { LinalgFn::Inv } else { LinalgFn::Det };
        net.push(Linalg { f }, &[&square], Role::Slot);
        net.recorder.add(&kept, &y, &kept);
        let want = if may_fail { &["inv", "matmul_chain"] } else { &["matmul_chain", "det"] };
        assert_eq!(net.rewritten(apply).0, want);
    }
}

#[test]
fn both_are_one_where_the_product_was_made_if_a_factor_changes_afterwards() {
    let mut net = Net::new();
    let (a, b) = (net.given(&[1024, 32]), net.given(&[32, 512]));
    let y = net.push(Matmul, &[&a, &b], Role::Temporary);
    net.recorder.negate(&a, &a);
    net.push(RELU, &[&y], Role::Slot);
    assert_eq!(net.rewritten(apply).0, ["matmul_chain", "neg"]);
}

#[test]
fn what_others_read_in_between_is_written_where_it_was() {
    let mut net = Net::new();
    let y = net.product(LARGE, Role::Temporary);
    net.push(NEG, &[&y], Role::Slot);
    net.push(RELU, &[&y], Role::Slot);
    assert_eq!(net.rewritten(apply).0, ["matmul_chain", "relu"]);
}

#[test]
fn a_sum_that_is_read_in_between_is_written_where_it_was() {
    let mut net = Net::new();
    let (y, sum) = (net.product(LARGE, Role::Temporary), net.given(&LARGE));
    net.push(NEG, &[&sum], Role::Slot);
    net.recorder.add(&y, &sum, &sum);
    assert_eq!(net.rewritten(apply).0, ["neg", "matmul_chain"]);
}

#[test]
fn operations_stay_apart_where_one_would_be_wrong_or_bring_nothing() {
    // The product is neither short nor computed in blocks.
    let mut middle = Net::new();
    let y = middle.product([512, 256], Role::Temporary);
    middle.push(RELU, &[&y], Role::Slot);
    assert_eq!(middle.rewritten(apply).0, ["matmul", "relu"]);

    // The product is read before the addend is available.
    let mut early = Net::new();
    let y = early.product(LARGE, Role::Temporary);
    let part = y.permute(&[1, 0]).unwrap();
    let b = early.given(&[1024, 8]);
    early.push(Matmul, &[&part, &b], Role::Slot);
    let row = early.given(&[512]);
    let negated = early.push(NEG, &[&row], Role::Temporary);
    early.push(ADD, &[&y, &negated], Role::Slot);
    assert_eq!(early.rewritten(apply).0, ["matmul", "matmul", "neg", "add"]);

    // A factor changes before the link, which reads something that is not available earlier.
    let mut changed = Net::new();
    let (a, b) = (changed.given(&[1024, 32]), changed.given(&[32, 512]));
    let y = changed.push(Matmul, &[&a, &b], Role::Temporary);
    changed.recorder.negate(&a, &a);
    let row = changed.given(&[512]);
    let negated = changed.push(NEG, &[&row], Role::Temporary);
    changed.push(ADD, &[&y, &negated], Role::Slot);
    assert_eq!(changed.rewritten(apply).0, ["matmul", "neg", "neg", "add"]);

    // The product is also read in part.
    let mut part = Net::new();
    let y = part.product([8, 8], Role::Temporary);
    part.push(ADD, &[&y, &first_rows(&y, 1)], Role::Slot);
    assert_eq!(part.rewritten(apply).0, ["matmul", "add"]);

    // The link writes a factor.
    let mut onto = Net::new();
    let (a, b) = (onto.given(&[768, 512]), onto.given(&[512, 512]));
    let y = onto.push(Matmul, &[&a, &b], Role::Temporary);
    onto.recorder.add(&y, &a, &a);
    assert_eq!(onto.rewritten(apply).0, ["matmul", "add"]);

    // User code may observe what is written.
    let mut host = Net::new();
    let y = host.product(LARGE, Role::Temporary);
    let like = Empty { kind: RELU.into(), updates: false, host: true, scratch: 0 };
    host.recorder.push_empty(&like, &[], &[]);
    host.push(RELU, &[&y], Role::Slot);
    assert_eq!(host.rewritten(apply).0, ["matmul", "relu", "relu"]);

    // The factors are larger than their products.
    let mut heads = Net::new();
    let (weights, values) = (heads.given(&[64, 128, 128]), heads.given(&[64, 128, 64]));
    let y = heads.push(Matmul, &[&weights, &values], Role::Temporary);
    heads.push(RELU, &[&y], Role::Slot);
    assert_eq!(heads.rewritten(apply).0, ["matmul", "relu"]);

    // The addend is not a row, column or matrix of the product.
    let mut planes = Net::new();
    let (a, b) = (planes.given(&[4, 256, 32]), planes.given(&[32, 512]));
    let y = planes.push(Matmul, &[&a, &b], Role::Temporary);
    let plane = planes.given(&[256, 512]);
    planes.push(ADD, &[&y, &plane], Role::Slot);
    assert_eq!(planes.rewritten(apply).0, ["matmul", "add"]);
}

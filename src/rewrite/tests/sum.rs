use super::products::{ADD, Net};
use super::*;
use crate::ops::gemm::Matmul;
use crate::rewrite::fusion::sum as rule;

/// Too large to be short, too small to be computed in blocks.
const MIDDLE: [usize; 2] = [512, 256];

/// The rule with its default thresholds.
fn apply(draft: &mut Draft) -> Result<()> {
    let limits = draft.target().fusing();
    rule::apply(draft, limits)
}

fn names(net: Net) -> Vec<&'static str> {
    net.rewritten(apply).0
}

#[test]
fn a_bias_is_what_a_product_begins_with() {
    for is_first in [false, true] {
        for shape in [&[256][..], &[1, 256], &[512, 256]] {
            let mut net = Net::new();
            let (y, bias) = (net.product(MIDDLE, Role::Temporary), net.given(shape));
            let operands = if is_first { [&bias, &y] } else { [&y, &bias] };
            net.push(ADD, &operands, Role::Slot);
            assert_eq!(names(net), ["matmul_add"]);
        }
    }
}

#[test]
fn of_two_products_the_later_is_added_to_the_other() {
    let mut net = Net::new();
    let products = [(); 3].map(|()| net.product(MIDDLE, Role::Temporary));
    let sum = net.push(ADD, &[&products[1], &products[0]], Role::Temporary);
    net.push(ADD, &[&sum, &products[2]], Role::Slot);
    let (names, graph) = net.rewritten(apply);
    assert_eq!(names, ["matmul", "matmul_add", "matmul_add"]);
    // The sum is accumulated in place.
    assert!(graph.arena_bytes() < 2 * 512 * 256 * 4);
}

#[test]
fn a_gradient_is_added_in_place_to_what_is_collected() {
    let mut net = Net::new();
    let (y, sum) = (net.product(MIDDLE, Role::Temporary), net.given(&MIDDLE));
    net.recorder.add(&sum, &y, &sum);
    assert_eq!(names(net), ["matmul_add"]);
}

#[test]
fn additions_stay_apart_where_the_product_is_needed_or_the_sum_lies_elsewhere() {
    let apart = ["matmul", "add"];
    let mut kept = Net::new();
    let (y, bias) = (kept.product(MIDDLE, Role::Slot), kept.given(&[256]));
    kept.push(ADD, &[&y, &bias], Role::Slot);
    assert_eq!(names(kept), apart);

    let mut column = Net::new();
    let (y, bias) = (column.product(MIDDLE, Role::Temporary), column.given(&[512, 1]));
    column.push(ADD, &[&y, &bias], Role::Slot);
    assert_eq!(names(column), apart);

    let mut twice = Net::new();
    let y = twice.product(MIDDLE, Role::Temporary);
    twice.push(ADD, &[&y, &y], Role::Slot);
    assert_eq!(names(twice), apart);

    // The addition writes a factor.
    let mut onto = Net::new();
    let (a, b) = (onto.given(&[256, 256]), onto.given(&[256, 256]));
    let y = onto.push(Matmul, &[&a, &b], Role::Temporary);
    onto.recorder.add(&y, &a, &a);
    assert_eq!(names(onto), apart);

    let mut changed = Net::new();
    let (a, b) = (changed.given(&[512, 32]), changed.given(&[32, 256]));
    let y = changed.push(Matmul, &[&a, &b], Role::Temporary);
    changed.recorder.negate(&a, &a);
    let bias = changed.given(&[256]);
    changed.push(ADD, &[&y, &bias], Role::Slot);
    assert_eq!(names(changed), ["matmul", "neg", "add"]);
}

#[test]
fn blocks_and_short_products_are_left_to_exact_rules() {
    for shape in [[1024, 512], [8, 4]] {
        let mut net = Net::new();
        let (y, bias) = (net.product(shape, Role::Temporary), net.given(&[shape[1]]));
        net.push(ADD, &[&y, &bias], Role::Slot);
        assert_eq!(names(net), ["matmul", "add"]);
    }
}

#[test]
fn rounding_stays_as_it_is_where_results_have_to_be_exact() {
    for exact in [true, false] {
        let mut net = Net::new();
        let (y, bias) = (net.product(MIDDLE, Role::Temporary), net.given(&[256]));
        net.push(ADD, &[&y, &bias], Role::Slot);
        let all: Rule = if exact { by::<false> } else { by::<true> };
        assert_eq!(net.rewritten(all).0.contains(&"matmul_add"), !exact);
    }
}

/// All rules.
fn by<const ROUNDS: bool>(draft: &mut Draft) -> Result<()> {
    rewrite(draft, Allowed { keeps: false, rounds: ROUNDS, limits: Limits::DEFAULT }).map(|_| ())
}

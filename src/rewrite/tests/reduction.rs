use super::products::Net;
use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::rewrite::fusion::reduction as rule;

const MUL: Binary = Binary { f: BinaryFn::Mul };

fn apply(draft: &mut Draft) -> Result<()> {
    let limits = draft.target().fusing();
    rule::apply(draft, limits)
}

fn sum(axes: &[i64]) -> Reduce {
    Reduce { f: ReduceFn::Sum, axes: axes.into(), keepdims: false }
}

/// The sum of x * x, with something in between; x * x has this role.
fn squares(
    shape: &[usize],
    axes: &[i64],
    role: Role,
    between: impl FnOnce(&mut Net, [&View; 2]),
) -> (Vec<&'static str>, Graph) {
    let mut net = Net::new();
    let x = net.given(shape);
    let squared = net.push(MUL, &[&x, &x], role);
    between(&mut net, [&x, &squared]);
    net.push(sum(axes), &[&squared], Role::Slot);
    net.rewritten(apply)
}

#[test]
fn what_only_a_reduction_reads_is_never_written() {
    for axes in [&[][..], &[0], &[1]] {
        let (names, graph) = squares(&[4096, 256], axes, Role::Temporary, |_, _| ());
        assert_eq!(names, ["chain_sum"]);
        assert!(graph.arena_bytes() < 4096 * 256);
    }
}

#[test]
fn what_others_read_is_written_once() {
    let (names, graph) = squares(&[4096, 256], &[0], Role::Slot, |_, _| ());
    assert_eq!((&names[..], graph.ops()[0].outputs.len()), (&["chain_sum"][..], 2));
    let (names, graph) = squares(&[4096, 256], &[0], Role::Temporary, |net, [_, squared]| {
        let weight = net.given(&[256, 8]);
        net.push(Matmul, &[squared, &weight], Role::Slot);
    });
    assert_eq!(names, ["chain_sum", "matmul"]);
    assert_eq!(graph.ops()[0].outputs.len(), 2);
}

#[test]
fn a_reduction_stays_apart_where_what_it_reads_changes() {
    let doubles = |net: &mut Net, [_, squared]: [&View; 2]| net.recorder.negate(squared, squared);
    let (names, _) = squares(&[4096, 256], &[], Role::Temporary, doubles);
    assert_eq!(names, ["mul", "neg", "sum"]);
    // What the elements are made of may change.
    let (names, _) =
        squares(&[4096, 256], &[], Role::Temporary, |net, [x, _]| net.recorder.negate(x, x));
    assert_eq!(names, ["chain_sum", "neg"]);
}

#[test]
fn a_reduction_stays_apart_where_fusing_does_not_pay() {
    let apart = ["mul", "sum"];
    // Small tensors, large results, and elements that lie apart.
    assert_eq!(squares(&[300, 1000], &[0], Role::Temporary, |_, _| ()).0, apart);
    assert_eq!(squares(&[80000, 8], &[1], Role::Temporary, |_, _| ()).0, apart);
    assert_eq!(squares(&[128, 64, 128], &[0, 2], Role::Temporary, |_, _| ()).0, apart);
}

/// The result takes the place of an input that nothing else needs.
#[test]
fn what_is_kept_may_lie_in_the_memory_of_an_input() {
    let mut net = Net::new();
    let (a, b, weight) = (net.given(&[2048, 64]), net.given(&[64, 512]), net.given(&[512, 4]));
    let product = net.push(Matmul, &[&a, &b], Role::Temporary);
    let factor = net.given(&[512]);
    let scaled = net.push(MUL, &[&product, &factor], Role::Temporary);
    net.push(sum(&[0]), &[&scaled], Role::Slot);
    net.push(Matmul, &[&scaled, &weight], Role::Slot);
    let (names, graph) = net.rewritten(apply);
    assert_eq!(names, ["matmul", "chain_sum", "matmul"]);
    assert!(graph.arena_bytes() < 2 * 2048 * 512 * 4, "{}", graph.arena_bytes());
}

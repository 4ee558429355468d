use super::products::{ADD, Net};
use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::ops::index::Gather;
use crate::rewrite::fold_gather as rule;
use crate::rewrite::hoist::Limits as Gains;
use crate::shape::Shape;

const ROWS: Gather = Gather { axis: 0 };

fn freely(draft: &mut Draft) -> Result<()> {
    rule::apply(draft, Gains::NONE)
}

fn usually(draft: &mut Draft) -> Result<()> {
    rule::apply(draft, Gains::DEFAULT)
}

/// Rows of a table of 60 times 32 that are gathered for 5 by 4 places, as one matrix.
fn gathered(net: &mut Net, role: Role) -> View {
    gathered_of(net, [60, 32], &[5, 4], role)
}

fn gathered_of(net: &mut Net, table: [usize; 2], places: &[usize], role: Role) -> View {
    let table = net.given(&table);
    rows_of(net, &table, places, role)
}

fn rows_of(net: &mut Net, table: &View, places: &[usize], role: Role) -> View {
    let indices = View::new(cpu::device(), Meta::new(DType::Int64, places));
    net.recorder.number(&indices, Role::Argument);
    let rows = net.push(ROWS, &[table, &indices], role);
    let matrix: Shape = [indices.meta.numel(), table.meta.shape[1]].into();
    rows.reshape(&matrix).unwrap().expect("it is contiguous")
}

#[test]
fn products_of_gathered_rows_are_rows_of_a_product() {
    let mut net = Net::new();
    let (x, w, b) =
        (gathered(&mut net, Role::Temporary), net.given(&[32, 48]), net.given(&[1, 48]));
    let y = net.push(Matmul, &[&x, &w], Role::Temporary);
    net.push(ADD, &[&b, &y], Role::Slot);
    let (names, graph) = net.rewritten(freely);
    assert_eq!(names, ["matmul", "add", "gather"]);
    assert_eq!(graph.ops()[1].outputs[0].meta.shape[..], [60, 48]);
    assert_eq!(graph.ops()[2].outputs[0].meta.shape[..], [5, 4, 48]);
}

#[test]
fn operands_may_be_made_between_gathering_and_the_product() {
    let mut net = Net::new();
    let (x, w) = (gathered(&mut net, Role::Temporary), net.given(&[32, 48]));
    let w = net.push(Unary { f: UnaryFn::Neg }, &[&w], Role::Temporary);
    net.push(Matmul, &[&x, &w], Role::Slot);
    assert_eq!(net.rewritten(freely).0, ["neg", "matmul", "gather"]);
}

#[test]
fn not_where_rows_are_seen_or_operands_change_or_rows_meet_different_ones() {
    let apart = ["gather", "matmul"];
    let mut seen = Net::new();
    let (x, w) = (gathered(&mut seen, Role::Slot), seen.given(&[32, 48]));
    seen.push(Matmul, &[&x, &w], Role::Slot);
    assert_eq!(seen.rewritten(freely).0, apart);

    let mut changing = Net::new();
    let (x, w) = (gathered(&mut changing, Role::Temporary), changing.given(&[32, 48]));
    changing.push(Matmul, &[&x, &w], Role::Slot);
    changing.recorder.negate(&w, &w);
    assert_eq!(changing.rewritten(freely).0, [&apart[..], &["neg"]].concat());

    let mut right = Net::new();
    let (x, w) = (gathered(&mut right, Role::Temporary), right.given(&[48, 20]));
    right.push(Matmul, &[&w, &x], Role::Slot);
    assert_eq!(right.rewritten(freely).0, apart);

    let mut several = Net::new();
    let (x, w) = (gathered(&mut several, Role::Temporary), several.given(&[3, 32, 48]));
    several.push(Matmul, &[&x, &w], Role::Slot);
    assert_eq!(several.rewritten(freely).0, apart);

    for other in [&[20, 32][..], &[20, 1], &[2, 1, 32]] {
        let mut net = Net::new();
        let (x, other) = (gathered(&mut net, Role::Temporary), net.given(other));
        net.push(ADD, &[&x, &other], Role::Slot);
        assert_eq!(net.rewritten(freely).0, ["gather", "add"]);
    }
}

#[test]
fn operands_keep_their_sides() {
    for is_first in [false, true] {
        let mut net = Net::new();
        let (x, row) = (gathered(&mut net, Role::Temporary), net.given(&[32]));
        let operands = if is_first { [&row, &x] } else { [&x, &row] };
        net.push(Binary { f: BinaryFn::Sub }, &operands, Role::Slot);
        let (names, graph) = net.rewritten(freely);
        assert_eq!(names, ["sub", "gather"]);
        assert_eq!(graph.ops()[0].inputs[usize::from(!is_first)].meta.shape[..], [32]);
    }
}

#[test]
fn tables_may_be_made_of_others() {
    let mut net = Net::new();
    let (table, row, w) = (net.given(&[600, 32]), net.given(&[32]), net.given(&[32, 48]));
    let table = net.push(ADD, &[&table, &row], Role::Temporary);
    let places = View::new(cpu::device(), Meta::new(DType::Int64, [20]));
    net.recorder.number(&places, Role::Argument);
    let rows = net.push(ROWS, &[&table, &places], Role::Temporary);
    net.push(Matmul, &[&rows, &w], Role::Slot);
    assert_eq!(net.rewritten(usually).0, ["add", "matmul", "gather"]);
}

/// An index out of range is found before a parameter is written.
#[test]
fn not_beyond_what_writes_a_parameter() {
    let mut net = Net::new();
    let (x, w, other) =
        (gathered(&mut net, Role::Temporary), net.given(&[32, 48]), net.given(&[7]));
    net.recorder.negate(&other, &other);
    net.push(Matmul, &[&x, &w], Role::Slot);
    assert_eq!(net.rewritten(freely).0, ["gather", "neg", "matmul"]);
}

#[test]
fn tables_must_be_small_and_save_time() {
    let names = |table: [usize; 2], places: usize, columns: usize| {
        let mut net = Net::new();
        let x = gathered_of(&mut net, table, &[places], Role::Temporary);
        let w = net.given(&[table[1], columns]);
        net.push(Matmul, &[&x, &w], Role::Slot);
        net.rewritten(usually).0
    };
    assert_eq!(names([256, 512], 100, 512), ["matmul", "gather"]);
    assert_eq!(names([40_000, 16], 4, 16), ["gather", "matmul"], "few rows of many");
    assert_eq!(names([9_000, 16], 4_000, 128), ["gather", "matmul"], "4.4 MiB");
}

/// A row that is never gathered may hold a zero.
#[test]
fn not_with_what_fails_for_some_numbers() {
    let mut net = Net::new();
    let (table, row) = (net.given_as(DType::Int32, &[60, 32]), net.given_as(DType::Int32, &[32]));
    let x = rows_of(&mut net, &table, &[20], Role::Temporary);
    net.push(Binary { f: BinaryFn::FloorDivide }, &[&row, &x], Role::Slot);
    assert_eq!(net.rewritten(freely).0, ["gather", "floor_divide"]);
}

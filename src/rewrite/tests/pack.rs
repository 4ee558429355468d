use super::*;
use crate::device::onednn;
use crate::graph::Role::{Argument, Captured, Slot};
use crate::ops::Width;
use crate::ops::gemm::Matmul;
use crate::rewrite::pack as rule;

/// Products of arguments of so many rows with one matrix, which has this role; and the matrix.
fn products(role: Role, rows: &[usize]) -> (Recorder, View) {
    let mut recorder = Recorder::default();
    let mut tensor = |role, shape: [usize; 2]| {
        let view = View::new(cpu::device(), Meta::new(DType::Float32, shape));
        recorder.number(&view, role);
        view
    };
    let w = tensor(role, [256, 128]);
    let pairs: Vec<[View; 2]> = rows
        .iter()
        .map(|&rows| [tensor(Argument, [rows, 256]), tensor(Slot, [rows, 128])])
        .collect();
    for [x, y] in pairs {
        recorder.push(Matmul, &[x, w.clone()], &[y]);
    }
    (recorder, w)
}

/// Whether the kernel of such a product likes its weights in a layout of their own, which depends
/// on the processor.
fn wants_packed(rows: usize) -> bool {
    let io = [[rows, 256], [256, 128], [rows, 128]].map(|s| Meta::new(DType::Float32, s));
    let packing = Kind::from(Matmul).family().packing(&io.each_ref(), Width::ONE);
    packing.unwrap().is_some()
}

#[test]
fn weights_that_stay_are_packed_once_for_all_that_use_them() {
    if !onednn::is_available() {
        eprintln!("skipped: oneDNN is missing");
        return;
    }
    let (names, graph) = rewritten(products(Captured, &[64, 64, 32]).0, rule::apply);
    let wants: Vec<bool> = [64, 32].into_iter().map(wants_packed).collect();
    let one = |wants: bool, count: usize| match wants {
        true => [&["pack"][..], &vec!["packed"; count]].concat(),
        false => vec!["matmul"; count],
    };
    assert_eq!(names, [one(wants[0], 2), one(wants[1], 1)].concat());
    graph.verify().unwrap();
    let both: Rule = |draft, prepare| {
        rule::apply(draft, prepare)?;
        rule::undo(draft, prepare)
    };
    assert_eq!(rewritten(products(Captured, &[64, 64]).0, both).0, ["matmul", "matmul"]);
}

#[test]
fn weights_that_change_are_packed_by_their_kernels() {
    assert_eq!(rewritten(products(Argument, &[64]).0, rule::apply).0, ["matmul"]);
    let (mut written, w) = products(Captured, &[64]);
    written.negate(&w, &w);
    assert_eq!(rewritten(written, rule::apply).0, ["matmul", "neg"]);
    let (lent, w) = products(Captured, &[64]);
    w.block.lend();
    assert_eq!(rewritten(lent, rule::apply).0, ["matmul"]);
}

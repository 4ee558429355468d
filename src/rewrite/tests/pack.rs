use super::*;
use crate::device::onednn;
use crate::graph::Role::{Argument, Captured, Slot};
use crate::kernels::Width;
use crate::ops::conv::Conv;
use crate::ops::gemm::Matmul;
use crate::ops::geometry::Geometry;
use crate::rewrite::{hoist, pack as rule};

/// Products of arguments with these numbers of rows and one matrix, which has this role; and the
/// matrix.
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

/// Whether the kernel of such a product prefers packed weights, which depends on the processor.
fn wants_packed(rows: usize) -> bool {
    let io = [[rows, 256], [256, 128], [rows, 128]].map(|s| Meta::new(DType::Float32, s));
    let packing = crate::kernels::target(crate::kernels::host()).unwrap().packing(
        &Kind::from(Matmul),
        &io.each_ref(),
        Width::ONE,
    );
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
    let both: Rule = |draft| {
        rule::apply(draft)?;
        rule::undo(draft)
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

fn padded() -> Conv {
    Conv { geometry: Geometry::new(&[1; 2], &[1; 4], &[1; 2], 1) }
}

/// The metas of an image, a weight, and the result of their convolution.
fn convolved() -> [Meta; 3] {
    let [x, w] = [[1, 16, 14, 14], [32, 16, 3, 3]].map(|s| Meta::new(DType::Float32, s));
    let y = Kind::from(padded()).family().infer(&[&x, &w]).unwrap().remove(0);
    [x, w, y]
}

/// Convolutions with one weight each, which have these roles; the last one is used twice.
fn convolutions(roles: &[Role]) -> (Recorder, Vec<View>) {
    let mut recorder = Recorder::default();
    let mut tensor = |role, meta: &Meta| {
        let view = View::new(cpu::device(), meta.clone());
        recorder.number(&view, role);
        view
    };
    let [x, w, y] = convolved();
    let mut weights: Vec<View> = roles.iter().map(|&role| tensor(role, &w)).collect();
    weights.extend(weights.last().cloned());
    let pairs: Vec<[View; 2]> =
        weights.iter().map(|_| [tensor(Argument, &x), tensor(Slot, &y)]).collect();
    for (w, [x, y]) in weights.iter().zip(pairs) {
        recorder.push(padded(), &[x, w.clone()], &[y]);
    }
    (recorder, weights)
}

/// Whether convolutions prefer packed weights, which they do on all known processors.
fn packs_convolutions() -> bool {
    let io = convolved();
    let packing = crate::kernels::target(crate::kernels::host()).unwrap().packing(
        &Kind::from(padded()),
        &io.each_ref(),
        Width::ONE,
    );
    let packs = packing.unwrap().is_some();
    if !packs {
        eprintln!("skipped: no convolution packs its weights");
    }
    packs
}

#[test]
fn each_weight_of_convolutions_is_packed_once() {
    if !packs_convolutions() {
        return;
    }
    let (recorder, weights) = convolutions(&[Captured, Argument, Captured]);
    let (names, graph) = rewritten(recorder, rule::apply);
    assert_eq!(names, ["pack", "packed", "conv2d", "pack", "packed", "packed"]);
    graph.verify().unwrap();
    let nodes = graph.ops();
    let reads = |n: usize, input: usize| nodes[n].inputs[input].block;
    let makes = |n: usize| nodes[n].outputs[0].block;
    assert_eq!([reads(1, 1), reads(4, 1), reads(5, 1)], [makes(0), makes(3), makes(3)]);
    assert_eq!(nodes[0].origin, nodes[1].origin);
    assert!(reads(0, 0) != reads(3, 0) && weights.len() == 4);
}

#[test]
fn weights_are_packed_between_steps_that_were_inserted_before() {
    if !packs_convolutions() {
        return;
    }
    let (recorder, _) = convolutions(&[Captured, Captured]);
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    let inserted = draft.step(1).cloned().unwrap();
    draft.insert_after(0, inserted);
    rule::apply(&mut draft).unwrap();
    let names: Vec<&str> = draft.steps().map(|(_, step)| step.call.name()).collect();
    assert_eq!(names, ["pack", "packed", "pack", "packed", "packed", "packed"]);
}

#[test]
fn what_is_packed_in_each_run_is_left_to_the_kernels() {
    if !packs_convolutions() {
        return;
    }
    let both: Rule = |draft| {
        rule::apply(draft)?;
        rule::undo(draft)
    };
    let (names, graph) = rewritten(convolutions(&[Captured, Captured]).0, both);
    assert_eq!(names, ["conv2d"; 3]);
    let (plain, want) = rewritten(convolutions(&[Captured, Captured]).0, |_| Ok(()));
    assert_eq!(plain, names);
    for (made, node) in graph.ops().iter().zip(want.ops()) {
        assert_eq!(made.call.kind, node.call.kind);
        assert_eq!(made.inputs, node.inputs);
    }
    graph.verify().unwrap();
}

#[test]
fn weights_are_packed_once_or_else_by_their_kernels() {
    if !packs_convolutions() {
        return;
    }
    let apart = |each: f64| {
        let limits =
            Limits { constants: hoist::Limits { each, all: 0.0 }, chains: Limits::NONE.chains };
        let allowed = Allowed { rounds: false, keeps: true, limits };
        apart_by_all(convolutions(&[Captured]).0, allowed)
    };
    assert_eq!(apart(0.0), [vec!["packed"; 2], vec!["pack"]]);
    assert_eq!(apart(f64::INFINITY), [vec!["conv2d"; 2], vec![]], "nothing is worth its bytes");
}

use super::*;
use crate::graph::Op;
use crate::graph::Role::{Captured, Slot, Temporary};
use crate::ops::softmax::Softmax;
use crate::rewrite::{functionalize as rule, fusion::links};
use crate::view::SliceRange;

const MANY: usize = 1 << 18;

fn both(draft: &mut Draft) -> Result<()> {
    rule::apply(draft)?;
    let limits = draft.target().fusing();
    links::apply(draft, limits)
}

/// A sum with role `role`, to which two tensors are added in place, and an operation that reads it.
fn collected(role: Role, also: impl FnOnce(&mut Recorder, &View, &View)) -> Recorder {
    let mut recorder = Recorder::default();
    let [x, y, z] = [(); 3].map(|()| recorder.tensor(Captured, MANY));
    let (sum, result) = (recorder.tensor(role, MANY), recorder.tensor(Slot, MANY));
    recorder.negate(&x, &sum);
    recorder.add(&sum, &y, &sum);
    also(&mut recorder, &sum, &z);
    recorder.add(&sum, &z, &sum);
    recorder.negate(&sum, &result);
    recorder
}

#[test]
fn what_is_added_to_in_place_becomes_one_pass() {
    let (names, _) = rewritten(collected(Temporary, |_, _, _| ()), both);
    assert_eq!(names, ["chain"]);
}

#[test]
fn what_is_not_updated_element_by_element_stays_in_place() {
    let softmax = Softmax { axis: 0, log: false };
    let update = |r: &mut Recorder, sum: &View, _: &View| {
        r.push(softmax, std::slice::from_ref(sum), std::slice::from_ref(sum));
    };
    let (_, graph) = rewritten(collected(Temporary, update), rule::apply);
    let is_in_place = |node: &Op| node.inputs[0].block == node.outputs[0].block;
    let found: Vec<bool> = graph.ops().iter().map(is_in_place).collect();
    assert_eq!(found, [false, false, true, false, false]);
}

#[test]
fn updates_that_stay_apart_take_one_place() {
    let (names, graph) = rewritten(collected(Temporary, |_, _, _| ()), rule::apply);
    assert_eq!(names, ["neg", "add", "add", "neg"]);
    assert_eq!(graph.arena_bytes(), MANY * 4);
}

#[test]
fn updates_stay_in_place_where_they_have_to() {
    // The sum is held elsewhere.
    let (names, _) = rewritten(collected(Slot, |_, _, _| ()), both);
    assert_eq!(names, ["neg", "add", "add", "neg"]);
    // It is read twice in one step, or is not whole.
    let (names, _) = rewritten(collected(Temporary, |r, sum, _| r.add(sum, sum, sum)), both);
    assert_eq!(names, ["neg", "add", "add", "chain"]);
    let half = |view: &View| view.slice(&[SliceRange { start: 0, count: 9, step: 1 }]).unwrap();
    let some = |r: &mut Recorder, sum: &View, z: &View| r.add(&half(sum), &half(z), &half(sum));
    let (names, _) = rewritten(collected(Temporary, some), both);
    assert_eq!(names, ["neg", "add", "add", "chain"]);
}

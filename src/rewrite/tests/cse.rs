use super::*;
use crate::graph::Role::{Captured, Slot, Temporary};
use crate::rewrite::cse as rule;

fn left(recorder: Recorder) -> (Vec<&'static str>, Graph) {
    let apply: Rule = |draft| {
        rule::apply(draft);
        Ok(())
    };
    rewritten(recorder, apply)
}

/// `-x` twice, with something in between, and the sum of both.
fn twice(between: impl FnOnce(&mut Recorder, &View, &View)) -> (Vec<&'static str>, Graph) {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Captured, 8), recorder.tensor(Slot, 8));
    let (a, b) = (recorder.tensor(Temporary, 8), recorder.tensor(Temporary, 8));
    recorder.negate(&x, &a);
    between(&mut recorder, &x, &a);
    recorder.negate(&x, &b);
    recorder.add(&a, &b, &y);
    left(recorder)
}

#[test]
fn what_was_computed_before_is_not_computed_once_more() {
    let (names, graph) = twice(|_, _, _| ());
    assert_eq!(names, ["neg", "add"]);
    let [a, b] = &graph.ops()[1].inputs[..] else { panic!("two inputs") };
    assert_eq!(a, b);
}

#[test]
fn what_changed_in_between_is_computed_again() {
    assert_eq!(twice(|recorder, x, _| recorder.negate(x, x)).0, ["neg", "neg", "neg", "add"]);
    assert_eq!(twice(|recorder, x, a| recorder.negate(x, a)).0, ["neg", "neg", "neg", "add"]);
}

#[test]
fn a_large_result_is_not_kept_for_that() {
    let mut recorder = Recorder::default();
    let many = 1 << 20;
    let x = recorder.tensor(Captured, many);
    let ends = [(); 2].map(|()| (recorder.tensor(Temporary, many), recorder.tensor(Slot, many)));
    for (between, end) in &ends {
        recorder.negate(&x, between);
        recorder.add(between, &x, end);
    }
    assert_eq!(left(recorder).0, ["neg", "add", "neg", "add"]);
}

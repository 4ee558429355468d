use super::products::Net;
use super::*;
use crate::graph::Role::{Captured, Slot, Temporary};
use crate::ops::linalg::{Linalg, LinalgFn};
use crate::rewrite::dce as rule;

fn left(recorder: Recorder) -> Vec<&'static str> {
    let apply: Rule = |draft| {
        rule::apply(draft);
        Ok(())
    };
    rewritten(recorder, apply).0
}

#[test]
fn what_nobody_reads_is_left_out_with_what_it_alone_reads() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Captured, 8), recorder.tensor(Slot, 8));
    let (a, b) = (recorder.tensor(Temporary, 8), recorder.tensor(Temporary, 8));
    recorder.add(&x, &x, &a);
    recorder.add(&a, &x, &b);
    recorder.negate(&x, &y);
    assert_eq!(left(recorder), ["neg"]);
}

#[test]
fn what_is_seen_afterwards_stays() {
    let mut recorder = Recorder::default();
    let (x, state) = (recorder.tensor(Captured, 8), recorder.tensor(Captured, 8));
    let (a, y) = (recorder.tensor(Temporary, 8), recorder.tensor(Slot, 8));
    recorder.add(&x, &x, &a);
    recorder.negate(&a, &y);
    recorder.negate(&x, &state);
    assert_eq!(left(recorder), ["add", "neg", "neg"]);
}

#[test]
fn what_may_fail_stays() {
    let names = |kind: Kind| {
        let mut net = Net::new();
        let x = net.given(&[4, 4]);
        net.push(kind, &[&x], Temporary);
        left(net.recorder)
    };
    assert_eq!(names(Linalg { f: LinalgFn::Inv }.into()), ["inv"]);
    assert_eq!(names(Linalg { f: LinalgFn::Det }.into()), [""; 0]);
}

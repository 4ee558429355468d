use super::super::{Fault, kept};
use crate::graph::Graph;
use crate::graph::Role::{self, *};
use crate::graph::testing::{Empty, Recorder};
use crate::ops::View;
use crate::ops::unary::{Unary, UnaryFn};

/// The roles of blocks 0 to 4, in the runs and in the graph that is computed once: `y = x + k` with
/// `k = -t` and `t = -w`.
const RUN: [Role; 5] = [Argument, Slot, Captured, Temporary, Captured];
const ONCE: [Role; 5] = [Argument, Slot, Slot, Temporary, Captured];
const X: usize = 0;
const Y: usize = 1;
const K: usize = 2;
const T: usize = 3;
const W: usize = 4;

fn recorder(roles: [Role; 5]) -> (Recorder, Vec<View>) {
    let mut recorder = Recorder::default();
    let blocks = roles.into_iter().map(|role| recorder.tensor(role, 4)).collect();
    (recorder, blocks)
}

fn run(roles: [Role; 5], also: impl FnOnce(&mut Recorder, &[View])) -> Graph {
    let (mut recorder, b) = recorder(roles);
    recorder.add(&b[X], &b[K], &b[Y]);
    also(&mut recorder, &b);
    recorder.graph().unwrap()
}

fn once(roles: [Role; 5], also: impl FnOnce(&mut Recorder, &[View])) -> Graph {
    let (mut recorder, b) = recorder(roles);
    recorder.negate(&b[W], &b[T]);
    also(&mut recorder, &b);
    recorder.graph().unwrap()
}

fn negated(recorder: &mut Recorder, b: &[View]) {
    recorder.negate(&b[T], &b[K]);
}

fn what(run: &Graph, once: &Graph, blocks: &[u32]) -> (u32, &'static str) {
    match kept(run, once, blocks) {
        Err(Fault::Kept { block, what }) => (block, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_made_before_runs_read_it_is_accepted() {
    assert_eq!(kept(&run(RUN, |_, _| ()), &once(ONCE, negated), &[2]), Ok(()));
}

#[test]
fn what_nothing_has_written_is_found() {
    let found = what(&run(RUN, |_, _| ()), &once(ONCE, |_, _| ()), &[2]);
    assert_eq!(found, (2, "runs read bytes of it that nothing has written"));
}

#[test]
fn what_runs_write_is_found() {
    let (quiet, usual) = (run(RUN, |_, _| ()), once(ONCE, negated));
    let found = what(&run(RUN, |r, b| r.negate(&b[X], &b[K])), &usual, &[2]);
    assert_eq!(found, (2, "runs write it"));
    let found = what(&run(RUN, |r, b| r.negate(&b[X], &b[W])), &usual, &[2]);
    assert_eq!(found, (4, "what it is made of is written"));
    let found = what(&quiet, &once(ONCE, |r, b| r.negate(&b[T], &b[W])), &[2]);
    assert_eq!(found, (4, "what it is made of is written"));
}

#[test]
fn what_is_not_there_before_runs_is_found() {
    let usual = once(ONCE, negated);
    let found = what(&run([Argument, Slot, Slot, Temporary, Captured], |_, _| ()), &usual, &[2]);
    assert_eq!(found, (2, "runs do not take it as memory that was there before"));
    let roles = [Argument, Slot, Slot, Temporary, Argument];
    let found = what(&run(RUN, |_, _| ()), &once(roles, negated), &[2]);
    assert_eq!(found, (4, "it is made of an argument"));
    let found = what(&run(RUN, |_, _| ()), &usual, &[]);
    assert_eq!(found, (2, "it is no tensor of its own"));
}

#[test]
fn what_does_more_than_make_a_tensor_is_found() {
    let kind = Unary { f: UnaryFn::Neg }.into();
    let host = Empty { kind, updates: false, host: true, scratch: 0 };
    let graph = once(ONCE, |r, b| r.push_empty(&host, &b[T..=T], &b[K..=K]));
    let found = what(&run(RUN, |_, _| ()), &graph, &[2]);
    assert_eq!(found, (2, "its operation has effects"));
}

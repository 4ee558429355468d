use super::*;
use crate::graph::Role::{Argument, Captured, Slot, Temporary};
use crate::kernels::testing::user_code;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::norm::BatchNormInference;
use crate::ops::unary::UnaryFn::Exp;
use crate::ops::{Real, Scalar, copy};
use crate::rewrite::hoist::{self as rule, Limits};
use crate::view::SliceRange;

const MANY: usize = 1 << 16;

/// The operations left of a recording, those that were moved out, and the blocks that are cached.
fn apart(recorder: Recorder, limits: Limits) -> (Vec<&'static str>, Vec<&'static str>, Vec<u32>) {
    let Recorder { queue, roles, kernels } = recorder;
    let mut draft = Draft::new(cpu::device(), queue, roles);
    let taken = rule::take(&mut draft, limits);
    let names = |graph: Graph| graph.ops().iter().map(|node| node.call.name()).collect();
    let (queue, roles) = draft.finish();
    let left = Graph::new(queue, roles, &kernels).unwrap();
    let (mut out, mut kept) = (Vec::new(), Vec::new());
    if let Some(taken) = taken {
        let graph = Graph::new(taken.queue, taken.roles, &kernels).unwrap();
        left.verify_kept(&graph, &taken.kept).unwrap();
        (out, kept) = (names(graph), taken.kept);
    }
    (names(left), out, kept)
}

fn exp(recorder: &mut Recorder, from: &View, to: &View) {
    recorder.push(Unary { f: Exp }, std::slice::from_ref(from), std::slice::from_ref(to));
}

fn ones_of(many: usize) -> copy::Fill {
    copy::Fill { value: Scalar::Int(1), shape: [many].into(), dtype: DType::Float32 }
}

/// `y = x + exp(-w)`, with something before the addition.
fn step(role: Role, between: impl FnOnce(&mut Recorder, &View)) -> Recorder {
    let mut recorder = Recorder::default();
    let (x, w) = (recorder.tensor(Argument, MANY), recorder.tensor(role, MANY));
    let (a, b) = (recorder.tensor(Temporary, MANY), recorder.tensor(Temporary, MANY));
    let y = recorder.tensor(Slot, MANY);
    recorder.negate(&w, &a);
    exp(&mut recorder, &a, &b);
    between(&mut recorder, &w);
    recorder.add(&x, &b, &y);
    recorder
}

#[test]
fn what_depends_on_nothing_that_is_written_is_taken_out() {
    let (left, taken, kept) = apart(step(Captured, |_, _| ()), Limits::DEFAULT);
    assert_eq!((left, taken), (vec!["add"], vec!["neg", "exp"]));
    assert_eq!(kept.len(), 1, "what lies between is not kept");
}

/// Steps that other rules have inserted stand between those that were recorded.
#[test]
fn constants_are_computed_in_order() {
    let mut recorder = Recorder::default();
    let of = |shape: &[usize]| View::new(cpu::device(), Meta::new(DType::Float32, shape));
    let given = [of(&[4, 8]), of(&[8]), of(&[8]), of(&[8]), of(&[8])];
    for view in &given {
        recorder.number(view, Captured);
    }
    let [y, z, sum] = [Temporary, Temporary, Slot].map(|role| {
        let view = of(&[4, 8]);
        recorder.number(&view, role);
        view
    });
    let x = of(&[4, 8]);
    recorder.number(&x, Argument);
    let norm = BatchNormInference { eps: Real(1e-5) };
    recorder.push(norm, &given, std::slice::from_ref(&y));
    exp(&mut recorder, &y, &z);
    recorder.push(Binary { f: BinaryFn::Add }, &[z, x], std::slice::from_ref(&sum));
    let limits = crate::rewrite::Limits::NONE;
    let allowed = Allowed { rounds: false, keeps: true, limits };
    let [left, taken] = apart_by_all(recorder, allowed);
    assert_eq!((left, taken), (vec!["add"], vec!["batch_norm_factor", "normalize", "exp"]));
}

/// The operation that produces an input is not worth its bytes, but is also read in the run: it is
/// computed on both sides, whether read whole or in part.
#[test]
fn what_constants_need_of_the_run_is_computed_on_both_sides() {
    let backwards = SliceRange { start: MANY - 1, count: MANY, step: -1 };
    let views: [&dyn Fn(&View) -> View; 2] =
        [&View::clone, &|ones: &View| ones.slice(&[backwards]).unwrap()];
    for view in views {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, MANY), recorder.tensor(Slot, MANY));
        let [ones, a, b] = [(); 3].map(|()| recorder.tensor(Temporary, MANY));
        recorder.push(ones_of(MANY), &[], std::slice::from_ref(&ones));
        exp(&mut recorder, &view(&ones), &a);
        recorder.add(&x, &ones, &b);
        recorder.add(&a, &b, &y);
        let (left, taken, kept) = apart(recorder, Limits::DEFAULT);
        assert_eq!((left, taken), (vec!["fill", "add", "add"], vec!["fill", "exp"]));
        assert_eq!(kept.len(), 1);
    }
}

#[test]
fn what_may_change_stays() {
    let whole = vec!["neg", "exp", "add"];
    assert_eq!(apart(step(Argument, |_, _| ()), Limits::NONE).0, whole);
    let written = step(Captured, |recorder, w| recorder.negate(w, w));
    assert_eq!(apart(written, Limits::NONE).0, ["neg", "exp", "neg", "add"]);
    let mut lent = None;
    let exposed = step(Captured, |_, w| {
        w.block.lend();
        lent = Some(w.block.clone());
    });
    assert_eq!(apart(exposed, Limits::NONE).0, whole);
    lent.expect("it was lent").take_back();
}

#[test]
fn nothing_is_taken_out_beside_user_code() {
    let host = step(Captured, |recorder, w| {
        let op = Prepared::of(&user_code(), std::slice::from_ref(w), None, 1).unwrap();
        recorder.push_prepared(Arc::new(op), std::slice::from_ref(w), &[]);
    });
    assert_eq!(apart(host, Limits::NONE).0, ["neg", "exp", "nothing", "add"]);
}

#[test]
fn results_are_made_in_each_run() {
    let mut recorder = Recorder::default();
    let (w, y) = (recorder.tensor(Captured, MANY), recorder.tensor(Slot, MANY));
    let a = recorder.tensor(Temporary, MANY);
    exp(&mut recorder, &w, &a);
    recorder.negate(&a, &y);
    assert_eq!(apart(recorder, Limits::NONE).0, ["neg"]);
}

#[test]
fn what_is_as_fast_to_make_as_to_fetch_is_not_kept() {
    let filled = || {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, MANY), recorder.tensor(Slot, MANY));
        let ones = recorder.tensor(Temporary, MANY);
        recorder.push(ones_of(MANY), &[], std::slice::from_ref(&ones));
        recorder.add(&x, &ones, &y);
        recorder
    };
    assert_eq!(apart(filled(), Limits::DEFAULT).0, ["fill", "add"]);
    assert_eq!(apart(filled(), Limits::NONE).0, ["add"]);
}

#[test]
fn nothing_is_kept_that_is_a_small_part_of_the_run() {
    let long = |steps| {
        let mut recorder = step(Captured, |_, _| ());
        let mut x = recorder.tensor(Argument, MANY);
        for _ in 0..steps {
            let y = recorder.tensor(Slot, MANY);
            recorder.negate(&x, &y);
            x = y;
        }
        apart(recorder, Limits::DEFAULT).1.len()
    };
    assert_eq!([long(10), long(10_000)], [2, 0]);
}

use super::*;
use crate::graph::memory::order;
use crate::graph::memory::recompute::turns::Turns;
use crate::graph::testing::{self, Empty, Recorder, fingerprint};
use crate::graph::tests::Step;
use crate::graph::{Op, Role};
use crate::ops::View;
use crate::ops::copy::Copy;
use crate::ops::unary::{Unary, UnaryFn};

/// Elements of a block.
const SIZE: usize = 1 << 10;

fn apply(recorder: &mut Recorder, f: UnaryFn, from: &View) -> View {
    let to = recorder.tensor(Role::Temporary, SIZE);
    recorder.push(Unary { f }, std::slice::from_ref(from), std::slice::from_ref(&to));
    to
}

/// A training step through `layers` layers, each of which keeps its result for its gradient;
/// `between` is recorded before the gradients.
fn training(layers: usize, between: impl Fn(&mut Recorder, &View)) -> Recorder {
    let mut recorder = Recorder::default();
    let input = recorder.tensor(Role::Captured, SIZE);
    let mut kept = vec![apply(&mut recorder, UnaryFn::Tanh, &input)];
    while kept.len() < layers {
        let next = apply(&mut recorder, UnaryFn::Tanh, &kept[kept.len() - 1]);
        kept.push(next);
    }
    between(&mut recorder, &input);
    let mut gradient = apply(&mut recorder, UnaryFn::Neg, &kept[layers - 1]);
    for activation in kept.iter().rev() {
        let next = recorder.tensor(Role::Temporary, SIZE);
        recorder.add(&gradient, activation, &next);
        gradient = next;
    }
    let out = recorder.tensor(Role::Slot, SIZE);
    recorder.negate(&gradient, &out);
    recorder
}

/// Only the recorded order of operations.
struct Recorded {
    orders: [Order; 1],
    kernels: Kernels,
}

impl Recorded {
    fn new(recorder: Recorder) -> Recorded {
        let Recorder { queue, roles, kernels } = recorder;
        let course = Course::new(order::ordered(queue, &roles, &kernels), &roles);
        Recorded { orders: [(course, Vec::new())], kernels }
    }

    fn course(&self) -> &Course {
        &self.orders[0].0
    }

    fn ways(&self) -> Ways<'_> {
        Ways::new(&self.orders, &self.kernels, None).unwrap()
    }

    /// The size of the arena if everything is kept.
    fn whole(&self) -> usize {
        let (queue, roles) = self.course().finish(&[]);
        Graph::new(queue, roles, &self.kernels).unwrap().arena_bytes()
    }

    /// The time if everything is kept.
    fn kept(&self) -> f64 {
        outcome(self.course(), Vec::new()).time
    }
}

#[test]
fn what_is_computed_again_may_have_been_dropped_before() {
    let recorded = Recorded::new(training(64, |_, _| ()));
    let smallest = recorded.ways().smallest().unwrap();
    // The optimum keeps one of every few results, plus those of the stretch being recomputed.
    assert!(smallest.arena_bytes() * 3 < recorded.whole(), "{}", smallest.arena_bytes());
}

#[test]
fn more_memory_never_costs_more_time() {
    let recorded = Recorded::new(training(40, |_, _| ()));
    let ways = recorded.ways();
    let (least, most) = (ways.smallest().unwrap().arena_bytes(), recorded.whole());
    let mut before = f64::INFINITY;
    for step in 0..=20 {
        let budget = least + (most - least) * step / 20;
        let graph = ways.within(budget).unwrap().expect("no less than the smallest");
        assert!(graph.arena_bytes() <= budget);
        let time = ways.time(budget).unwrap();
        assert!(time <= before, "{time} after {before}");
        before = time;
    }
    assert_eq!(before, recorded.kept());
    assert!(ways.within(least - 1).unwrap().is_none());
}

#[test]
fn half_of_the_memory_of_equal_layers_costs_at_most_every_second_one() {
    let recorded = Recorded::new(training(40, |_, _| ()));
    let ways = recorded.ways();
    let (whole, kept) = (recorded.whole(), recorded.kept());
    let more = ways.time(whole / 2).unwrap() - kept;
    let layer = recorded.course().times[0];
    assert!(more < 22.0 * layer, "{}", more / layer);
}

#[test]
fn nothing_is_computed_again_from_what_was_written_since() {
    let write = |recorder: &mut Recorder, input: &View| {
        let other = recorder.tensor(Role::Captured, SIZE);
        recorder.negate(&other, input);
    };
    let readers_of_input = |recorder: Recorder| {
        let recorded = Recorded::new(recorder);
        let smallest = recorded.ways().smallest().unwrap();
        let reads = |op: &&Op| op.inputs.iter().any(|place| place.block == 0);
        smallest.ops().iter().filter(reads).count()
    };
    assert!(readers_of_input(training(32, |_, _| ())) > 1);
    assert_eq!(readers_of_input(training(32, write)), 1);
}

#[test]
fn what_there_is_room_for_is_kept_after_all() {
    let recorded = Recorded::new(training(40, |_, _| ()));
    let (whole, course) = (recorded.whole(), recorded.course());
    let policy = Policy { limit: whole / 4, patience: Patience::Zero, heeds_results: false };
    let found = simulate(course, policy).unwrap();
    assert_eq!(Turns::new(course, &found.again).peak(), found.memory);
    for limit in [whole / 4, whole / 3, whole / 2, whole] {
        let kept = keep(course, &found, limit);
        assert_eq!(kept.memory, peak(course, &kept.again, &recorded.kernels));
        assert!(kept.memory <= limit && kept.time <= found.time, "{limit}: {kept:?}");
        assert_eq!(kept.time, outcome(course, kept.again.clone()).time);
        let layers = kept.again.len();
        let once = keep(course, &kept, limit);
        assert_eq!(once.again.len(), layers, "nothing more can be kept");
        assert_eq!(layers == 0, limit == whole);
        assert!(limit < whole / 3 || layers < found.again.len());
    }
}

/// Fingerprints count steps in twos.
fn doubled(outcome: Outcome) -> Outcome {
    Outcome { again: testing::doubled(&outcome.again), ..outcome }
}

/// One fingerprint covers every run under every limit, and each run after it keeps all that it can.
#[test]
fn the_same_steps_run_alike_under_the_same_limits() {
    let got = fingerprint((0..40).map(|seed| {
        let recorded = Recorded::new(Step::draw(seed));
        let course = recorded.course();
        let (whole, least) = (course.line.peak(), course.least());
        let runs = |limit| {
            let policies = PATIENCE.iter().flat_map(|&p| [(p, false), (p, true)]);
            let found = policies.filter_map(move |(patience, heeds_results)| {
                simulate(course, Policy { limit, patience, heeds_results })
            });
            found
                .map(|run| {
                    let kept = keep(course, &run, limit);
                    format!("{:?} {:?}", doubled(run), doubled(kept))
                })
                .collect()
        };
        let limits = (0..10).map(|n| least + whole.saturating_sub(least) * n / 10);
        limits.map(runs).collect::<Vec<String>>().concat() + &least.to_string()
    }));
    assert_eq!(got, 13_233_856_121_100_908_079);
}

#[test]
fn long_runs_are_simulated_under_fewer_limits() {
    let got = [10, 3_000, 5_000, 10_000, 20_000].map(|layers| {
        let recorded = Recorded::new(training(layers / 2, |_, _| ()));
        let found = limits(recorded.course(), 1 << 40);
        assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|limit| *limit < 1 << 40));
        found.len()
    });
    assert_eq!(got, [48, 44, 28, 16, 12]);
}

#[test]
fn user_code_is_not_run_again() {
    let mut kept = None;
    let mut recorder = training(20, |_, _| ());
    let x = recorder.tensor(Role::Captured, SIZE);
    let host = recorder.tensor(Role::Temporary, SIZE);
    let like = Empty { kind: Copy.into(), updates: false, host: true, scratch: 0 };
    recorder.push_empty(&like, std::slice::from_ref(&x), std::slice::from_ref(&host));
    for layer in 0..20 {
        let role = if layer == 19 { Role::Slot } else { Role::Temporary };
        let to = recorder.tensor(role, SIZE);
        recorder.add(kept.as_ref().unwrap_or(&x), if layer % 10 == 0 { &host } else { &x }, &to);
        kept = Some(to);
    }
    let recorded = Recorded::new(recorder);
    let smallest = recorded.ways().smallest().unwrap();
    assert!(smallest.ops().len() > recorded.course().steps(), "something is");
    assert_eq!(smallest.ops().iter().filter(|node| node.call.effects.host).count(), 1);
}

//! The same operations always give the same order, plan and budget, on every machine. The numbers
//! here are fingerprints of all decisions: if one changes, decisions have changed, and that must be
//! intended.

use std::ops::Range;

use super::budget::{Order, Ways};
use super::memory::recompute::{Course, greedy};
use super::testing::{Empty, Recorder, doubled, fingerprint, shown};
use super::{Graph, Kernels, Parallel, Queue, Role, Timeline, order};
use crate::kernels::testing::Random;
use crate::ops::copy::Copy;
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Meta, View};
use crate::packing::{exact, plan, traces};

/// The seeds of the training steps or workloads that a fingerprint covers: few where each involves
/// many decisions.
const SEEDS: Range<u64> = 0..16;
const MANY: Range<u64> = 0..100;

/// A random training step: lanes of tensors of several sizes, scalars that pass from one lane to
/// another, results that are used much later, and gradients in reverse.
pub(super) struct Step {
    recorder: Recorder,
    random: Random,
    /// By lane: its tensors in the order of creation.
    lanes: [Vec<View>; 3],
}

impl Step {
    pub(super) fn draw(seed: u64) -> Recorder {
        let mut step = Step {
            recorder: Recorder::default(),
            random: Random::new(seed),
            lanes: Default::default(),
        };
        for lane in 0..3 {
            let size = step.size(lane);
            step.lanes[lane].push(step.recorder.tensor(Role::Captured, size));
        }
        let length = 15 + step.random.below(20);
        (0..length).for_each(|_| step.forward());
        (0..3).for_each(|lane| step.backward(lane));
        step.recorder
    }

    /// The number of elements in the tensors of a lane.
    fn size(&mut self, lane: usize) -> usize {
        (1 + self.random.below(3)) << (8 + 2 * lane)
    }

    fn like(&mut self, lane: usize, role: Role) -> View {
        let size = self.lanes[lane][0].meta.numel();
        self.recorder.tensor(role, size)
    }

    fn any(&mut self, lane: usize) -> View {
        let made = &self.lanes[lane];
        made[made.len() - 1 - self.random.below(made.len().min(4))].clone()
    }

    fn forward(&mut self) {
        let lane = self.random.below(3);
        let (from, to) = (self.any(lane), self.like(lane, Role::Temporary));
        match self.random.below(12) {
            0 => {
                let other = self.any(lane);
                self.recorder.add(&from, &other, &to);
            }
            1 => {
                let (other, number) =
                    (self.random.below(3), self.recorder.tensor(Role::Temporary, 1));
                let read = self.any(other);
                let sum = Reduce { f: ReduceFn::Sum, axes: smallvec::smallvec![0], keepdims: true };
                self.recorder.push(sum, &[read], std::slice::from_ref(&number));
                self.recorder.add(&from, &number, &to);
            }
            n @ 2..6 => {
                let f = [UnaryFn::Neg, UnaryFn::Relu, UnaryFn::Tanh, UnaryFn::Exp][n - 2].clone();
                self.recorder.push(Unary { f }, &[from], std::slice::from_ref(&to));
            }
            6 => {
                let scratch = 4 * to.meta.numel();
                let like = Empty { kind: Copy.into(), updates: false, host: false, scratch };
                self.recorder.push_empty(&like, &[from], std::slice::from_ref(&to));
            }
            7 => {
                for half in [0, 1] {
                    let [from, to] = [&from, &to].map(|whole| part(whole, half));
                    self.recorder.negate(&from, &to);
                }
            }
            8 => {
                let other = self.any(lane);
                self.recorder.add(&from, &other, &from);
                self.recorder.negate(&from, &to);
            }
            10 | 11 => {
                let other = self.like(lane, Role::Temporary);
                let like = Empty { kind: Copy.into(), updates: false, host: false, scratch: 0 };
                self.recorder.push_empty(&like, &[from], &[to.clone(), other.clone()]);
                self.lanes[lane].push(other);
            }
            _ => {
                let is_host = self.random.below(3) == 0;
                let like = Empty { kind: Copy.into(), updates: true, host: is_host, scratch: 0 };
                self.recorder.push_empty(&like, &[from], std::slice::from_ref(&to));
            }
        }
        self.lanes[lane].push(to);
    }

    /// Reads a lane's tensors in reverse, and updates its first one.
    fn backward(&mut self, lane: usize) {
        let made = self.lanes[lane].clone();
        let mut gradient = self.like(lane, Role::Temporary);
        self.recorder.negate(&made[made.len() - 1], &gradient);
        for (n, activation) in made.iter().enumerate().rev() {
            let role = if n == 2 { Role::Slot } else { Role::Temporary };
            let next = self.like(lane, role);
            self.recorder.add(&gradient, activation, &next);
            gradient = next;
        }
        self.recorder.add(&made[0], &gradient, &made[0]);
    }
}

/// Half of a vector.
fn part(whole: &View, half: usize) -> View {
    let elements = whole.meta.numel() / 2;
    let meta = Meta::new(whole.meta.dtype, [elements]).into();
    View { meta, offset: half * elements, ..whole.clone() }
}

/// A fingerprint of what is decided about steps.
fn decided(seeds: Range<u64>, decide: impl Fn(Queue, Vec<Role>, &Kernels) -> String) -> u64 {
    fingerprint(seeds.map(|seed| {
        let Recorder { queue, roles, kernels } = Step::draw(seed);
        decide(queue, roles, &kernels)
    }))
}

fn json(graph: &Graph) -> String {
    format!("{} {:?}", shown(graph), graph.cycles())
}

#[test]
fn orders() {
    let got = decided(MANY, |queue, roles, kernels| {
        let orders = order::orders(queue.clone(), &roles, kernels);
        let shown = |(queue, line): &order::Ordered| {
            let origins: Vec<u32> = queue.ops().iter().map(|node| node.origin).collect();
            format!("{origins:?} {}", line.peak())
        };
        let promising = order::promising(queue, &roles, kernels);
        orders.iter().chain(&promising).map(shown).collect()
    });
    assert_eq!(got, 14_225_891_799_741_238_373);
}

#[test]
fn graphs() {
    let got = decided(SEEDS, |queue, roles, kernels| {
        let parallel = [2, 3].map(|workers| Parallel { least_gain: 0, ..Parallel::new(workers) });
        let little = Parallel { least_gain: 900, most_bytes: 1 << 15, ..parallel[0] };
        let ways = [parallel[0], parallel[1], little];
        let of = |p| json(&Graph::planned(queue.clone(), roles.clone(), kernels, Some(p)).unwrap());
        ways.map(of).concat() + &json(&Graph::new(queue.clone(), roles.clone(), kernels).unwrap())
    });
    assert_eq!(got, 14_681_393_274_678_957_502);
}

#[test]
fn what_is_computed_again() {
    let got = decided(MANY, |queue, roles, kernels| {
        let course = Course::new(order::ordered(queue, &roles, kernels), &roles);
        let some = greedy::Limits { bytes: 1 << 12, share: 0.3, gain: 0.02, rate: 0.5 };
        let limits = [greedy::Limits::NONE, some, greedy::Limits { rate: 2.0, ..some }];
        let shown = |limits| {
            let again = greedy::choose(&course, limits);
            let (queue, roles) = course.finish(&again);
            let peak = [Timeline::new(&queue, &roles, kernels).peak(); 2];
            format!("{:?} {peak:?}", doubled(&again))
        };
        limits.map(shown).concat()
    });
    assert_eq!(got, 14_551_235_386_472_070_687);
}

#[test]
fn budgets() {
    let got = decided(SEEDS, |queue, roles, kernels| {
        let orders = order::orders(queue, &roles, kernels).into_iter();
        let orders: Vec<Order> = orders
            .map(|ordered| {
                let course = Course::new(ordered, &roles);
                let again = greedy::choose(&course, greedy::Limits::NONE);
                (course, again)
            })
            .collect();
        let ways = Ways::new(&orders, kernels, None).unwrap();
        let (whole, least) = (ways.unconstrained().unwrap(), ways.smallest().unwrap());
        let mut shown = format!("{whole} {}", json(&least));
        for step in 0..8 {
            let budget = least.arena_bytes() + whole.saturating_sub(least.arena_bytes()) * step / 8;
            shown += &ways.within(budget).unwrap().map_or_else(String::new, |graph| json(&graph));
        }
        shown
    });
    assert_eq!(got, 12_220_277_164_302_476_882);
}

#[test]
fn workloads() {
    let got = fingerprint(SEEDS.map(|seed| {
        let packed = [true, false].map(|is_loose| traces::packing(60, seed, is_loose));
        let all = [traces::training(50, seed), traces::pareto(50, seed)].into_iter().chain(packed);
        all.map(|trace| format!("{:?} {:?}", trace.lifetimes, trace.sizes)).collect()
    }));
    assert_eq!(got, 17_080_860_067_097_472_745);
}

#[test]
fn plans() {
    let of = |trace: traces::Trace| {
        let made = plan(&trace.lifetimes, &trace.sizes, 64);
        format!("{} {} {:?}", made.height, made.bound, made.offsets)
    };
    let got = fingerprint(SEEDS.map(|seed| {
        let traces = [30, 300, 1500].map(|n| [traces::training(n, seed), traces::pareto(n, seed)]);
        let packed =
            [(20, true), (40, false), (80, false)].map(|(n, l)| traces::packing(n, seed, l));
        traces.into_iter().flatten().chain(packed).map(of).collect()
    }));
    assert_eq!(got, 9_387_001_307_410_557_857);
}

/// How far a search gets with more and more steps reveals every decision that it takes.
#[test]
fn exact_plans() {
    let got = fingerprint(SEEDS.map(|seed| {
        let trace = traces::packing(15 + 4 * seed as usize, seed, seed % 2 == 0);
        let packed = |steps, method| {
            let effort = exact::Effort::steps(steps);
            exact::pack(&trace.lifetimes, &trace.sizes, 64, traces::PACKED.0, method, effort)
        };
        let methods = [exact::Method::Any, exact::Method::Tiling, exact::Method::Branch];
        let efforts = (1..50).map(|n| 2 * n * n);
        let found = efforts.map(|steps| methods.map(|method| packed(steps, method)));
        format!("{:?}", found.collect::<Vec<_>>())
    }));
    assert_eq!(got, 7_295_528_318_839_245_346);
}

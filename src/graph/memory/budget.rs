//! A memory budget for the arena: blocks that do not fit are recomputed. Runs are simulated under
//! many limits, whatever the budget is, and the fastest one whose plan keeps to the budget is
//! taken. So more memory never costs time, and the least memory that was reached is known.

use std::sync::OnceLock;

use super::recompute::simulate::{Outcome, Patience, Policy, simulate};
use super::recompute::turns::{keep, outcome};
use super::recompute::{Again, Course};
use crate::device::team;
use crate::error::Result;
use crate::graph::analysis::timeline::Timeline;
use crate::graph::{Graph, Kernels, Parallel};

/// How many orders, the first ones, are simulated.
const SIMULATED: usize = 3;
/// How many limits are tried per order, up to the memory that keeping everything takes; fewer for
/// long runs, so that about `MOST_STEPS` steps are simulated. A multiple of four: halves and
/// quarters of the memory are the most common budgets.
const LIMITS: usize = 48;
/// See `LIMITS`.
const MOST_STEPS: usize = 800_000;
/// The weights to try for how long memory is freed.
const PATIENCE: [Patience; 3] = [Patience::Zero, Patience::Half, Patience::One];
/// A plan may exceed its estimate by one part in this many.
const SLACK: usize = 256;
/// Runs found for these fractions of a limit are improved by keeping more within the limit.
const TIGHTER: [f64; 2] = [0.75, 0.5];
/// How many ways are examined at a time, by all threads.
const AT_ONCE: usize = 16;
/// The assumed slowdown of any order but the recorded one, which makes worse use of caches.
const DETOUR: f64 = 1.02;

/// Operations in some order, and the recomputations already known to be worthwhile.
pub type Order = (Course, Vec<Again>);

/// A way to run the operations.
struct Way {
    /// The index of its order.
    order: usize,
    outcome: Outcome,
    /// Its peak memory, once it has been computed.
    peak: OnceLock<usize>,
}

impl Way {
    fn new(order: usize, mut outcome: Outcome) -> Way {
        outcome.time *= if order > 0 { DETOUR } else { 1.0 };
        Way { order, outcome, peak: OnceLock::new() }
    }
}

/// The ways to run operations: orders of them, and what is recomputed in each.
pub struct Ways<'a> {
    orders: &'a [Order],
    kernels: &'a Kernels,
    /// By order: its peak memory if everything is kept.
    whole: Vec<usize>,
    /// In ascending order of time, without duplicates.
    ways: Vec<Way>,
    parallel: Option<Parallel>,
}

impl<'a> Ways<'a> {
    /// Collects the ways of each order, the recorded one first: keeping everything, the known
    /// recomputations, and those found by simulation. If several threads run the graphs, they do so
    /// concurrently only as far as the remaining memory allows.
    ///
    /// # Errors
    /// A panic on a thread of the team.
    pub fn new(
        orders: &'a [Order],
        kernels: &'a Kernels,
        parallel: Option<Parallel>,
    ) -> Result<Ways<'a>> {
        let whole: Vec<usize> = orders.iter().map(|(course, _)| course.line.peak()).collect();
        let most = whole.iter().copied().min().unwrap_or(0);
        let mut simulated = simulated(&orders[..SIMULATED.min(orders.len())], most)?.into_iter();
        let of = |(order, (course, known)): (usize, &Order)| {
            let known = [Vec::new(), known.clone()].map(|again| outcome(course, again));
            let found = known.into_iter().chain(simulated.next().unwrap_or_default());
            found.map(move |outcome| Way::new(order, outcome)).collect::<Vec<_>>()
        };
        let mut ways: Vec<Way> = orders.iter().enumerate().flat_map(of).collect();
        ways.sort_by(|a, b| a.outcome.time.total_cmp(&b.outcome.time));
        ways.dedup_by(|a, b| a.order == b.order && a.outcome.again == b.outcome.again);
        Ok(Ways { orders, kernels, whole, ways, parallel })
    }

    /// The size of the arena if nothing is recomputed, for the order that then needs least.
    ///
    /// # Errors
    /// As [`Graph::new`].
    pub fn unconstrained(&self) -> Result<usize> {
        let orders = self.orders.iter().zip(&self.whole);
        let (best, _) = orders.min_by_key(|(_, whole)| **whole).expect("there is one at least");
        let (queue, roles) = best.0.finish(&[]);
        Ok(Graph::new(queue, roles, self.kernels)?.arena_bytes())
    }

    /// The fastest way whose arena takes at most `bytes`.
    ///
    /// # Errors
    /// As [`Graph::new`].
    pub fn within(&self, bytes: usize) -> Result<Option<Graph>> {
        for ways in self.ways.chunks(AT_ONCE) {
            let peaks = team::map(ways.len(), |n| self.peak(&ways[n]))?;
            for (way, _) in ways.iter().zip(peaks).filter(|(_, peak)| *peak <= bytes) {
                let graph = self.graph(way, bytes)?;
                if graph.arena_bytes() <= bytes {
                    return Ok(Some(graph));
                }
            }
        }
        Ok(None)
    }

    /// The way with the smallest arena.
    ///
    /// # Errors
    /// As [`Graph::new`].
    pub fn smallest(&self) -> Result<Graph> {
        team::map(self.ways.len(), |n| self.peak(&self.ways[n]))?;
        let mut ways: Vec<&Way> = self.ways.iter().collect();
        ways.sort_by_key(|way| self.peak(way));
        let mut smallest = self.graph(ways[0], 0)?;
        for way in &ways[1..] {
            if self.peak(way) >= smallest.arena_bytes() {
                break; // no plan is below the peak
            }
            let graph = self.graph(way, 0)?;
            if graph.arena_bytes() < smallest.arena_bytes() {
                smallest = graph;
            }
        }
        Ok(smallest)
    }

    /// The time of the fastest way whose arena takes at most `bytes`.
    #[cfg(test)]
    fn time(&self, bytes: usize) -> Option<f64> {
        let fits = |way: &&Way| self.graph(way, bytes).unwrap().arena_bytes() <= bytes;
        self.ways.iter().find(fits).map(|way| way.outcome.time)
    }

    fn peak(&self, way: &Way) -> usize {
        let course = &self.orders[way.order].0;
        *way.peak.get_or_init(|| peak(course, &way.outcome.again, self.kernels))
    }

    /// The graph of a way; its arena takes at most `most_bytes` if possible.
    fn graph(&self, way: &Way, most_bytes: usize) -> Result<Graph> {
        let (queue, roles) = self.orders[way.order].0.finish(&way.outcome.again);
        let parallel = self.parallel.map(|parallel| Parallel { most_bytes, ..parallel });
        Graph::planned(queue, roles, self.kernels, parallel)
    }
}

/// The peak memory of a run with these recomputations.
fn peak(course: &Course, again: &[Again], kernels: &Kernels) -> usize {
    let (queue, roles) = course.finish(again);
    Timeline::new(&queue, &roles, kernels).peak()
}

/// For each order, the runs under many limits.
fn simulated(orders: &[Order], whole: usize) -> Result<Vec<Vec<Outcome>>> {
    let limits: Vec<Vec<usize>> = orders.iter().map(|(course, _)| limits(course, whole)).collect();
    let all: Vec<(usize, usize)> = (0..orders.len())
        .flat_map(|order| limits[order].iter().map(move |&limit| (order, limit)))
        .collect();
    let runs = team::map(all.len(), |n| under(&orders[all[n].0].0, all[n].1).collect::<Vec<_>>())?;
    let mut found = vec![Vec::new(); orders.len()];
    all.iter().zip(runs).for_each(|(&(order, _), runs)| found[order].extend(runs));
    let better = |order: usize| improved(&orders[order].0, &limits[order], &found[order]);
    let better = team::map(orders.len(), better)?;
    found.iter_mut().zip(better).for_each(|(found, better)| found.extend(better));
    Ok(found)
}

/// The limits of an order's runs: fractions of the memory that keeping everything takes.
fn limits(course: &Course, whole: usize) -> Vec<usize> {
    let policies = 2 * PATIENCE.len();
    let count = (MOST_STEPS / policies / course.steps().max(1)).clamp(LIMITS / 4, LIMITS);
    let count = count.next_multiple_of(4);
    let (whole, least) = (whole - whole / SLACK, course.least());
    let mut limits: Vec<usize> = (0..count).map(|n| (whole * n / count).max(least)).collect();
    limits.dedup();
    limits
}

/// Runs under one limit, which keep as much as they can.
fn under(course: &Course, limit: usize) -> impl Iterator<Item = Outcome> {
    let policies = PATIENCE.iter().flat_map(|&patience| [(patience, false), (patience, true)]);
    policies.filter_map(move |(patience, heeds_results)| {
        let found = simulate(course, Policy { limit, patience, heeds_results })?;
        Some(keep(course, &found, limit))
    })
}

/// For each of the ascending limits: the fastest run obtained by keeping more in runs that take
/// less memory. The best run of the previous limit takes part, so that more memory never costs
/// time.
fn improved(course: &Course, limits: &[usize], found: &[Outcome]) -> Vec<Outcome> {
    let fastest = |limit: f64| {
        let fits = found.iter().filter(|outcome| outcome.memory as f64 <= limit);
        fits.min_by(|a, b| a.time.total_cmp(&b.time))
    };
    let mut best: Vec<Outcome> = Vec::new();
    for &limit in limits {
        let tighter = TIGHTER.iter().filter_map(|part| fastest(part * limit as f64));
        let kept = tighter.chain(best.last()).map(|outcome| keep(course, outcome, limit));
        best.extend(kept.min_by(|a, b| a.time.total_cmp(&b.time)));
    }
    best
}

#[cfg(test)]
mod tests;

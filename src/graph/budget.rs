//! A bound for the arena: what does not fit is computed again. Runs are simulated under many limits,
//! whatever the bound is, and the fastest one is taken whose plan keeps to it; so more memory never
//! costs time, and the least memory that was reached is known.

mod course;
mod simulate;

use std::cell::OnceCell;

use super::Graph;
use super::draft::{Again, Draft};
use crate::error::Result;
use course::Course;
use simulate::{Outcome, Policy, simulate};

/// Runs are simulated of so many orders, the first ones.
const SIMULATED: usize = 3;
/// How many limits are tried of an order, between what one step needs and what all take; fewer of
/// long runs, so that `MOST_STEPS` or so are simulated.
const LIMITS: usize = 48;
/// See `LIMITS`.
const MOST_STEPS: usize = 800_000;
/// How much it counts for how long memory is free.
const PATIENCE: [f64; 3] = [0.0, 0.5, 1.0];
/// What an order that is not the recorded one is taken to cost, since it finds less in caches.
const DETOUR: f64 = 1.02;

/// Operations in some order, and what is known to be worth computing again.
pub type Order = (Draft, Vec<Again>);

/// A way to run operations.
struct Way {
    /// The number of the order.
    order: usize,
    outcome: Outcome,
    /// The memory that it takes, once it was looked at.
    peak: OnceCell<usize>,
}

impl Way {
    fn new(order: usize, mut outcome: Outcome) -> Way {
        outcome.time *= if order > 0 { DETOUR } else { 1.0 };
        Way { order, outcome, peak: OnceCell::new() }
    }
}

/// Orders of the same operations, and what may be computed again in each.
pub struct Ways<'a> {
    orders: &'a [Order],
    /// In ascending order of time.
    ways: Vec<Way>,
}

impl<'a> Ways<'a> {
    /// Of each order, the recorded one first: to keep all, what is known already, and what is found
    /// by simulation.
    pub fn new(orders: &'a [Order]) -> Ways<'a> {
        let of = |(order, (draft, known)): (usize, &Order)| {
            let course = Course::new(draft);
            let mut found = vec![course.outcome(Vec::new()), course.outcome(known.clone())];
            if order < SIMULATED {
                found.extend(simulated(&course, draft.peak(&[])));
            }
            found.into_iter().map(move |outcome| Way::new(order, outcome))
        };
        let mut ways: Vec<Way> = orders.iter().enumerate().flat_map(of).collect();
        ways.sort_by(|a, b| a.outcome.time.total_cmp(&b.outcome.time));
        Ways { orders, ways }
    }

    /// The fastest one whose arena is at most so large.
    ///
    /// # Errors
    /// What [`Graph::new`] says.
    pub fn within(&self, bytes: usize) -> Result<Option<Graph>> {
        for way in self.ways.iter().filter(|way| self.peak(way) <= bytes) {
            let graph = self.graph(way)?;
            if graph.arena_bytes() <= bytes {
                return Ok(Some(graph));
            }
        }
        Ok(None)
    }

    /// The one with the smallest arena.
    ///
    /// # Errors
    /// What [`Graph::new`] says.
    pub fn smallest(&self) -> Result<Graph> {
        let mut ways: Vec<&Way> = self.ways.iter().collect();
        ways.sort_by_key(|way| self.peak(way));
        let mut smallest = self.graph(ways[0])?;
        for way in &ways[1..] {
            if self.peak(way) >= smallest.arena_bytes() {
                break; // no plan is lower than the peak
            }
            let graph = self.graph(way)?;
            if graph.arena_bytes() < smallest.arena_bytes() {
                smallest = graph;
            }
        }
        Ok(smallest)
    }

    /// The time that the fastest one takes whose arena is at most so large.
    #[cfg(test)]
    fn time(&self, bytes: usize) -> Option<f64> {
        let fits = |way: &&Way| self.graph(way).unwrap().arena_bytes() <= bytes;
        self.ways.iter().find(fits).map(|way| way.outcome.time)
    }

    fn peak(&self, way: &Way) -> usize {
        *way.peak.get_or_init(|| self.orders[way.order].0.peak(&way.outcome.again))
    }

    fn graph(&self, way: &Way) -> Result<Graph> {
        let (queue, roles) = self.orders[way.order].0.finish(&way.outcome.again);
        Graph::new(queue, roles)
    }
}

/// Runs under many limits, up to the memory that all takes.
fn simulated(course: &Course, most: usize) -> Vec<Outcome> {
    let (least, policies) = (course.least(), 2 * PATIENCE.len());
    let limits = (MOST_STEPS / policies / course.steps.len().max(1)).clamp(LIMITS / 4, LIMITS);
    let mut found = Vec::new();
    for step in 0..limits {
        let limit = least + most.saturating_sub(least) * step / limits;
        for (patience, heeds_results) in PATIENCE.iter().flat_map(|&p| [(p, false), (p, true)]) {
            found.extend(simulate(course, Policy { limit, patience, heeds_results }));
        }
    }
    found
}

#[cfg(test)]
mod tests;

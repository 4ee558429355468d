//! Counts what programs and their graphs contain, so that a test knows what it covered.

use std::collections::BTreeSet;
use std::iter::Sum;

use super::generate::STEPS;
use super::*;

/// What the programs of a test contain.
#[derive(Clone, Default, Debug)]
pub struct Features {
    pub steps: u64,
    pub in_place: u64,
    pub overlapping: u64,
    pub updates: u64,
    pub random: u64,
    pub kept: u64,
    pub dropped: u64,
    pub unwritten: u64,
    pub moved_arguments: u64,
    pub one_argument_twice: u64,
    /// Operations that a graph recomputes.
    recomputed: u64,
    /// Operations that were fused into another one.
    chains: u64,
    /// Operations that need not run in every run.
    constants: u64,
    /// The operations' names.
    pub names: BTreeSet<&'static str>,
}

impl Features {
    /// All counters, the steps first.
    fn counts(&mut self) -> [&mut u64; 13] {
        [
            &mut self.steps,
            &mut self.in_place,
            &mut self.overlapping,
            &mut self.updates,
            &mut self.random,
            &mut self.kept,
            &mut self.dropped,
            &mut self.unwritten,
            &mut self.moved_arguments,
            &mut self.one_argument_twice,
            &mut self.recomputed,
            &mut self.chains,
            &mut self.constants,
        ]
    }

    /// Panics unless there was enough of everything; with few programs only the steps are checked.
    pub fn check(mut self, programs: u64) {
        assert!(self.steps >= programs * STEPS[0] as u64, "{self:?}");
        if programs < FEWER {
            return;
        }
        let is_enough = self.counts().into_iter().all(|count| *count >= programs / 30);
        assert!(is_enough, "{self:?}");
        // Exchanges need other processes. Fused reductions differ in their last operation alone.
        let drawn = |name: &&str| match name.starts_with("chain_") {
            true => self.names.iter().any(|known| known.starts_with("chain_")),
            false => self.names.contains(name) || name.starts_with("exchange_"),
        };
        let missing: Vec<_> = Kind::names().into_iter().filter(|name| !drawn(name)).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }

    /// Counts what a graph contains, of which `recomputed` operations are recomputed.
    pub fn note(&mut self, executable: &Executable, recomputed: usize) {
        self.recomputed += recomputed as u64;
        let nodes = executable.graph().ops();
        for family in nodes.iter().map(|node| node.call.kind.family()) {
            let parts = family.region().into_iter().flat_map(|region| region.operations());
            self.names.extend(parts.map(|link| link.kind.family().name()).chain([family.name()]));
        }
        let links = nodes.iter().map(|node| match &node.call.kind {
            Kind::Region(region) => region.links.len().saturating_sub(1) as u64,
            _ => 0,
        });
        self.chains += links.sum::<u64>();
        self.constants += executable.constants().operations as u64;
    }
}

impl Sum for Features {
    fn sum<I: Iterator<Item = Features>>(all: I) -> Features {
        all.fold(Features::default(), |mut sum, mut one| {
            sum.counts().into_iter().zip(one.counts()).for_each(|(sum, count)| *sum += *count);
            sum.names.append(&mut one.names);
            sum
        })
    }
}

//! Counting what programs and their graphs contain, so that a test knows what it put to the proof.

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
    /// Operations that a graph computes again.
    recomputed: u64,
    /// Operations that went into another one's pass.
    chains: u64,
    /// Operations that need not run in every run.
    constants: u64,
}

impl Features {
    fn counts(&self) -> [u64; 13] {
        [
            self.steps / STEPS[0] as u64,
            self.in_place,
            self.overlapping,
            self.updates,
            self.random,
            self.kept,
            self.dropped,
            self.unwritten,
            self.moved_arguments,
            self.one_argument_twice,
            self.recomputed,
            self.chains,
            self.constants,
        ]
    }

    /// Panics unless there was enough of everything.
    pub fn check(&self, programs: u64) {
        assert!(self.steps >= programs * STEPS[0] as u64, "{self:?}");
        assert!(self.counts().into_iter().all(|count| count >= programs / 25), "{self:?}");
    }

    /// Counts what a graph has, in which so many operations run again.
    pub fn note(&mut self, executable: &Executable, recomputed: usize) {
        self.recomputed += recomputed as u64;
        let links = executable.graph().nodes().iter().map(|node| match &node.op.kind {
            Kind::Chain(chain) => chain.links.len() as u64 - 1,
            _ => 0,
        });
        self.chains += links.sum::<u64>();
        self.constants += executable.constants().operations as u64;
    }
}

impl Sum for Features {
    fn sum<I: Iterator<Item = Features>>(all: I) -> Features {
        all.fold(Features::default(), |a, b| Features {
            steps: a.steps + b.steps,
            in_place: a.in_place + b.in_place,
            overlapping: a.overlapping + b.overlapping,
            updates: a.updates + b.updates,
            random: a.random + b.random,
            kept: a.kept + b.kept,
            dropped: a.dropped + b.dropped,
            unwritten: a.unwritten + b.unwritten,
            moved_arguments: a.moved_arguments + b.moved_arguments,
            one_argument_twice: a.one_argument_twice + b.one_argument_twice,
            recomputed: a.recomputed + b.recomputed,
            chains: a.chains + b.chains,
            constants: a.constants + b.constants,
        })
    }
}

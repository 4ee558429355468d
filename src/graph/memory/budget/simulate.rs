//! Simulates a run under a memory limit: what does not fit is dropped, and recomputed before its
//! next use. What to drop is chosen as in Kirisame et al. (2021, "Dynamic tensor
//! rematerialization"): the block that loses least time for its bytes and for how long they stay
//! free. Here, unlike there, the next use is known.

mod loss;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::course::Course;
use crate::graph::draft::Again;
use loss::DEPTH;

/// How a run is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// The bytes that may be live at once.
    pub limit: usize,
    /// The weight of how long memory is freed.
    pub patience: Patience,
    /// Whether dropped results that are made from a block count towards its loss.
    pub heeds_results: bool,
}

/// The weight of a time: its exponent is zero, a half or one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    Zero,
    Half,
    One,
}

impl Patience {
    fn of(self, time: f64) -> f64 {
        match self {
            Patience::Zero => 1.0,
            Patience::Half => time.powf(0.5),
            Patience::One => time,
        }
    }
}

/// The result of a simulated run.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// What is recomputed.
    pub again: Vec<Again>,
    /// Its time, recomputation included.
    pub time: f64,
    /// An estimate of its peak memory.
    pub memory: usize,
}

/// In `absent`: the block is in memory.
const THERE: u32 = u32::MAX;
/// In `absent`: the block has not been made yet, or is over and cannot be recomputed.
const NOWHERE: u32 = u32::MAX - 1;

/// A run that takes this many times as long as without a limit is abandoned.
const MOST_TIME: f64 = 3.0;

/// Simulates a run; None if the limit cannot be kept.
pub(super) fn simulate(course: &Course, policy: Policy) -> Option<Outcome> {
    let mut run = Run::new(course, policy);
    (0..course.steps.len()).try_for_each(|i| run.step(i))?;
    Some(Outcome { again: run.again, time: run.time, memory: run.most })
}

struct Run<'a> {
    course: &'a Course,
    policy: Policy,
    /// The current step, before which blocks are recomputed as needed.
    now: usize,
    live: usize,
    /// The most bytes that have been live at once so far.
    most: usize,
    /// By block: the step that recomputes it if it was dropped; otherwise `THERE` or `NOWHERE`.
    absent: Vec<u32>,
    /// By block: how many steps that are about to run need it.
    pins: Vec<u32>,
    /// By block: how many of its uses are over.
    used: Vec<usize>,
    /// By block: the next step that uses it; None before it is made and after its last use.
    next: Vec<Option<usize>>,
    /// What may be dropped, by loss as bits, which order non-negative floats. A block may have
    /// several entries; only the one with its latest loss is valid.
    droppable: BinaryHeap<Reverse<(u64, u32)>>,
    /// By block: its loss when it was last computed.
    losses: Vec<u64>,
    /// By step: the number of the last search that met it.
    marks: Vec<u32>,
    searches: u32,
    again: Vec<Again>,
    time: f64,
}

impl<'a> Run<'a> {
    fn new(course: &'a Course, policy: Policy) -> Self {
        let blocks = course.blocks.len();
        Run {
            course,
            policy,
            now: 0,
            live: 0,
            most: 0,
            absent: vec![NOWHERE; blocks],
            pins: vec![0; blocks],
            used: vec![0; blocks],
            next: vec![None; blocks],
            droppable: BinaryHeap::new(),
            losses: vec![0; blocks],
            marks: vec![0; course.steps.len()],
            searches: 0,
            again: Vec::new(),
            time: course.clock[course.steps.len()],
        }
    }

    fn step(&mut self, i: usize) -> Option<()> {
        let step = &self.course.steps[i];
        self.now = i;
        self.pin(&step.reads);
        for &block in &step.reads {
            self.restore(block)?;
        }
        let is_free = |&&block: &&u32| self.results_need(block, DEPTH).is_none();
        let taken: usize = step.takes.iter().filter(is_free).map(|&block| self.size(block)).sum();
        let needed: usize = step.makes.iter().map(|&block| self.size(block)).sum();
        self.make_room((needed + step.scratch).saturating_sub(taken))?;
        step.makes.iter().for_each(|&block| self.add(block));
        for &block in step.reads.iter().chain(&step.makes) {
            let uses = &self.course.blocks[block as usize].uses;
            self.used[block as usize] += 1;
            self.next[block as usize] = uses.get(self.used[block as usize]).copied();
        }
        self.unpin(&step.reads);
        self.offer(&step.makes);
        Some(())
    }

    /// Recomputes a block that is not in memory, along with what it is made from.
    fn restore(&mut self, block: u32) -> Option<()> {
        if self.is_there(block) {
            return Some(());
        }
        let makers = self.missing(block);
        makers.iter().for_each(|&maker| self.pin(&self.course.steps[maker].reads));
        makers.iter().try_for_each(|&maker| self.run_again(maker))
    }

    fn run_again(&mut self, maker: usize) -> Option<()> {
        let step = &self.course.steps[maker];
        self.make_room(step.results + step.scratch)?;
        let is_missing = |&&block: &&u32| !self.is_there(block);
        let blocks: SmallVec<_> = step.makes.iter().filter(is_missing).copied().collect();
        blocks.iter().for_each(|&block| self.add(block));
        self.offer(&blocks);
        self.unpin(&step.reads);
        self.time += step.time;
        let before = self.course.steps[self.now].number;
        self.again.push(Again { maker: step.number, before, blocks });
        let most = MOST_TIME * self.course.clock[self.course.steps.len()];
        (self.time <= most).then_some(())
    }

    /// Drops blocks until `needed` bytes are free, for a step that is about to run.
    fn make_room(&mut self, needed: usize) -> Option<()> {
        while self.live + needed > self.policy.limit {
            let Reverse((loss, block)) = self.droppable.pop()?;
            let is_latest = self.is_there(block) && self.losses[block as usize] == loss;
            if !is_latest || self.pins[block as usize] > 0 {
                continue; // pinned blocks are offered again once unpinned
            }
            let loss = self.look(block);
            match self.droppable.peek() {
                Some(Reverse((next, _))) if *next < loss => {
                    self.droppable.push(Reverse((loss, block)));
                }
                _ => self.remove(block),
            }
        }
        self.most = self.most.max(self.live + needed);
        Some(())
    }

    fn size(&self, block: u32) -> usize {
        self.course.blocks[block as usize].size
    }

    fn pin(&mut self, blocks: &[u32]) {
        blocks.iter().for_each(|&block| self.pins[block as usize] += 1);
    }

    fn unpin(&mut self, blocks: &[u32]) {
        blocks.iter().for_each(|&block| self.pins[block as usize] -= 1);
        self.offer(blocks);
    }

    /// Blocks that were just made or used become droppable; those not needed again are removed.
    fn offer(&mut self, blocks: &[u32]) {
        for &block in blocks {
            if self.pins[block as usize] > 0 {
                continue;
            }
            let known = &self.course.blocks[block as usize];
            let is_over = self.next[block as usize].is_none();
            if is_over && (known.maker.is_none() || self.next_use(block, DEPTH).is_none()) {
                self.remove(block);
            } else if known.maker.is_some() {
                let loss = self.look(block);
                self.droppable.push(Reverse((loss, block)));
            }
        }
    }

    fn is_there(&self, block: u32) -> bool {
        self.absent[block as usize] == THERE
    }

    fn add(&mut self, block: u32) {
        self.absent[block as usize] = THERE;
        self.live += self.size(block);
    }

    fn remove(&mut self, block: u32) {
        let maker = self.course.blocks[block as usize].maker;
        let maker = maker.map_or(NOWHERE, |maker| maker as u32);
        if std::mem::replace(&mut self.absent[block as usize], maker) == THERE {
            self.live -= self.size(block);
        }
    }
}

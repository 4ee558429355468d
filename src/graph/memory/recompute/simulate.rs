//! Simulates a run under a memory limit: what does not fit is dropped, and recomputed before its
//! next use. What to drop is chosen as in Kirisame et al. (2021, "Dynamic tensor
//! rematerialization"): the block that loses least time for its bytes and for how long they stay
//! free. Here, unlike there, the next use is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::{SmallVec, smallvec};

use super::{Again, Course};

/// How a run is simulated.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph::memory) struct Policy {
    /// The bytes that may be live at once.
    pub limit: usize,
    /// The weight of how long memory is freed.
    pub patience: Patience,
    /// Whether dropped results that are made from a block count towards its loss.
    pub heeds_results: bool,
}

/// The weight of a time: its exponent is zero, a half or one.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph::memory) enum Patience {
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
pub(in crate::graph::memory) struct Outcome {
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

/// How many steps that would have to be rerun are counted towards a block's loss.
const MOST_LOST: usize = 32;
/// How many levels of results, and results of these, are searched for the next use.
const DEPTH: usize = 3;

/// A run that takes this many times as long as without a limit is abandoned.
const MOST_TIME: f64 = 3.0;

/// Simulates a run; None if the limit cannot be kept.
pub(in crate::graph::memory) fn simulate(course: &Course, policy: Policy) -> Option<Outcome> {
    let mut run = Simulation::new(course, policy);
    (0..course.steps()).try_for_each(|i| run.step(i))?;
    Some(Outcome { again: run.again, time: run.time, memory: run.most })
}

struct Simulation<'a> {
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

impl<'a> Simulation<'a> {
    fn new(course: &'a Course, policy: Policy) -> Self {
        let blocks = course.blocks();
        Simulation {
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
            marks: vec![0; course.steps()],
            searches: 0,
            again: Vec::new(),
            time: course.clock[course.steps()],
        }
    }

    fn step(&mut self, i: usize) -> Option<()> {
        let (course, line) = (self.course, &self.course.line);
        let (reads, makes) = (line.reads.row(i), line.makes.row(i));
        self.now = i;
        self.pin(reads);
        reads.iter().try_for_each(|&block| self.restore(block))?;
        let taken = course.taken(i, |block| self.results_need(block, DEPTH).is_none());
        let needed: usize = makes.iter().map(|&block| course.size(block)).sum();
        self.make_room((needed + line.scratch[i]).saturating_sub(taken))?;
        makes.iter().for_each(|&block| self.add(block));
        for block in line.uses(i).map(|block| block as usize) {
            self.used[block] += 1;
            self.next[block] = course.users.row(block).get(self.used[block]).map(|&n| n as usize);
        }
        self.unpin(reads);
        self.offer(makes);
        Some(())
    }

    /// Recomputes a block that is not in memory, along with what it is made from.
    fn restore(&mut self, block: u32) -> Option<()> {
        if self.is_there(block) {
            return Some(());
        }
        let makers = self.missing(block);
        let reads = &self.course.line.reads;
        makers.iter().for_each(|&maker| self.pin(reads.row(maker)));
        makers.iter().try_for_each(|&maker| self.run_again(maker))
    }

    fn run_again(&mut self, maker: usize) -> Option<()> {
        let (course, line) = (self.course, &self.course.line);
        let results = course.op(maker).outputs.iter().map(|place| course.size(place.block));
        self.make_room(results.sum::<usize>() + line.scratch[maker])?;
        let is_missing = |&&block: &&u32| !self.is_there(block);
        let blocks: SmallVec<_> =
            line.makes.row(maker).iter().filter(is_missing).copied().collect();
        blocks.iter().for_each(|&block| self.add(block));
        self.offer(&blocks);
        self.unpin(line.reads.row(maker));
        self.time += course.times[maker];
        self.again.push(Again { maker, before: self.now, blocks });
        (self.time <= MOST_TIME * course.clock[course.steps()]).then_some(())
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
            let maker = self.course.makers[block as usize];
            let is_over = self.next[block as usize].is_none();
            if is_over && (maker.is_none() || self.next_use(block, DEPTH).is_none()) {
                self.remove(block);
            } else if maker.is_some() {
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
        self.live += self.course.size(block);
    }

    fn remove(&mut self, block: u32) {
        let maker = self.course.makers[block as usize];
        let maker = maker.map_or(NOWHERE, |maker| maker as u32);
        if std::mem::replace(&mut self.absent[block as usize], maker) == THERE {
            self.live -= self.course.size(block);
        }
    }
}

/// Steps that have to be rerun.
type Steps = SmallVec<[usize; MOST_LOST]>;

/// What dropping a block loses: the steps that have to be rerun to recompute it.
impl Simulation<'_> {
    /// The steps that have to be rerun to recompute a block, in order.
    fn missing(&mut self, block: u32) -> Steps {
        let mut found = Steps::new();
        let mut path = SmallVec::<[(usize, usize); 8]>::new();
        self.searches += 1;
        path.extend(self.meet(block).map(|step| (step, 0)));
        while let Some((step, looked)) = path.pop() {
            match self.course.line.reads.row(step).get(looked) {
                Some(&from) => {
                    path.push((step, looked + 1));
                    path.extend(self.meet(from).map(|step| (step, 0)));
                }
                None => found.push(step),
            }
        }
        found
    }

    /// The step that makes a block, if the block is absent and the search has not met the step.
    fn meet(&mut self, block: u32) -> Option<usize> {
        if self.is_there(block) {
            return None;
        }
        // No step needs a block that is `NOWHERE`.
        let maker = self.absent[block as usize] as usize;
        let mark = std::mem::replace(&mut self.marks[maker], self.searches);
        (mark != self.searches).then_some(maker)
    }

    /// Computes and stores a block's loss.
    fn look(&mut self, block: u32) -> u64 {
        let loss = self.loss(block).to_bits();
        self.losses[block as usize] = loss;
        loss
    }

    /// The time that dropping a block loses, relative to its bytes and how long they would be free.
    fn loss(&mut self, block: u32) -> f64 {
        let Some(next) = self.next_use(block, DEPTH) else { return 0.0 };
        let bytes = self.course.size(block).max(1) as f64;
        let free = self.course.clock[next] - self.course.clock[self.now];
        self.lost(block) / (bytes * self.policy.patience.of(free.max(1.0)))
    }

    /// The time of the nearest steps that would have to be rerun: the block's maker, the makers of
    /// absent inputs, and, if the policy heeds them, those of absent results.
    fn lost(&mut self, block: u32) -> f64 {
        self.searches += 1;
        let maker = self.course.makers[block as usize].expect("only such blocks are offered");
        self.marks[maker] = self.searches;
        let (mut time, mut steps) = (0.0, Steps::from_slice(&[maker]));
        if self.policy.heeds_results {
            self.meet_results(block, &mut steps);
        }
        for looked in 0..MOST_LOST {
            let Some(&step) = steps.get(looked) else { break };
            time += self.course.times[step];
            for &from in self.course.line.reads.row(step) {
                if steps.len() == MOST_LOST {
                    break; // the rest is ignored
                }
                steps.extend(self.meet(from));
            }
        }
        time
    }

    /// Adds the steps that make those results of a block that were dropped and will be needed.
    fn meet_results(&mut self, block: u32, steps: &mut Steps) {
        let mut blocks: SmallVec<[u32; 8]> = smallvec![block];
        while let Some(block) = blocks.pop() {
            for &result in self.course.results.row(block as usize) {
                if steps.len() < MOST_LOST
                    && self.is_dropped(result)
                    && self.next_use(result, 1).is_some()
                    && let Some(step) = self.meet(result)
                {
                    steps.push(step);
                    blocks.push(result);
                }
            }
        }
    }

    /// The next step that needs a block, either directly or to recompute its results.
    fn next_use(&self, block: u32, depth: usize) -> Option<usize> {
        let own = self.next[block as usize];
        own.into_iter().chain(self.results_need(block, depth)).min()
    }

    /// The next step that needs dropped results of a block, which have to be recomputed from it.
    fn results_need(&self, block: u32, depth: usize) -> Option<usize> {
        let results = if depth > 0 { self.course.results.row(block as usize) } else { &[] };
        let dropped = results.iter().filter(|&&result| self.is_dropped(result));
        dropped.filter_map(|&result| self.next_use(result, depth - 1)).min()
    }

    /// Whether a block was in memory before and has been dropped.
    fn is_dropped(&self, block: u32) -> bool {
        self.absent[block as usize] < NOWHERE
    }
}

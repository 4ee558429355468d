//! A simulated run under a limit of memory: what does not fit is dropped, and made again before it
//! is used next. What is dropped is chosen after Kirisame et al. (2021, "Dynamic tensor
//! rematerialization"): where least time is lost for the bytes and for how long they are free; but
//! here the next use is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::course::Course;
use crate::graph::draft::Again;

/// How a run is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// The bytes that may live at once.
    pub limit: usize,
    /// How much it counts for how long memory is free: the exponent of that time.
    pub patience: f64,
    /// Whether what is missing that is made from a block counts as lost with it, too.
    pub heeds_results: bool,
}

/// What is made again, and how long the run takes with that.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub again: Vec<Again>,
    pub time: f64,
}

/// A run that takes so many times as long as without a limit is given up.
const MOST_TIME: f64 = 3.0;
/// What is lost with a block is looked at so far: the most steps that would have to run again.
const MOST_LOST: usize = 32;
/// How far the use of what is made from a block's results is looked for.
const DEPTH: usize = 3;

/// None where the limit cannot be kept.
pub(super) fn simulate(course: &Course, policy: Policy) -> Option<Outcome> {
    let mut run = Run::new(course, policy);
    (0..course.steps.len()).try_for_each(|i| run.step(i))?;
    Some(Outcome { again: run.again, time: run.time })
}

struct Run<'a> {
    course: &'a Course,
    policy: Policy,
    /// The step that runs, or before which something is made again.
    now: usize,
    live: usize,
    is_there: Vec<bool>,
    /// How many steps that are about to run need each block.
    pins: Vec<u32>,
    /// How many of its uses each block has behind it.
    used: Vec<usize>,
    /// What may be dropped, by what is lost by it: numbers of at least zero as bits, in whose order
    /// they are. A block stands here as often as its loss was looked at.
    droppable: BinaryHeap<Reverse<(u64, u32)>>,
    /// Each block's loss when it was looked at last.
    losses: Vec<u64>,
    /// Steps that a search has met: those marked with its number.
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
            is_there: vec![false; blocks],
            pins: vec![0; blocks],
            used: vec![0; blocks],
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
            self.used[block as usize] += 1;
        }
        self.unpin(&step.reads);
        self.offer(&step.makes);
        Some(())
    }

    /// Makes a block again unless it is there, and what it is made from.
    fn restore(&mut self, block: u32) -> Option<()> {
        if self.is_there[block as usize] {
            return Some(());
        }
        let makers = self.missing(block);
        makers.iter().for_each(|&maker| self.pin(&self.course.steps[maker].reads));
        makers.iter().try_for_each(|&maker| self.run_again(maker))
    }

    fn run_again(&mut self, maker: usize) -> Option<()> {
        let step = &self.course.steps[maker];
        self.make_room(step.results + step.scratch)?;
        let is_missing = |&&block: &&u32| !self.is_there[block as usize];
        let blocks: Vec<u32> = step.makes.iter().filter(is_missing).copied().collect();
        blocks.iter().for_each(|&block| self.add(block));
        self.offer(&blocks);
        self.unpin(&step.reads);
        self.time += step.time;
        let before = self.course.steps[self.now].number;
        self.again.push(Again { maker: step.number, before, blocks: blocks.into() });
        let most = MOST_TIME * self.course.clock[self.course.steps.len()];
        (self.time <= most).then_some(())
    }

    /// The steps that have to run again before a block is there, in order.
    fn missing(&mut self, block: u32) -> Vec<usize> {
        let (mut found, mut path) = (Vec::new(), Vec::new());
        self.searches += 1;
        path.extend(self.meet(block).map(|step| (step, 0)));
        while let Some((step, looked)) = path.pop() {
            match self.course.steps[step].reads.get(looked) {
                Some(&from) => {
                    path.push((step, looked + 1));
                    path.extend(self.meet(from).map(|step| (step, 0)));
                }
                None => found.push(step),
            }
        }
        found
    }

    /// The step that makes a block, if that is not there and the search has not met the step.
    fn meet(&mut self, block: u32) -> Option<usize> {
        if self.is_there[block as usize] {
            return None;
        }
        let maker = self.course.blocks[block as usize].maker;
        let maker = maker.expect("only what can be made again is dropped");
        let mark = std::mem::replace(&mut self.marks[maker], self.searches);
        (mark != self.searches).then_some(maker)
    }

    /// Drops blocks until so many bytes are free.
    fn make_room(&mut self, needed: usize) -> Option<()> {
        while self.live + needed > self.policy.limit {
            let Reverse((loss, block)) = self.droppable.pop()?;
            let is_latest = self.is_there[block as usize] && self.losses[block as usize] == loss;
            if !is_latest || self.pins[block as usize] > 0 {
                continue; // what is pinned is offered again
            }
            let loss = self.look(block);
            match self.droppable.peek() {
                Some(Reverse((next, _))) if *next < loss => {
                    self.droppable.push(Reverse((loss, block)));
                }
                _ => self.remove(block),
            }
        }
        Some(())
    }

    /// Looks at what is lost with a block.
    fn look(&mut self, block: u32) -> u64 {
        let loss = self.loss(block).to_bits();
        self.losses[block as usize] = loss;
        loss
    }

    /// The time that is lost with a block, for its bytes and how long they would be free.
    fn loss(&mut self, block: u32) -> f64 {
        let Some(next) = self.next_use(block, DEPTH) else { return 0.0 };
        let bytes = self.size(block).max(1) as f64;
        let free = self.course.clock[next] - self.course.clock[self.now];
        self.lost(block) / (bytes * free.max(1.0).powf(self.policy.patience))
    }

    /// The time of the steps that would have to run again with a block, the nearest ones: what
    /// makes it and what is missing for that, and what is missing that is made from it.
    fn lost(&mut self, block: u32) -> f64 {
        self.searches += 1;
        let maker = self.course.blocks[block as usize].maker.expect("only such blocks are offered");
        self.marks[maker] = self.searches;
        let (mut time, mut steps) = (0.0, vec![maker]);
        if self.policy.heeds_results {
            self.meet_results(block, &mut steps);
        }
        for looked in 0..MOST_LOST {
            let Some(&step) = steps.get(looked) else { break };
            time += self.course.steps[step].time;
            for &from in &self.course.steps[step].reads {
                steps.extend(self.meet(from));
            }
        }
        time
    }

    /// Adds the steps that make what was made from a block, is missing and will be needed.
    fn meet_results(&mut self, block: u32, steps: &mut Vec<usize>) {
        let mut blocks = vec![block];
        while let Some(block) = blocks.pop() {
            for &result in &self.course.blocks[block as usize].results {
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

    /// The next step that needs a block, itself or to make again what was made from it.
    fn next_use(&self, block: u32, depth: usize) -> Option<usize> {
        let own = self.course.blocks[block as usize].uses.get(self.used[block as usize]).copied();
        own.into_iter().chain(self.results_need(block, depth)).min()
    }

    /// The next step for which what was made from a block, and dropped, has to be made again.
    fn results_need(&self, block: u32, depth: usize) -> Option<usize> {
        let results = if depth > 0 { &self.course.blocks[block as usize].results[..] } else { &[] };
        let dropped = results.iter().filter(|&&result| self.is_dropped(result));
        dropped.filter_map(|&result| self.next_use(result, depth - 1)).min()
    }

    /// Whether a block was there before, and is not now.
    fn is_dropped(&self, block: u32) -> bool {
        !self.is_there[block as usize] && self.used[block as usize] > 0
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

    /// Blocks that were just made or used may be dropped, and those that nobody needs are.
    fn offer(&mut self, blocks: &[u32]) {
        for &block in blocks {
            if self.pins[block as usize] > 0 {
                continue;
            }
            let known = &self.course.blocks[block as usize];
            let is_over = self.used[block as usize] == known.uses.len();
            if is_over && (known.maker.is_none() || self.next_use(block, DEPTH).is_none()) {
                self.remove(block);
            } else if known.maker.is_some() {
                let loss = self.look(block);
                self.droppable.push(Reverse((loss, block)));
            }
        }
    }

    fn add(&mut self, block: u32) {
        self.is_there[block as usize] = true;
        self.live += self.size(block);
    }

    fn remove(&mut self, block: u32) {
        if std::mem::replace(&mut self.is_there[block as usize], false) {
            self.live -= self.size(block);
        }
    }
}

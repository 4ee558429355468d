//! What dropping a block loses: the steps that have to be rerun to recompute it.

use smallvec::{SmallVec, smallvec};

use super::{NOWHERE, Run};

/// How many steps that would have to be rerun are counted towards a block's loss.
const MOST_LOST: usize = 32;
/// How many levels of results, and results of these, are searched for the next use.
pub(super) const DEPTH: usize = 3;

/// Steps that have to be rerun.
type Steps = SmallVec<[usize; MOST_LOST]>;

impl Run<'_> {
    /// The steps that have to be rerun to recompute a block, in order.
    pub(super) fn missing(&mut self, block: u32) -> Steps {
        let mut found = Steps::new();
        let mut path = SmallVec::<[(usize, usize); 8]>::new();
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
    pub(super) fn look(&mut self, block: u32) -> u64 {
        let loss = self.loss(block).to_bits();
        self.losses[block as usize] = loss;
        loss
    }

    /// The time that dropping a block loses, relative to its bytes and how long they would be free.
    fn loss(&mut self, block: u32) -> f64 {
        let Some(next) = self.next_use(block, DEPTH) else { return 0.0 };
        let bytes = self.size(block).max(1) as f64;
        let free = self.course.clock[next] - self.course.clock[self.now];
        self.lost(block) / (bytes * self.policy.patience.of(free.max(1.0)))
    }

    /// The time of the nearest steps that would have to be rerun: the block's maker, the makers of
    /// absent inputs, and, if the policy heeds them, those of absent results.
    fn lost(&mut self, block: u32) -> f64 {
        self.searches += 1;
        let maker = self.course.blocks[block as usize].maker.expect("only such blocks are offered");
        self.marks[maker] = self.searches;
        let (mut time, mut steps) = (0.0, Steps::from_slice(&[maker]));
        if self.policy.heeds_results {
            self.meet_results(block, &mut steps);
        }
        for looked in 0..MOST_LOST {
            let Some(&step) = steps.get(looked) else { break };
            time += self.course.steps[step].time;
            for &from in &self.course.steps[step].reads {
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

    /// The next step that needs a block, either directly or to recompute its results.
    pub(super) fn next_use(&self, block: u32, depth: usize) -> Option<usize> {
        let own = self.next[block as usize];
        own.into_iter().chain(self.results_need(block, depth)).min()
    }

    /// The next step that needs dropped results of a block, which have to be recomputed from it.
    pub(super) fn results_need(&self, block: u32, depth: usize) -> Option<usize> {
        let results = if depth > 0 { &self.course.blocks[block as usize].results[..] } else { &[] };
        let dropped = results.iter().filter(|&&result| self.is_dropped(result));
        dropped.filter_map(|&result| self.next_use(result, depth - 1)).min()
    }

    /// Whether a block was in memory before and has been dropped.
    fn is_dropped(&self, block: u32) -> bool {
        self.absent[block as usize] < NOWHERE
    }
}

//! Moves operations out of the runs if their results are the same in every run, as long as the
//! parameters that they depend on are not written: they are computed once, and cached. Steps that
//! they depend on but that stay in the run are computed on both sides.

use rustc_hash::FxHashSet;

use crate::graph::cost::work;
use crate::graph::draft::Draft;
use crate::graph::{Op, Queue, Role};
use crate::ops::Effects;

/// The minimum gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The nanoseconds of work that each cached byte saves. Unlike fresh results, cached ones have
    /// to be fetched from memory.
    pub each: f64,
    /// The share of a run's time that all of it saves.
    pub all: f64,
}

impl Limits {
    /// The default thresholds.
    pub const DEFAULT: Limits = Limits { each: 1.0 / 16.0, all: 0.005 };
    /// No thresholds: cache whatever is possible.
    pub const NONE: Limits = Limits { each: 0.0, all: 0.0 };
}

/// The steps that were moved out of the runs.
pub struct Constants {
    /// These steps and the steps of the run that they depend on, in order.
    pub queue: Queue,
    /// The roles of their blocks; cached results are slots.
    pub roles: Vec<Role>,
    /// The blocks that they produce and that runs read.
    pub kept: Vec<u32>,
}

/// Applies the rule if it gains enough.
pub fn take(draft: &mut Draft, limits: Limits) -> Option<Constants> {
    let (steps, kept) = chosen(draft, limits.each);
    let saved: f64 = steps.iter().filter_map(|&n| draft.step(n)).map(|step| work(&step.call)).sum();
    let all: f64 = draft.steps().map(|(_, step)| work(&step.call)).sum();
    if steps.is_empty() || saved < limits.all * all {
        return None;
    }
    let needed = with_makers(draft, &steps);
    let (queue, roles) = draft.take(&needed, &steps, &kept);
    Some(Constants { queue, roles, kept })
}

/// These steps and all steps that they transitively depend on, in order.
fn with_makers(draft: &Draft, steps: &[usize]) -> Vec<usize> {
    let mut needed: FxHashSet<usize> = steps.iter().copied().collect();
    let mut open = steps.to_vec();
    while let Some(step) = open.pop().and_then(|n| draft.step(n)) {
        open.extend(makers(draft, step).filter(|&maker| needed.insert(maker)));
    }
    draft.numbers().filter(|n| needed.contains(n)).collect()
}

/// The steps that write the inputs of a constant step, or parts of them.
fn makers<'a>(draft: &'a Draft, step: &'a Op) -> impl Iterator<Item = usize> + 'a {
    step.inputs.iter().flat_map(|input| draft.writers(input.block).iter())
}

/// Whether each block has the same contents in every run. User code may write anything, so if there
/// is any, no block has.
pub fn blocks(draft: &Draft) -> Vec<bool> {
    if draft.steps().any(|(_, step)| step.call.effects.host) {
        return vec![false; draft.blocks()];
    }
    let mut found: Vec<bool> =
        (0..draft.blocks() as u32).map(|block| draft.is_fixed(block)).collect();
    for (n, step) in draft.steps() {
        if is_constant(draft, n, step, &found) {
            step.outputs.iter().for_each(|output| found[output.block as usize] = true);
        }
    }
    found
}

/// Whether a step has the same results in every run. What only a run can tell to have no result, such
/// as the inverse of a singular matrix, then fails before each run.
fn is_constant(draft: &Draft, n: usize, step: &Op, blocks: &[bool]) -> bool {
    step.call.effects == Effects::PURE
        && step.call.kind.family().checked().is_empty()
        && step.inputs.iter().all(|input| blocks[input.block as usize])
        && step.outputs.iter().all(|output| {
            draft.role(output.block) == Role::Temporary && draft.maker(output) == Some(n)
        })
}

/// The steps to move out of the runs, in order, and which of their results to cache. Each step must
/// be worth the bytes cached for it.
fn chosen(draft: &Draft, worth: f64) -> (Vec<usize>, Vec<u32>) {
    let saved = saved(draft);
    let (mut taken, mut steps, mut kept) = (vec![false; saved.len()], Vec::new(), Vec::new());
    for n in draft.numbers().rev() {
        let (Some(saved), Some(step)) = (saved[n], draft.step(n)) else { continue };
        let is_read = |block: &u32| draft.readers(*block).iter().any(|reader| !taken[reader]);
        let read: Vec<u32> =
            step.outputs.iter().map(|output| output.block).filter(is_read).collect();
        let bytes: usize = read.iter().map(|&block| draft.bytes(block)).sum();
        if saved >= worth * bytes as f64 {
            taken[n] = true;
            steps.push(n);
            kept.extend(read);
        }
    }
    steps.reverse();
    (steps, kept)
}

/// For each constant step, the work that it and its dependencies take.
fn saved(draft: &Draft) -> Vec<Option<f64>> {
    let (blocks, mut saved) = (blocks(draft), vec![None; draft.end()]);
    for (n, step) in draft.steps().filter(|&(n, step)| is_constant(draft, n, step, &blocks)) {
        let before: f64 = makers(draft, step).filter_map(|maker| saved[maker]).sum();
        saved[n] = Some(work(&step.call) + before);
    }
    saved
}

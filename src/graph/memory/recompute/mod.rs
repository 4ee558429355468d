//! Recomputation: blocks are dropped and, before their next use, made again. What an operation
//! makes may be made again if it does nothing else, as long as nothing has written what it reads.

pub mod greedy;
mod levels;
pub(super) mod simulate;
pub(super) mod turns;

use smallvec::SmallVec;

use super::order::Ordered;
use crate::graph::analysis::timeline::Timeline;
use crate::graph::cost::nanoseconds;
use crate::graph::{Csr, Op, Place, Queue, Role};
use crate::ops::View;

/// An operation that is run again, because blocks that it makes are dropped after a use and needed
/// later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The operation.
    pub maker: usize,
    /// The blocks that were dropped and that it recomputes.
    pub blocks: SmallVec<[u32; 2]>,
    /// The operation before which it is run again.
    pub before: usize,
}

/// Operations in some order, and which of their blocks may be recomputed.
pub struct Course {
    queue: Queue,
    roles: Vec<Role>,
    pub(super) line: Timeline,
    /// By temporary block: the steps that use it.
    users: Csr<u32>,
    /// By block: the steps that write it.
    writers: Csr<u32>,
    /// By step: an estimate of its time.
    pub(super) times: Vec<f64>,
    /// The time at which each step begins, and finally that at which the last one ends.
    pub(super) clock: Vec<f64>,
    /// By block: the step that makes it, if it may be rerun for as long as the block is used.
    makers: Vec<Option<usize>>,
    /// By block that has a maker: the last step before which it may be recomputed.
    until: Vec<usize>,
    /// By block: the blocks that are made from it and may be recomputed.
    results: Csr<u32>,
}

impl Course {
    /// What is known of operations before they run; `roles` has one entry per block.
    pub fn new((queue, line): Ordered, roles: &[Role]) -> Course {
        let (ops, blocks) = (queue.ops(), roles.len());
        let written = |(n, op)| written(op).map(move |block| (block, n));
        let writers = Csr::sorted(blocks, || (0u32..).zip(ops).flat_map(written));
        let times: Vec<f64> = ops.iter().map(|op| nanoseconds(&op.call)).collect();
        let mut course = Course {
            users: line.users(),
            writers,
            clock: clock(&times),
            times,
            makers: vec![None; blocks],
            until: vec![0; blocks],
            results: Csr::with_capacity(0, 0),
            line,
            roles: roles.to_vec(),
            queue,
        };
        course.find_makers();
        course
    }

    /// The number of steps.
    pub(super) fn steps(&self) -> usize {
        self.times.len()
    }

    fn blocks(&self) -> usize {
        self.roles.len()
    }

    fn op(&self, n: usize) -> &Op {
        &self.queue.ops()[n]
    }

    fn size(&self, block: u32) -> usize {
        self.line.sizes[block as usize]
    }

    /// The most bytes that any single step needs.
    pub(super) fn least(&self) -> usize {
        let needed = |n: usize| {
            let used: usize = self.line.uses(n).map(|block| self.size(block)).sum();
            (used + self.line.scratch[n]).saturating_sub(self.taken(n, |_| true))
        };
        (0..self.steps()).map(needed).max().unwrap_or(0)
    }

    /// The bytes of those blocks whose memory a step takes over.
    fn taken(&self, n: usize, counts: impl Fn(u32) -> bool) -> usize {
        let from = self.line.takes.row(n).iter().map(|&(from, _)| from);
        from.filter(|&block| counts(block)).map(|block| self.size(block)).sum()
    }

    /// Determines which blocks may be recomputed, and until when.
    fn find_makers(&mut self) {
        let mut results = Vec::new();
        for n in (0..self.steps()).filter(|&n| self.is_repeatable(n)).collect::<Vec<_>>() {
            let lasts = self.op(n).inputs.iter().map(|place| self.lasts(n, place));
            let until = lasts.min().unwrap_or(self.steps());
            for &block in self.line.makes.row(n) {
                if self.users.row(block as usize).last().is_some_and(|&last| last as usize <= until)
                {
                    (self.makers[block as usize], self.until[block as usize]) = (Some(n), until);
                    let reads = self.line.reads.row(n).iter();
                    results.extend(reads.map(|&from| (from as usize, block)));
                }
            }
        }
        self.results = Csr::sorted(self.blocks(), || results.iter().copied());
    }

    /// Whether a step does nothing but make whole blocks. Random numbers are a function of its
    /// inputs, so they do not prevent this.
    fn is_repeatable(&self, n: usize) -> bool {
        let effects = self.op(n).call.effects;
        let is_made = |place: &Place| self.is_made(place, n);
        effects.state.is_empty() && !effects.host && self.op(n).outputs.iter().all(is_made)
    }

    /// Whether step `n` makes a whole block: as its only writer, before any step reads it.
    fn is_made(&self, place: &Place, n: usize) -> bool {
        let block = place.block as usize;
        let is_new = matches!(self.roles[block], Role::Temporary | Role::Slot);
        is_new
            && place.is_whole(self.queue.blocks()[block].bytes())
            && self.writers.row(block).iter().all(|&writer| writer as usize == n)
            && self.line.lives[block].first as usize == n
            && self.op(n).inputs.iter().all(|input| input.block != place.block)
    }

    /// The last step before which an input of step `n` still has the value that `n` has read.
    fn lasts(&self, n: usize, place: &Place) -> usize {
        let block = place.block as usize;
        if self.makers[block].is_some() {
            return self.until[block];
        }
        let written = self.written_after(place.block, n);
        // A block that cannot be recomputed stays in memory as long as it is used.
        self.users.row(block).last().map_or(written, |&last| written.min(last as usize))
    }

    /// The first step after step `n` that writes a block; the number of steps if none does.
    fn written_after(&self, block: u32, n: usize) -> usize {
        let writers = self.writers.row(block as usize);
        let next = writers.partition_point(|&writer| writer as usize <= n);
        writers.get(next).map_or(self.steps(), |&writer| writer as usize)
    }

    /// The queue including the operations in `again`, which must be in order, and the roles of its
    /// blocks.
    pub fn finish(&self, again: &[Again]) -> (Queue, Vec<Role>) {
        let names = Vec::from_iter(0..self.blocks() as u32);
        let mut writer = Writer { course: self, queue: self.queue.without_ops(), names };
        let mut again = again.iter().peekable();
        for (n, op) in self.queue.ops().iter().enumerate() {
            while let Some(again) = again.next_if(|again| again.before <= n) {
                writer.repeat(again);
            }
            writer.push(op);
        }
        let mut roles = self.roles.clone();
        roles.resize(writer.queue.blocks().len(), Role::Temporary);
        (writer.queue, roles)
    }
}

/// The blocks that an operation writes.
fn written(op: &Op) -> impl Iterator<Item = usize> {
    op.outputs.iter().map(|place| place.block as usize)
}

fn clock(times: &[f64]) -> Vec<f64> {
    let ends = times.iter().scan(0.0, |now, time| {
        *now += time;
        Some(*now)
    });
    std::iter::once(0.0).chain(ends).collect()
}

/// Writes a course to a queue.
struct Writer<'a> {
    course: &'a Course,
    queue: Queue,
    /// By block of the course: the block that currently stands for it.
    names: Vec<u32>,
}

impl Writer<'_> {
    fn push(&mut self, op: &Op) {
        let op = self.renamed(op);
        self.queue.push_op(op);
    }

    /// The operation on the blocks that currently stand for its own.
    fn renamed(&self, op: &Op) -> Op {
        let mut op = op.clone();
        let places = op.inputs.iter_mut().chain(&mut op.outputs);
        places.for_each(|place| place.block = self.names[place.block as usize]);
        op
    }

    /// Runs an operation into new blocks, which stand for the dropped ones from then on.
    fn repeat(&mut self, again: &Again) {
        let recorded = self.course.op(again.maker);
        let mut op = self.renamed(recorded);
        for (output, old) in op.outputs.iter_mut().zip(&recorded.outputs) {
            let device = self.course.queue.blocks()[old.block as usize].device();
            *output = self.queue.place(&View::of(device, &old.meta));
            if again.blocks.contains(&old.block) {
                self.names[old.block as usize] = output.block;
            }
        }
        self.queue.push_op(op);
    }
}

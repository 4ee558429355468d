//! Data dependencies from memory hazards. Tracking the last writer and the readers since for each
//! range of bytes yields read-after-write, write-after-read and write-after-write edges.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::csr::{Csr, Edges};
use crate::graph::{Op, Place};

/// A range of bytes of a resource that an operation reads or writes. Resources are the blocks, by
/// number, followed by the host, which keeps operations with user code in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub resource: u32,
    pub is_write: bool,
    pub start: usize,
    pub end: usize,
}

impl Access {
    pub fn read(resource: u32, range: Range<usize>) -> Self {
        Access { resource, is_write: false, start: range.start, end: range.end }
    }

    pub fn write(resource: u32, range: Range<usize>) -> Self {
        Access { is_write: true, ..Access::read(resource, range) }
    }
}

/// The accesses of each node, none of which is empty. `blocks` is the number of blocks.
pub fn accesses(ops: &[Op], blocks: usize) -> Csr<Access> {
    let mut found = Csr::with_capacity(ops.len(), 3 * ops.len());
    for op in ops {
        add(&mut found, op, |place| (place.block, place.byte_range()));
        if op.call.effects.host {
            found.push(Access::write(blocks as u32, 0..1));
        }
        found.end_row();
    }
    found
}

/// Adds an operation's accesses to the current row: reads, then writes, where `locate` finds them.
pub fn add(found: &mut Csr<Access>, op: &Op, locate: impl Fn(&Place) -> (u32, Range<usize>)) {
    let read = |(resource, range)| Access::read(resource, range);
    let reads = op.inputs.iter().map(&locate).map(read);
    let writes =
        op.outputs.iter().map(&locate).map(|(resource, range)| Access::write(resource, range));
    let all = reads.chain(writes).filter(|access| access.start < access.end);
    all.for_each(|access| found.push(access));
}

/// Whether each resource is written.
pub fn written(accesses: &Csr<Access>, resources: usize) -> Vec<bool> {
    let mut written = vec![false; resources];
    let writes = accesses.items().iter().filter(|access| access.is_write);
    writes.for_each(|access| written[access.resource as usize] = true);
    written
}

/// No node, or no cell.
const NONE: u32 = u32::MAX;
/// Marks, in place of its writer, a resource that is accessed in ranges that differ.
const SPLIT: u32 = u32::MAX - 1;

/// The dependencies that the accesses of all nodes imply.
#[derive(Debug)]
pub struct Hazards {
    /// The nodes that must run before each node. An edge that others imply may be left out.
    pub edges: Edges,
    /// Resources with bytes that are read before they are written, in ascending order: through
    /// these, each run of the nodes depends on the previous one.
    pub cycles: Vec<u32>,
}

/// The hazards of nodes in this order; `resources` is one more than the largest resource number.
pub fn hazards(accesses: &Csr<Access>, resources: usize) -> Hazards {
    let mut tracker = Tracker::new(accesses, resources);
    let mut edges = Csr::with_capacity(accesses.rows(), accesses.items().len());
    for (node, row) in accesses.iter().enumerate() {
        row.iter().for_each(|access| tracker.access(node as u32, access));
        tracker.found.sort_unstable();
        tracker.found.dedup();
        tracker.found.drain(..).for_each(|earlier| edges.push(earlier));
        edges.end_row();
    }
    edges.shrink();
    tracker.cycles.sort_unstable();
    tracker.cycles.dedup();
    Hazards { edges, cycles: tracker.cycles }
}

/// The last accesses to a range. Its readers are a list in [`Readers`], shared by ranges that were
/// split from one.
#[derive(Clone, Copy, Debug)]
struct Last {
    writer: u32,
    readers: u32,
}

const UNTOUCHED: Last = Last { writer: NONE, readers: NONE };

struct Tracker {
    whole: Vec<Last>,
    /// The ranges of resources whose writer in `whole` is [`SPLIT`].
    split: FxHashMap<u32, Segments>,
    readers: Readers,
    found: Vec<u32>,
    cycles: Vec<u32>,
}

impl Tracker {
    fn new(accesses: &Csr<Access>, resources: usize) -> Self {
        let mut whole = vec![UNTOUCHED; resources];
        let split = split(accesses, &mut whole);
        let (readers, found, cycles) = (Readers::default(), Vec::new(), Vec::new());
        Tracker { whole, split, readers, found, cycles }
    }

    fn access(&mut self, node: u32, access: &Access) {
        let Tracker { whole, split, readers, found, cycles } = self;
        let mut touch = |last: &mut Last| {
            if !access.is_write {
                read(last, node, readers, found);
            } else if write(last, node, readers, found) {
                cycles.push(access.resource);
            }
        };
        let last = &mut whole[access.resource as usize];
        match last.writer {
            SPLIT => split.entry(access.resource).or_default().touch(access, touch),
            _ => touch(last),
        }
    }
}

/// Marks the resources that are accessed in ranges that differ.
fn split(accesses: &Csr<Access>, whole: &mut [Last]) -> FxHashMap<u32, Segments> {
    let mut ranges = vec![0..0; whole.len()];
    let mut split = FxHashMap::default();
    for access in accesses.items() {
        let (known, range) = (&mut ranges[access.resource as usize], access.start..access.end);
        if known.end == 0 {
            *known = range;
        } else if *known != range {
            whole[access.resource as usize].writer = SPLIT;
            split.insert(access.resource, Segments::default());
        }
    }
    split
}

fn read(last: &mut Last, node: u32, readers: &mut Readers, found: &mut Vec<u32>) {
    if last.writer != NONE {
        found.push(last.writer);
    }
    last.readers = readers.with(last.readers, node);
}

/// Returns whether the range was read before anything had written it.
fn write(last: &mut Last, node: u32, readers: &Readers, found: &mut Vec<u32>) -> bool {
    let is_cycle = last.writer == NONE && last.readers != NONE;
    if last.readers != NONE {
        // The readers come after the last writer, so no edge from it is needed.
        found.extend(readers.list(last.readers).filter(|&reader| reader != node));
    } else if last.writer != NONE && last.writer != node {
        found.push(last.writer);
    }
    *last = Last { writer: node, readers: NONE };
    is_cycle
}

/// Lists of readers that may share their tails: (node, next cell).
#[derive(Default)]
struct Readers(Vec<(u32, u32)>);

impl Readers {
    /// The list with one more node in front.
    fn with(&mut self, list: u32, node: u32) -> u32 {
        if self.list(list).next() == Some(node) {
            return list;
        }
        self.0.push((node, list));
        self.0.len() as u32 - 1
    }

    fn list(&self, list: u32) -> impl Iterator<Item = u32> {
        let cell = |at: u32| self.0.get(at as usize).copied();
        std::iter::successors(cell(list), move |&(_, next)| cell(next)).map(|(node, _)| node)
    }
}

/// Disjoint ranges by their start: (end, last accesses).
#[derive(Default)]
struct Segments(BTreeMap<usize, (usize, Last)>);

impl Segments {
    /// Calls `touch` for each part of the range. A written range becomes one part.
    fn touch(&mut self, access: &Access, mut touch: impl FnMut(&mut Last)) {
        let (start, end) = (access.start, access.end);
        self.cut(start);
        self.cut(end);
        self.fill(start, end);
        self.0.range_mut(start..end).for_each(|(_, (_, last))| touch(last));
        if access.is_write {
            self.join(start, end);
        }
    }

    /// Splits the range around `at`, if there is one.
    fn cut(&mut self, at: usize) {
        let Some((_, (end, last))) = self.0.range_mut(..at).next_back() else { return };
        if *end > at {
            let rest = (std::mem::replace(end, at), *last);
            self.0.insert(at, rest);
        }
    }

    /// Adds ranges for bytes that have not been touched yet.
    fn fill(&mut self, start: usize, end: usize) {
        let mut at = start;
        let mut gaps: smallvec::SmallVec<[(usize, usize); 4]> = smallvec::SmallVec::new();
        for (&next, &(after, _)) in self.0.range(start..end) {
            if next > at {
                gaps.push((at, next));
            }
            at = after;
        }
        if at < end {
            gaps.push((at, end));
        }
        self.0.extend(gaps.into_iter().map(|(start, end)| (start, (end, UNTOUCHED))));
    }

    /// Joins the ranges that a write has just made equal.
    fn join(&mut self, start: usize, end: usize) {
        while let Some((&next, _)) = self.0.range(start + 1..end).next() {
            self.0.remove(&next);
        }
        if let Some((first, _)) = self.0.get_mut(&start) {
            *first = end;
        }
    }
}

#[cfg(test)]
mod tests;

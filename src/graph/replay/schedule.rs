//! Which nodes several threads may run concurrently: segments of consecutive narrow nodes (those
//! whose kernels use one thread, or gain little from more), and the dependencies between the nodes
//! of a segment.

mod parts;

use std::ops::Range;
use std::sync::Arc;

use crate::graph::cost::nanoseconds;
use crate::graph::hazard::{self, Access};
use crate::graph::memory::layout::{Layout, OUTSIDE};
use crate::graph::{Csr, Edges, Op, Place};
use crate::kernels::{Prepared, Width};

/// How several threads may run a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// The number of threads.
    pub workers: usize,
    /// The minimum estimated gain in nanoseconds over one thread for which a segment is shared; 0
    /// shares every segment.
    pub least_gain: u64,
    /// The most bytes that the arena may take to let nodes run concurrently instead of taking turns
    /// in its memory. If one thread already needs more, that is what it takes.
    pub most_bytes: usize,
}

impl Parallel {
    /// Shares segments whose gain is several times the cost of a parallel region.
    pub fn new(workers: usize) -> Self {
        Parallel { workers, least_gain: 5_000, most_bytes: usize::MAX }
    }
}

/// See the module's documentation. Nodes outside segments run alone; they and the segments run in
/// recorded order.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The ranges of nodes that several threads share.
    pub segments: Vec<Range<u32>>,
    /// By segment: how many nanoseconds it gains, by the estimated times; as many as there can be
    /// where every segment is shared.
    pub gains: Vec<u64>,
    /// For each node, the nodes of its segment that must run before it: they touch the same memory,
    /// either the same block or blocks that take turns in the arena.
    pub edges: Edges,
    /// By node: the worker that it is assigned to; an idle worker may take it over.
    pub parts: Vec<u32>,
    /// By node: the estimated time on one thread, in nanoseconds.
    pub times: Vec<u64>,
    /// The number of threads.
    pub workers: usize,
}

/// The segments that are worth sharing. `edges` are the data dependencies, independent of where
/// blocks are placed.
pub(in crate::graph) fn segments(
    nodes: &[Arc<Prepared>],
    edges: &Edges,
    parallel: Parallel,
) -> Vec<Range<u32>> {
    let is_narrow = |node: &Prepared| {
        !node.effects.host && (node.width == Width::ONE || nanoseconds(node) < BRIEF)
    };
    let mut segments: Vec<Range<u32>> = Vec::new();
    for (n, _) in (0u32..).zip(nodes).filter(|(_, node)| is_narrow(node)) {
        match segments.last_mut() {
            Some(last) if last.end == n => last.end += 1,
            _ => segments.push(n..n + 1),
        }
    }
    let mut gained = 0.0;
    segments.retain(|segment| {
        let gain = gain(nodes, edges, segment, parallel);
        let is_worth = segment.len() > 1 && gain >= parallel.least_gain as f64;
        gained += if is_worth { gain } else { 0.0 };
        is_worth
    });
    let whole: f64 = nodes.iter().map(|node| alone(node)).sum();
    if parallel.least_gain > 0 && gained < LEAST_SHARE * whole {
        segments.clear();
    }
    segments
}

/// The minimum gain as a fraction of a graph's estimated time: below it, the cost of moving data
/// between the threads' caches may outweigh the gain.
const LEAST_SHARE: f64 = 0.01;

/// Nodes that take fewer nanoseconds on one thread are narrow, however many they may use. In a
/// segment they run on one.
const BRIEF: f64 = 30_000.0;

/// How many nanoseconds a node takes that runs alone, on as many threads as its kernel uses.
fn alone(node: &Prepared) -> f64 {
    nanoseconds(node) / node.width.0 as f64
}

/// How many nanoseconds earlier than one after the other several threads finish a segment's nodes
/// at best.
fn gain(nodes: &[Arc<Prepared>], edges: &Edges, segment: &Range<u32>, parallel: Parallel) -> f64 {
    let (mut sum, mut longest, mut before) = (0.0, 0.0f64, 0.0);
    // When each node would be done with an unlimited number of threads.
    let mut done: Vec<f64> = Vec::with_capacity(segment.len());
    for n in segment.clone() {
        let earlier = edges.row(n as usize).iter().filter(|&&e| e >= segment.start);
        let begin = earlier.map(|&e| done[(e - segment.start) as usize]).fold(0.0, f64::max);
        let time = nanoseconds(&nodes[n as usize]);
        done.push(begin + time);
        longest = longest.max(begin + time);
        sum += time;
        before += alone(&nodes[n as usize]);
    }
    before - longest.max(sum / parallel.workers as f64)
}

impl Schedule {
    /// The dependencies between the nodes of the segments for a given layout.
    pub(in crate::graph) fn new(
        ops: &[Op],
        kernels: &[Arc<Prepared>],
        layout: &Layout,
        segments: Vec<Range<u32>>,
        Parallel { workers, least_gain, .. }: Parallel,
    ) -> Schedule {
        let blocks = layout.offsets.len();
        let mut accesses = Csr::with_capacity(ops.len(), 3 * ops.len());
        for (n, (op, kernel)) in (0u32..).zip(ops.iter().zip(kernels)) {
            if segment_of(&segments, n).is_some() {
                add(&mut accesses, n, (op, kernel), layout);
            }
            accesses.end_row();
        }
        let all = hazard::hazards(&accesses, blocks + 1).edges;
        let mut edges = Csr::with_capacity(ops.len(), all.items().len());
        for (n, row) in (0u32..).zip(all.iter()) {
            let start = segment_of(&segments, n).map_or(n, |segment| segment.start);
            row.iter().filter(|&&earlier| earlier >= start).for_each(|&e| edges.push(e));
            edges.end_row();
        }
        edges.shrink();
        let times: Vec<u64> = ops.iter().map(|op| nanoseconds(&op.call) as u64).collect();
        let (parts, gains) = parts::parts(&edges, &segments, workers, &times);
        let gains = if least_gain > 0 { gains } else { vec![u64::MAX; gains.len()] };
        Schedule { segments, gains, edges, parts, times, workers }
    }
}

/// The segment that a node is in.
fn segment_of(segments: &[Range<u32>], node: u32) -> Option<&Range<u32>> {
    let segment = segments.get(segments.partition_point(|segment| segment.end <= node))?;
    segment.contains(&node).then_some(segment)
}

/// Adds a node's accesses: to blocks outside the arena by number, and to the arena as one resource
/// after them.
fn add(accesses: &mut Csr<Access>, n: u32, (op, kernel): (&Op, &Prepared), layout: &Layout) {
    let arena = layout.offsets.len() as u32;
    let locate = |place: &Place| {
        let (range, offset) = (place.byte_range(), layout.offsets[place.block as usize]);
        match offset {
            OUTSIDE => (place.block, range),
            _ => (arena, range.start + offset..range.end + offset),
        }
    };
    hazard::add(accesses, op, locate);
    if let Some(offset) = layout.scratch_offset(n) {
        accesses.push(Access::write(arena, offset..offset + kernel.kernel.scratch()));
    }
}

#[cfg(test)]
mod tests;

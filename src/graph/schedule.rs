//! Which nodes several threads may run at the same time: segments of narrow nodes (those whose
//! kernels use one thread) in a row, and what orders the nodes of a segment.

mod parts;

use std::ops::Range;

use super::access::{self, Access};
use super::cost::nanoseconds;
use super::csr::{Csr, Edges};
use super::hazard;
use super::layout::{Layout, OUTSIDE};
use super::liveness::{self, Lifetime};
use super::queue::{Node, Place};
use crate::device::ALIGNMENT;
use crate::ops::Width;

/// That a graph may be run by several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// How many.
    pub workers: usize,
    /// A segment that they are estimated to finish by less than so many nanoseconds earlier than
    /// one thread would is run by one; 0: whatever can be shared is.
    pub least_gain: u64,
    /// What the arena may take at most so that nodes need not take turns in it and can run at the
    /// same time. Where it takes more for one thread, it takes that.
    pub most_bytes: usize,
}

impl Parallel {
    /// As many threads where they gain what a region of the team costs several times over.
    pub fn new(workers: usize) -> Self {
        Parallel { workers, least_gain: 5_000, most_bytes: usize::MAX }
    }
}

/// See the module's documentation. Nodes outside of segments run alone, in recorded order, and
/// segments run between them as they were recorded.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Nodes that several threads work on, segment by segment.
    pub segments: Vec<Range<u32>>,
    /// The nodes of its own segment that must run before each node: they touch the same memory,
    /// be it as one block or where blocks take turns in the arena.
    pub edges: Edges,
    /// By node: which worker has it to begin with; where it runs follows from who is idle.
    pub parts: Vec<u32>,
    /// By node: how long one thread takes for it, an estimate in nanoseconds.
    pub times: Vec<u64>,
    /// By how many threads.
    pub workers: usize,
}

/// The segments that are worth it. `edges` are the nodes that must run before each node wherever
/// their blocks lie.
pub(super) fn segments(nodes: &[Node], edges: &Edges, parallel: Parallel) -> Vec<Range<u32>> {
    let is_narrow = |node: &Node| node.op.width == Width::ONE && !node.op.effects.host;
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
    let whole: f64 = nodes.iter().map(|n| nanoseconds(&n.op) / n.op.width.0 as f64).sum();
    if parallel.least_gain > 0 && gained < LEAST_SHARE * whole {
        segments.clear();
    }
    segments
}

/// The part of a graph's estimated time that is to be gained: below it, what the threads' caches
/// lose to each other may be more.
const LEAST_SHARE: f64 = 0.01;

/// By how many nanoseconds the threads finish a segment earlier than one would, if all goes well.
fn gain(nodes: &[Node], edges: &Edges, segment: &Range<u32>, parallel: Parallel) -> f64 {
    let (mut sum, mut longest) = (0.0, 0.0f64);
    // When each node would be done if there were any number of threads.
    let mut done: Vec<f64> = Vec::with_capacity(segment.len());
    for n in segment.clone() {
        let earlier = edges.row(n as usize).iter().filter(|&&e| e >= segment.start);
        let begin = earlier.map(|&e| done[(e - segment.start) as usize]).fold(0.0, f64::max);
        let time = nanoseconds(&nodes[n as usize].op);
        done.push(begin + time);
        longest = longest.max(begin + time);
        sum += time;
    }
    sum - longest.max(sum / parallel.workers as f64)
}

/// How much larger than without it the most bytes that live at once may become by rounding: this
/// part of them, or so many bytes.
const MOST_GROWTH: (f64, usize) = (0.25, 16 << 20);

/// Lifetimes of pieces of memory that are made longer so that those which are needed in one segment
/// at different times are needed all through it: if they took turns, so would the nodes that use
/// them. Where that would take too much memory, segments are cut into windows for this; what still
/// takes turns is kept in order by the schedule's edges. Longest first; the last are as they were.
pub(super) fn roundings(
    lifetimes: &[Lifetime],
    sizes: &[usize],
    segments: &[Range<u32>],
    most_bytes: usize,
) -> impl Iterator<Item = Vec<Lifetime>> {
    let bound = |lifetimes: &[Lifetime]| liveness::bound(lifetimes, sizes, ALIGNMENT);
    let longest = segments.iter().map(|segment| segment.len() as u32).max().unwrap_or(0);
    let least = if longest > 1 { bound(lifetimes) } else { 0 };
    let most = least + MOST_GROWTH.1.max((MOST_GROWTH.0 * least as f64) as usize);
    let windows = std::iter::successors(Some(longest), |window| Some(window.div_ceil(2)));
    let windows = windows.take_while(|&window| window > 1).chain([1]);
    let round =
        move |window| lifetimes.iter().map(|life| rounded(life, segments, window)).collect();
    windows.map(move |window| (window, round(window))).filter_map(
        move |(window, rounded): (u32, Vec<_>)| {
            (window == 1 || bound(&rounded) <= most.min(most_bytes)).then_some(rounded)
        },
    )
}

/// The lifetime from the beginning of a window to the end of one.
fn rounded(life: &Lifetime, segments: &[Range<u32>], window: u32) -> Lifetime {
    if life.is_never() {
        return *life;
    }
    let around = |node: u32| {
        let segment = segments.get(segments.partition_point(|segment| segment.end <= node))?;
        let start = segment.start + (node.checked_sub(segment.start)? / window) * window;
        Some((start, segment.end.min(start + window) - 1))
    };
    Lifetime {
        first: around(life.first).map_or(life.first, |(first, _)| first),
        last: around(life.last).map_or(life.last, |(_, last)| last),
    }
}

impl Schedule {
    /// What orders the nodes of the segments where blocks lie like this.
    pub(super) fn new(
        nodes: &[Node],
        places: &[Place],
        layout: &Layout,
        segments: Vec<Range<u32>>,
        workers: usize,
    ) -> Schedule {
        let blocks = layout.offsets.len();
        let mut accesses = Csr::with_capacity(nodes.len(), places.len());
        for (n, node) in (0u32..).zip(nodes) {
            if segment_of(&segments, n).is_some() {
                add(&mut accesses, n, node, places, layout);
            }
            accesses.end_row();
        }
        let all = hazard::hazards(&accesses, blocks + 1).edges;
        let mut edges = Csr::with_capacity(nodes.len(), all.items().len());
        for (n, row) in (0u32..).zip(all.iter()) {
            let start = segment_of(&segments, n).map_or(n, |segment| segment.start);
            row.iter().filter(|&&earlier| earlier >= start).for_each(|&e| edges.push(e));
            edges.end_row();
        }
        edges.shrink();
        let times: Vec<u64> = nodes.iter().map(|node| nanoseconds(&node.op) as u64).collect();
        let parts = parts::parts(&edges, &segments, workers, &times);
        Schedule { segments, edges, parts, times, workers }
    }
}

/// The segment that a node is in.
fn segment_of(segments: &[Range<u32>], node: u32) -> Option<&Range<u32>> {
    let segment = segments.get(segments.partition_point(|segment| segment.end <= node))?;
    segment.contains(&node).then_some(segment)
}

/// Adds what a node touches: blocks outside of the arena by number, and the arena behind them.
fn add(accesses: &mut Csr<Access>, n: u32, node: &Node, places: &[Place], layout: &Layout) {
    let arena = layout.offsets.len() as u32;
    let locate = |place: &Place| {
        let (range, offset) = (place.byte_range(), layout.offsets[place.block as usize]);
        match offset {
            OUTSIDE => (place.block, range),
            _ => (arena, range.start + offset..range.end + offset),
        }
    };
    for place in node.inputs(places) {
        let (resource, range) = locate(place);
        access::add(accesses, Access::read(resource, range));
    }
    for place in node.outputs(places) {
        let (resource, range) = locate(place);
        access::add(accesses, Access::write(resource, range));
    }
    if let Some(offset) = layout.scratch_offset(n) {
        let end = offset + node.op.kernel.scratch();
        access::add(accesses, Access::write(arena, offset..end));
    }
}

#[cfg(test)]
mod tests;

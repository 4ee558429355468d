//! The placement of temporary blocks and scratch in the arena.

use std::ops::Range;

use crate::device::ALIGNMENT;
use crate::graph::Role;
use crate::graph::analysis::timeline::Timeline;
use crate::packing::{self, Lifetime};

/// The offset of blocks outside the arena.
pub(in crate::graph) const OUTSIDE: usize = usize::MAX;

/// Offsets in the arena.
#[derive(Clone, Debug)]
pub(in crate::graph) struct Layout {
    /// By block.
    pub(in crate::graph) offsets: Vec<usize>,
    /// (node, offset), in ascending order.
    pub(in crate::graph) scratch: Vec<(u32, usize)>,
    /// Bytes of the arena.
    pub(in crate::graph) height: usize,
    /// The most bytes that are live at once.
    pub(in crate::graph) bound: usize,
}

impl Layout {
    /// Plans the arena. Nodes of a segment may run concurrently as far as the arena then takes at
    /// most `most_bytes`.
    pub(in crate::graph) fn new(
        line: &Timeline,
        roles: &[Role],
        segments: &[Range<u32>],
        most_bytes: usize,
    ) -> Layout {
        let owners = line.owners();
        let (mut lifetimes, mut sizes) = (line.needed(&owners), line.sizes.clone());
        let scratch = || (0u32..).zip(&line.scratch).filter(|(_, bytes)| **bytes > 0);
        lifetimes.extend(scratch().map(|(n, _)| Lifetime { first: n, last: n }));
        sizes.extend(scratch().map(|(_, bytes)| bytes));
        let roundings = roundings(&lifetimes, &sizes, segments, most_bytes);
        let mut plans = roundings.map(|lifetimes| packing::plan(&lifetimes, &sizes, ALIGNMENT));
        let mut plan = plans.next().expect("there is one at least");
        while plan.height > most_bytes {
            let Some(lower) = plans.next() else { break };
            plan = lower;
        }
        drop(plans);
        let is_inside =
            |block: usize| roles[block] == Role::Temporary && !line.lives[block].is_never();
        let offset = |(block, &owner): (usize, &u32)| {
            if is_inside(block) { plan.offsets[owner as usize] } else { OUTSIDE }
        };
        let offsets = owners.iter().enumerate().map(offset).collect();
        let places = plan.offsets[owners.len()..].iter();
        let scratch = scratch().zip(places).map(|((n, _), &offset)| (n, offset)).collect();
        Layout { offsets, scratch, height: plan.height, bound: plan.bound }
    }

    /// The offset of a node's scratch, if it needs any.
    pub(in crate::graph) fn scratch_offset(&self, node: u32) -> Option<usize> {
        let found = self.scratch.binary_search_by_key(&node, |&(n, _)| n).ok()?;
        Some(self.scratch[found].1)
    }
}

/// How much rounding may increase the peak of live bytes: by this fraction of it or by this many
/// bytes, whichever is more.
pub(in crate::graph) const MOST_GROWTH: (f64, usize) = (0.25, 16 << 20);

/// Lifetimes extended to whole segments, so that pieces of memory needed at different times within
/// one segment do not share bytes: otherwise the nodes that use them would have to take turns.
/// Where that would take too much memory, segments are cut into ever smaller windows; pieces that
/// still share bytes are ordered by the schedule's edges. The longest windows come first; the last
/// item has the original lifetimes.
pub(in crate::graph) fn roundings(
    lifetimes: &[Lifetime],
    sizes: &[usize],
    segments: &[Range<u32>],
    most_bytes: usize,
) -> impl Iterator<Item = Vec<Lifetime>> {
    let bound = |lifetimes: &[Lifetime]| packing::bound(lifetimes, sizes, ALIGNMENT);
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

/// Extends a lifetime to the boundaries of windows.
pub(in crate::graph) fn rounded(life: &Lifetime, segments: &[Range<u32>], window: u32) -> Lifetime {
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

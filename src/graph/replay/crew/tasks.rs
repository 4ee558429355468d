//! Tasks as workers see them: reordered so that the tasks of a part are contiguous.

use std::ops::Range;

use crate::graph::{Csr, Edges, Schedule};

/// No task.
pub(super) const NONE: u32 = u32::MAX;

/// How many nanoseconds of estimated work a worker may do before it reports it.
const UNTOLD: u64 = 1_000;

/// Marks a task that must be reported as done before the next one of its part is run.
const DUE: u32 = 1 << 31;

/// Ranges of counters with at most this many unused ones in between are reset together.
const FEW: u32 = 64;

/// The tables derived from the tasks and their parts. Tasks are identified by their seats, which go
/// segment by segment and part by part, and within a part in recorded order.
pub(super) struct Tasks {
    /// By seat: the task.
    order: Box<[u32]>,
    /// By seat: the last task of its chain, and whether the task at the seat is [`DUE`].
    turns: Box<[u32]>,
    /// By seat; one more at the end.
    links: Box<[Link]>,
    /// The successors in a task's own part.
    near: Vec<u32>,
    /// The groups of successors in other parts, part by part; one more at the end.
    groups: Box<[Group]>,
    far: Vec<u32>,
    /// By seat: the number of predecessors.
    pub(super) predecessors: Vec<u32>,
    /// By segment: the seats whose counters are used, those at which chains begin.
    counted: Vec<Vec<Range<u32>>>,
    /// By segment and part: the first seat; one more per segment, where its last part ends.
    starts: Vec<u32>,
    parts: usize,
}

/// Where a task's successors are listed; each list ends where the next task's begins.
struct Link {
    part: u32,
    near: u32,
    groups: u32,
    /// How many tasks before this one have no successors.
    sinks: u32,
}

/// The successors of one task in one other part; they end where the next group begins.
struct Group {
    part: u32,
    far: u32,
}

impl Tasks {
    pub(super) fn new(schedule: &Schedule) -> Tasks {
        let Schedule { segments, edges, parts: part_of, times, workers, .. } = schedule;
        let order = order(segments, part_of);
        let successors = successors(edges, &order);
        let mut tasks = Tasks {
            order: Box::default(),
            turns: Box::default(),
            links: Box::default(),
            near: Vec::new(),
            groups: Box::default(),
            far: Vec::new(),
            predecessors: order.iter().map(|&t| edges.row(t as usize).len() as u32).collect(),
            counted: Vec::new(),
            starts: Vec::with_capacity(segments.len() * (workers + 1)),
            parts: *workers,
        };
        let part = |seat: u32| part_of[order[seat as usize] as usize];
        tasks.turns = tasks.turns(&successors, &order, times, part);
        tasks.link(&successors, part);
        tasks.counted = segments.iter().map(|segment| tasks.heads(segment)).collect();
        for (segment, part) in
            segments.iter().flat_map(|s| (0..=*workers as u32).map(move |p| (s, p)))
        {
            let links = &tasks.links[segment.start as usize..segment.end as usize];
            let earlier = links.partition_point(|link| link.part < part);
            tasks.starts.push(segment.start + earlier as u32);
        }
        tasks.order = order.into();
        tasks
    }

    /// The seats of a segment at which chains begin, as ranges that include short gaps.
    fn heads(&self, segment: &Range<u32>) -> Vec<Range<u32>> {
        let mut found: Vec<Range<u32>> = Vec::new();
        let inside = |seat: u32| Some(seat).filter(|seat| segment.contains(seat));
        let next = |seat: &u32| inside(self.last(*seat) + 1);
        for head in std::iter::successors(inside(segment.start), next) {
            match found.last_mut() {
                Some(range) if head <= range.end + FEW => range.end = head + 1,
                _ => found.push(head..head + 1),
            }
        }
        found
    }

    fn link(&mut self, successors: &Csr<u32>, part: impl Fn(u32) -> u32) {
        let (mut links, mut groups) = (Vec::with_capacity(successors.rows() + 1), Vec::new());
        let mut sinks = 0;
        for (seat, row) in (0u32..).zip(successors.iter()) {
            let (near, first) = (self.near.len() as u32, groups.len() as u32);
            links.push(Link { part: part(seat), near, groups: first, sinks });
            sinks += row.is_empty() as u32;
            for group in row.chunk_by(|&a, &b| part(a) == part(b)) {
                if part(group[0]) == part(seat) {
                    let is_inside = self.last(seat) > seat;
                    self.near.extend(group.iter().filter(|_| !is_inside));
                } else {
                    groups.push(Group { part: part(group[0]), far: self.far.len() as u32 });
                    self.far.extend(group);
                }
            }
        }
        let (near, end, far) = (self.near.len() as u32, groups.len() as u32, self.far.len() as u32);
        links.push(Link { part: NONE, near, groups: end, sinks });
        groups.push(Group { part: NONE, far });
        (self.links, self.groups) = (links.into(), groups.into());
    }

    fn turns(
        &self,
        successors: &Csr<u32>,
        order: &[u32],
        times: &[u64],
        part: impl Fn(u32) -> u32,
    ) -> Box<[u32]> {
        let time = |seat: usize| order.get(seat).map_or(0, |&task| times[task as usize]);
        let mut turns = Vec::with_capacity(order.len());
        let mut untold = 0;
        for (seat, row) in (0u32..).zip(successors.iter()) {
            untold += time(seat as usize);
            let is_next = row.first() == Some(&(seat + 1)) && part(seat) == part(seat + 1);
            let is_due = is_next || untold + time(seat as usize + 1) > UNTOLD;
            untold = if is_due { 0 } else { untold };
            let leads_on = is_next && row.len() == 1 && self.predecessors[seat as usize + 1] == 1;
            turns.push((seat + leads_on as u32, if is_due { DUE } else { 0 }));
        }
        for seat in (0..turns.len()).rev() {
            turns[seat].0 = turns[turns[seat].0 as usize].0;
        }
        turns.into_iter().map(|(last, due)| last | due).collect()
    }
}

impl Tasks {
    /// The task at a seat.
    #[inline(always)]
    pub(super) fn task(&self, seat: u32) -> u32 {
        self.order[seat as usize]
    }

    /// The tasks at seats.
    #[inline(always)]
    pub(super) fn tasks(&self, seats: Range<u32>) -> impl Iterator<Item = u32> {
        self.order[seats.start as usize..seats.end as usize].iter().copied()
    }

    /// The last task of a seat's chain: each task of a chain is the only successor of the one
    /// before, comes next in its part and waits for nothing else.
    ///
    /// A chain is run by one worker, which ignores the edges within it.
    #[inline(always)]
    pub(super) fn last(&self, seat: u32) -> u32 {
        self.turns[seat as usize] & !DUE
    }

    /// Whether a task must be reported as done before the next one of its part is run.
    #[inline(always)]
    pub(super) fn is_due(&self, seat: u32) -> bool {
        self.turns[seat as usize] & DUE != 0
    }

    /// The seats of a segment whose counters are used.
    pub(super) fn counted(&self, segment: usize) -> &[Range<u32>] {
        &self.counted[segment]
    }

    /// The part of a task.
    pub(super) fn part(&self, seat: u32) -> usize {
        self.links[seat as usize].part as usize
    }

    /// The successors of tasks of one part within that part.
    #[inline(always)]
    pub(super) fn near(&self, seats: &Range<u32>) -> &[u32] {
        let [start, end] = [seats.start, seats.end].map(|s| self.links[s as usize].near as usize);
        &self.near[start..end]
    }

    /// The groups of successors that tasks have in other parts.
    #[inline(always)]
    pub(super) fn groups(&self, seats: &Range<u32>) -> Range<u32> {
        self.links[seats.start as usize].groups..self.links[seats.end as usize].groups
    }

    /// The part of a group.
    #[inline(always)]
    pub(super) fn part_of(&self, group: u32) -> usize {
        self.groups[group as usize].part as usize
    }

    /// The tasks of a group.
    #[inline(always)]
    pub(super) fn group(&self, group: u32) -> &[u32] {
        let [start, end] = [0, 1].map(|k| self.groups[group as usize + k].far as usize);
        &self.far[start..end]
    }

    /// The number of sinks, tasks without successors: once all of them have run, all tasks have.
    #[inline(always)]
    pub(super) fn sinks(&self, seats: &Range<u32>) -> usize {
        (self.links[seats.end as usize].sinks - self.links[seats.start as usize].sinks) as usize
    }

    /// The seats of a part of a segment.
    pub(super) fn seats(&self, segment: usize, part: usize) -> Range<u32> {
        let first = segment * (self.parts + 1) + part;
        self.starts[first]..self.starts[first + 1]
    }

    /// The most mail entries that a part can get from one worker in a segment.
    pub(super) fn most_mail(&self, segments: &[Range<u32>], part: usize) -> usize {
        let near = |segment: &Range<u32>| {
            let has_near = |&seat: &u32| !self.near(&(seat..seat + 1)).is_empty();
            segment.clone().filter(|&seat| self.part(seat) == part).filter(has_near).count()
        };
        let far = |segment| self.groups(segment).filter(|&g| self.part_of(g) == part).count();
        segments.iter().map(|segment| near(segment) + far(segment)).max().unwrap_or(0)
    }
}

/// The tasks in the order of their seats.
fn order(segments: &[Range<u32>], part_of: &[u32]) -> Vec<u32> {
    let mut order = Vec::from_iter(0..part_of.len() as u32);
    for segment in segments {
        let tasks = &mut order[segment.start as usize..segment.end as usize];
        tasks.sort_by_key(|&task| part_of[task as usize]);
    }
    order
}

/// By seat: the successors of each task, in the order of their seats.
fn successors(edges: &Edges, order: &[u32]) -> Csr<u32> {
    let mut seats = vec![NONE; order.len()];
    (0u32..).zip(order).for_each(|(seat, &task)| seats[task as usize] = seat);
    let seats = &seats;
    Csr::sorted(order.len(), || {
        (0u32..).zip(order).flat_map(move |(seat, &task)| {
            edges.row(task as usize).iter().map(move |&e| (seats[e as usize] as usize, seat))
        })
    })
}

#[cfg(all(test, not(loom)))]
mod tests;

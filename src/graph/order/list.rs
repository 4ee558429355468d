//! List scheduling: of the nodes that may run next, the one with the least key goes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::work::Work;

/// A node that may run next.
struct Ready {
    node: u32,
    /// By how many bytes it changes what is in use.
    change: isize,
    /// How many nodes had run when it could.
    since: usize,
    /// Whether it uses nothing that is in use.
    is_source: bool,
}

/// A node's rank among those that may run next: a class, and a number within it.
type Key = (u8, isize);

/// What matters to nobody comes last: a generator that moves late lets numbers be drawn again.
const LAST: u8 = 2;

/// The recorded order, but that nodes which free at least as much as they allocate do not wait.
pub(super) fn early_frees(work: &Work) -> Vec<u32> {
    schedule(work, |ready| match ready.change {
        ..=0 => (0, ready.change),
        _ => (1, ready.node as isize),
    })
}

/// What is made is used as soon as that can be, so that it is needed no longer; what uses nothing
/// waits until there is nothing else to do.
pub(super) fn eager(work: &Work) -> Vec<u32> {
    schedule(work, |ready| match ready.is_source {
        true => (1, ready.node as isize),
        false => (0, ready.since as isize),
    })
}

/// What frees most goes first; if nothing frees anything, what allocates least.
pub(super) fn least_peak(work: &Work) -> Vec<u32> {
    schedule(work, |ready| (0, ready.change))
}

/// All nodes in the order of their keys.
fn schedule(work: &Work, key: impl Fn(&Ready) -> Key) -> Vec<u32> {
    let mut list = List::new(work, key);
    let mut order = Vec::with_capacity(work.nodes());
    while let Some(node) = list.next() {
        order.push(node);
        list.run(node, order.len());
    }
    order
}

struct List<'a, F> {
    work: &'a Work,
    key: F,
    /// How many nodes each node waits for.
    waits: Vec<usize>,
    /// How many nodes have yet to use each block.
    users: Vec<usize>,
    is_done: Vec<bool>,
    /// How many nodes had run when each node could.
    since: Vec<usize>,
    /// Nodes that may run, equal ones in recorded order; a node whose key has changed stands here
    /// under its old one, too.
    ready: BinaryHeap<Reverse<(Key, u32)>>,
}

impl<'a, F: Fn(&Ready) -> Key> List<'a, F> {
    fn new(work: &'a Work, key: F) -> Self {
        let lengths = |rows: &crate::graph::Csr<u32>| rows.iter().map(<[u32]>::len).collect();
        let (is_done, since) = (vec![false; work.nodes()], vec![0; work.nodes()]);
        let (waits, users): (Vec<usize>, _) = (lengths(&work.before), lengths(&work.users));
        let mut list = List { work, key, waits, users, is_done, since, ready: BinaryHeap::new() };
        (0..work.nodes() as u32).for_each(|node| list.offer(node));
        list
    }

    /// Enters a node under its key, if it may run.
    fn offer(&mut self, node: u32) {
        if self.waits[node as usize] == 0 && !self.is_done[node as usize] {
            self.ready.push(Reverse((self.rank(node), node)));
        }
    }

    fn rank(&self, node: u32) -> Key {
        if self.work.is_indifferent(node) {
            return (LAST, node as isize);
        }
        let blocks = self.work.blocks.row(node as usize);
        (self.key)(&Ready {
            node,
            change: blocks.iter().map(|&block| self.change(block)).sum(),
            since: self.since[node as usize],
            is_source: blocks.iter().all(|&block| self.is_new(block)),
        })
    }

    /// By how many bytes what is in use would change with one more use of a block.
    fn change(&self, block: u32) -> isize {
        let is_last = self.users[block as usize] == 1;
        let size = self.work.sizes[block as usize] as isize;
        size * (isize::from(self.is_new(block)) - isize::from(is_last))
    }

    /// Whether nothing has used a block yet.
    fn is_new(&self, block: u32) -> bool {
        self.users[block as usize] == self.work.users.row(block as usize).len()
    }

    fn next(&mut self) -> Option<u32> {
        while let Some(Reverse((key, node))) = self.ready.pop() {
            if !self.is_done[node as usize] && key == self.rank(node) {
                return Some(node);
            }
        }
        None
    }

    /// Notes that a node runs, with which so many have run.
    fn run(&mut self, node: u32, done: usize) {
        let work = self.work;
        self.is_done[node as usize] = true;
        for &later in work.after.row(node as usize) {
            self.waits[later as usize] -= 1;
            self.since[later as usize] = done;
            self.offer(later);
        }
        for &block in work.blocks.row(node as usize) {
            let (users, left) = (work.users.row(block as usize), &mut self.users[block as usize]);
            *left -= 1;
            // What its other users change has changed: it is there now, or has one user left.
            if *left == 1 || *left + 1 == users.len() {
                users.iter().for_each(|&user| self.offer(user));
            }
        }
    }
}

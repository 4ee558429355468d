//! List scheduling: of the nodes that are ready, the one with the least key goes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Work;

/// A ready node: all its predecessors have run.
struct Ready {
    node: u32,
    /// By how many bytes it changes the memory in use.
    change: isize,
    /// How many nodes had run when it became ready.
    since: usize,
    /// Whether it uses nothing that is in use.
    is_source: bool,
}

/// A node's rank among the ready ones: a class, and a number within it.
type Key = (u8, isize);

/// The class of indifferent nodes. They come last: a generator whose state changes late allows its
/// numbers to be recomputed.
const LAST: u8 = 2;

/// The recorded order, except that nodes that free at least as much as they allocate run early.
pub(super) fn early_frees(work: &Work) -> Vec<u32> {
    schedule(work, |ready| match ready.change {
        ..=0 => (0, ready.change),
        _ => (1, ready.node as isize),
    })
}

/// Results are used as soon as possible, so that they can be freed; nodes that use nothing in use
/// wait until nothing else is ready.
pub(super) fn eager(work: &Work) -> Vec<u32> {
    schedule(work, |ready| match ready.is_source {
        true => (1, ready.node as isize),
        false => (0, ready.since as isize),
    })
}

/// The node that frees most goes first; if none frees anything, the one that allocates least.
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
    work: &'a Work<'a>,
    key: F,
    /// How many nodes each node waits for.
    waits: Vec<usize>,
    /// How many nodes have yet to use each block.
    users: Vec<usize>,
    is_done: Vec<bool>,
    /// By node: how many nodes had run when it became ready.
    since: Vec<usize>,
    /// Ready nodes by key, ties in recorded order; a node whose key has changed is also listed
    /// under its old one.
    ready: BinaryHeap<Reverse<(Key, u32)>>,
}

impl<'a, F: Fn(&Ready) -> Key> List<'a, F> {
    fn new(work: &'a Work<'a>, key: F) -> Self {
        let lengths = |rows: &crate::graph::Csr<u32>| rows.iter().map(<[u32]>::len).collect();
        let (is_done, since) = (vec![false; work.nodes()], vec![0; work.nodes()]);
        let (waits, users): (Vec<usize>, _) = (lengths(&work.before), lengths(&work.users));
        let mut list = List { work, key, waits, users, is_done, since, ready: BinaryHeap::new() };
        (0..work.nodes() as u32).for_each(|node| list.offer(node));
        list
    }

    /// Queues a node under its current key, if it is ready.
    fn offer(&mut self, node: u32) {
        if self.waits[node as usize] == 0 && !self.is_done[node as usize] {
            self.ready.push(Reverse((self.rank(node), node)));
        }
    }

    fn rank(&self, node: u32) -> Key {
        if self.work.is_indifferent(node) {
            return (LAST, node as isize);
        }
        let uses = || self.work.line.uses(node as usize);
        (self.key)(&Ready {
            node,
            change: uses().map(|block| self.change(block)).sum(),
            since: self.since[node as usize],
            is_source: uses().all(|block| self.is_new(block)),
        })
    }

    /// By how many bytes one more use of a block would change the memory in use.
    fn change(&self, block: u32) -> isize {
        let is_last = self.users[block as usize] == 1;
        let size = self.work.line.sizes[block as usize] as isize;
        size * (isize::from(self.is_new(block)) - isize::from(is_last))
    }

    /// Whether no node has used a block yet.
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

    /// Records that a node runs, the `done`-th to do so.
    fn run(&mut self, node: u32, done: usize) {
        let work = self.work;
        self.is_done[node as usize] = true;
        for &later in work.after.row(node as usize) {
            self.waits[later as usize] -= 1;
            self.since[later as usize] = done;
            self.offer(later);
        }
        for block in work.line.uses(node as usize) {
            let (users, left) = (work.users.row(block as usize), &mut self.users[block as usize]);
            *left -= 1;
            // The keys of its other users have changed: the block is in use from here on, or has
            // one user left.
            if *left == 1 || *left + 1 == users.len() {
                users.iter().for_each(|&user| self.offer(user));
            }
        }
    }
}

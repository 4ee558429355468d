//! List scheduling: of the nodes that may run next, the one with the least key goes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::work::Work;

/// A node's rank among those that may run next: a class, and a number within it.
type Key = (u8, isize);

/// What matters to nobody comes last: a generator that moves late lets numbers be drawn again.
const LAST: u8 = 2;

/// The recorded order, but that nodes which free at least as much as they allocate do not wait.
pub(super) fn early_frees(work: &Work) -> Vec<u32> {
    schedule(work, |node, change| if change <= 0 { (0, change) } else { (1, node as isize) })
}

/// What frees most goes first; if nothing frees anything, what allocates least.
pub(super) fn least_peak(work: &Work) -> Vec<u32> {
    schedule(work, |_, change| (0, change))
}

/// All nodes; `key` is told a node's number, and by how many bytes it changes what is in use.
fn schedule(work: &Work, key: impl Fn(u32, isize) -> Key) -> Vec<u32> {
    let mut list = List::new(work, key);
    let mut order = Vec::with_capacity(work.nodes());
    while let Some(node) = list.next() {
        list.run(node);
        order.push(node);
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
    /// Nodes that may run, equal ones in recorded order; a node whose key has changed stands here
    /// under its old one, too.
    ready: BinaryHeap<Reverse<(Key, u32)>>,
}

impl<'a, F: Fn(u32, isize) -> Key> List<'a, F> {
    fn new(work: &'a Work, key: F) -> Self {
        let lengths = |rows: &crate::graph::Csr<u32>| rows.iter().map(<[u32]>::len).collect();
        let is_done = vec![false; work.nodes()];
        let (waits, users): (Vec<usize>, _) = (lengths(&work.before), lengths(&work.users));
        let mut list = List { work, key, waits, users, is_done, ready: BinaryHeap::new() };
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
        match self.work.is_indifferent(node) {
            true => (LAST, node as isize),
            false => (self.key)(node, self.change(node)),
        }
    }

    /// By how many bytes a node that ran now would change what is in use afterwards.
    fn change(&self, node: u32) -> isize {
        let change = |&block: &u32| {
            let (size, left) =
                (self.work.sizes[block as usize] as isize, self.users[block as usize]);
            let is_new = left == self.work.users.row(block as usize).len();
            size * (isize::from(is_new) - isize::from(left == 1))
        };
        self.work.blocks.row(node as usize).iter().map(change).sum()
    }

    fn next(&mut self) -> Option<u32> {
        while let Some(Reverse((key, node))) = self.ready.pop() {
            if !self.is_done[node as usize] && key == self.rank(node) {
                return Some(node);
            }
        }
        None
    }

    fn run(&mut self, node: u32) {
        let work = self.work;
        self.is_done[node as usize] = true;
        for &later in work.after.row(node as usize) {
            self.waits[later as usize] -= 1;
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

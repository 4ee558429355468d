//! When operations, in a given order, use which memory: derived once, for orders, recomputation,
//! budgets and the plan.

use smallvec::SmallVec;

use super::csr::Csr;
use crate::device::ALIGNMENT;
use crate::graph::{Kernels, Op, Place, Queue, Role};
use crate::packing::{self, Lifetime};

/// See the module's documentation. What nodes read, make and take over are temporary blocks.
#[derive(Debug)]
pub struct Timeline {
    /// By block: the first and last nodes that use it, whatever its role.
    pub lives: Vec<Lifetime>,
    /// By block: the bytes that it would take in the arena.
    pub sizes: Vec<usize>,
    /// By node: the blocks that must be in memory when it begins, each once, in ascending order.
    pub reads: Csr<u32>,
    /// By node: the blocks that it is the first to use, likewise.
    pub makes: Csr<u32>,
    /// By node: (input, output) where the output takes over the input's memory in place.
    pub takes: Csr<(u32, u32)>,
    /// By node: the bytes that its scratch takes in the arena.
    pub scratch: Vec<usize>,
}

impl Timeline {
    /// The timeline of a queue; `roles` has one entry per block.
    pub fn new(queue: &Queue, roles: &[Role], kernels: &Kernels) -> Timeline {
        let scratch = queue.ops().iter().map(|op| in_arena(kernels.scratch(op))).collect();
        Timeline::of(|| queue.ops().iter(), &queue.sizes(), roles, scratch)
    }

    /// That of the same queue with its operations in another order, a permutation of their numbers.
    pub fn reordered(&self, queue: &Queue, order: &[u32], roles: &[Role]) -> Timeline {
        let scratch = order.iter().map(|&n| self.scratch[n as usize]).collect();
        let ops = || order.iter().map(|&n| &queue.ops()[n as usize]);
        Timeline::of(ops, &queue.sizes(), roles, scratch)
    }

    fn of<'a, Ops: Iterator<Item = &'a Op>>(
        ops: impl Fn() -> Ops,
        bytes: &[usize],
        roles: &[Role],
        scratch: Vec<usize>,
    ) -> Timeline {
        let count = scratch.len();
        let mut line = Timeline {
            lives: vec![Lifetime::NEVER; roles.len()],
            sizes: bytes.iter().copied().map(in_arena).collect(),
            reads: Csr::with_capacity(count, 2 * count),
            makes: Csr::with_capacity(count, count),
            takes: Csr::with_capacity(count, count),
            scratch,
        };
        (0u32..).zip(ops()).for_each(|(n, op)| line.note(n, op, roles));
        let is_whole = |place: &Place| {
            let block = place.block as usize;
            roles[block] == Role::Temporary && place.is_whole(bytes[block])
        };
        for (n, op) in (0u32..).zip(ops()) {
            let life = |place: &Place| line.lives[place.block as usize];
            let meet = |from: &Place, to: &Place| life(from).last == n && life(to).first == n;
            let pairs = in_place(op, |from, to| meet(from, to) && is_whole(from) && is_whole(to));
            pairs.into_iter().for_each(|pair| line.takes.push(pair));
            line.takes.end_row();
        }
        line
    }

    /// Adds a node's uses.
    fn note(&mut self, n: u32, op: &Op, roles: &[Role]) {
        let blocks = op.places().map(|place| place.block);
        let mut named: SmallVec<[u32; 8]> =
            blocks.filter(|&block| roles[block as usize] == Role::Temporary).collect();
        named.sort_unstable();
        named.dedup();
        for block in named {
            let is_new = self.lives[block as usize].is_never();
            let to = if is_new { &mut self.makes } else { &mut self.reads };
            to.push(block);
        }
        self.makes.end_row();
        self.reads.end_row();
        op.places().for_each(|place| extend(&mut self.lives[place.block as usize], n));
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.reads.rows()
    }

    /// The temporary blocks that a node uses, each once.
    pub fn uses(&self, node: usize) -> impl Iterator<Item = u32> {
        self.reads.row(node).iter().chain(self.makes.row(node)).copied()
    }

    /// By temporary block: the nodes that use it.
    pub fn users(&self) -> Csr<u32> {
        let of = |n: u32| self.uses(n as usize).map(move |block| (block as usize, n));
        Csr::sorted(self.lives.len(), || (0..self.nodes() as u32).flat_map(of))
    }

    /// By block: the one whose memory it takes over; itself if it takes over none.
    pub fn owners(&self) -> Vec<u32> {
        let mut owners: Vec<u32> = (0..self.lives.len() as u32).collect();
        for &(from, to) in self.takes.items() {
            // Chains resolve themselves: the owner of `from` was found at an earlier node.
            owners[to as usize] = owners[from as usize];
        }
        owners
    }

    /// By block: when the memory that it owns in the arena is needed; `NEVER` if it owns none.
    pub fn needed(&self, owners: &[u32]) -> Vec<Lifetime> {
        let mut needed = vec![Lifetime::NEVER; owners.len()];
        for n in 0..self.nodes() {
            let owned = self.uses(n).map(|block| owners[block as usize]);
            owned.for_each(|owner| extend(&mut needed[owner as usize], n as u32));
        }
        needed
    }

    /// The bytes of temporary blocks and scratch that are live during each node; blocks that share
    /// memory in place count once.
    pub fn curve(&self) -> Vec<usize> {
        let needed = self.needed(&self.owners()).into_iter().zip(self.sizes.iter().copied());
        let mut live = packing::curve(self.nodes(), needed);
        live.iter_mut().zip(&self.scratch).for_each(|(live, scratch)| *live += scratch);
        live
    }

    /// The most bytes that are live at once, by which orders and recomputation are judged: it takes
    /// no planning.
    pub fn peak(&self) -> usize {
        self.curve().into_iter().max().unwrap_or(0)
    }
}

/// The bytes that so many take in the arena.
fn in_arena(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Extends a lifetime to a node after all that it includes.
fn extend(life: &mut Lifetime, n: u32) {
    *life = Lifetime { first: life.first.min(n), last: n };
}

/// The pairs of blocks (input, output) of an operation that share memory: both have the same meta,
/// the operation uses each of them once, and `may` allows it.
fn in_place(op: &Op, may: impl Fn(&Place, &Place) -> bool) -> SmallVec<[(u32, u32); 2]> {
    let times = |block: u32| op.places().filter(|p| p.block == block).count();
    let mut found = SmallVec::<[(u32, u32); 2]>::new();
    for &(i, o) in op.call.kind.family().in_place() {
        let (Some(from), Some(to)) = (op.inputs.get(i), op.outputs.get(o)) else { continue };
        let is_free = found.iter().all(|pair| pair.0 != from.block && pair.1 != to.block);
        let fits = is_free && from.meta == to.meta && may(from, to);
        if fits && times(from.block) == 1 && times(to.block) == 1 {
            found.push((from.block, to.block));
        }
    }
    found
}

#[cfg(test)]
mod tests;

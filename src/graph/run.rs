//! Serial replay: the kernels of a graph, one after another, on bound memory.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Graph;
use super::csr::Csr;
use crate::error::{Error, Result};
use crate::ops::{Io, Kernel, Prepared};

/// A run that ended early.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// The node that failed; those before it have run.
    pub node: usize,
    /// What it said.
    pub error: Error,
}

/// A graph with the addresses of all its places.
pub struct Bound {
    steps: Vec<Step>,
    /// For each step its inputs, its outputs, its scratch (null where it needs none).
    addresses: Vec<*mut u8>,
    /// Where each block outside of the arena is, by number; null until it is bound.
    starts: Vec<*mut u8>,
    /// The addresses that each of them is the base of: (index, bytes from the block's start).
    patches: Csr<(u32, usize)>,
    /// Keeps the kernels alive.
    ops: Vec<Arc<Prepared>>,
}

/// A block outside of the arena, and the address that it is the base of.
type Outside = (usize, (u32, usize));

/// A kernel and where its addresses begin.
struct Step {
    kernel: *const dyn Kernel,
    first: u32,
    inputs: u16,
    outputs: u16,
}

// SAFETY: kernels may be shared between threads, and addresses are only used by `run`.
unsafe impl Send for Bound {}
// SAFETY: as above.
unsafe impl Sync for Bound {}

impl Bound {
    /// Binds what lies in the arena, whose first byte is `arena`, aligned to 64.
    pub fn new(graph: &Graph, arena: *mut u8) -> Bound {
        let mut bound = Bound {
            steps: Vec::with_capacity(graph.nodes.len()),
            addresses: Vec::with_capacity(graph.places.len() + graph.nodes.len()),
            starts: vec![std::ptr::null_mut(); graph.roles.len()],
            patches: Csr::with_capacity(0, 0),
            ops: distinct(graph),
        };
        let mut outside = Vec::new();
        for n in 0..graph.nodes.len() {
            bound.add(graph, n, arena, &mut outside);
        }
        bound.patches = Csr::sorted(graph.roles.len(), || outside.iter().copied());
        bound
    }

    /// Appends a node; what lies outside of the arena is noted as (block, patch).
    fn add(&mut self, graph: &Graph, n: usize, arena: *mut u8, outside: &mut Vec<Outside>) {
        let node = &graph.nodes[n];
        let (inputs, outputs) = (graph.inputs(node), graph.outputs(node));
        self.steps.push(Step {
            kernel: Arc::as_ptr(&node.op.kernel),
            first: self.addresses.len() as u32,
            inputs: inputs.len() as u16,
            outputs: outputs.len() as u16,
        });
        for place in inputs.iter().chain(outputs) {
            let from = place.offset * place.meta.dtype.size();
            self.addresses.push(match graph.offset(place.block) {
                Some(offset) => arena.wrapping_add(offset + from),
                None => {
                    outside.push((place.block as usize, (self.addresses.len() as u32, from)));
                    std::ptr::null_mut()
                }
            });
        }
        let scratch = graph.scratch_offset(n).map(|offset| arena.wrapping_add(offset));
        self.addresses.push(scratch.unwrap_or_default());
    }

    /// Says where a block outside of the arena is.
    pub fn bind(&mut self, block: u32, start: *mut u8) {
        let block = block as usize;
        if self.starts[block] == start {
            return;
        }
        self.starts[block] = start;
        for &(index, from) in self.patches.row(block) {
            self.addresses[index as usize] = start.wrapping_add(from);
        }
    }
}

impl Bound {
    /// Runs all nodes in recorded order.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// As [`Bound::run_from`], with all nodes.
    pub unsafe fn run(&self) -> std::result::Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe { self.run_from(0, self.steps.len()) }
    }

    /// Runs nodes `first..end` in recorded order.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// The nodes before `first` have run. Every block outside of the arena that the nodes name is
    /// bound to memory of its size, the arena is memory of [`Graph::arena_bytes`], and nothing
    /// else touches them meanwhile. What is read was written, by a node or before the run.
    pub unsafe fn run_from(&self, first: usize, end: usize) -> std::result::Result<(), Stopped> {
        let mut node = first;
        let run = || {
            while node < end {
                // SAFETY: by the caller's promise.
                unsafe { self.step(&self.steps[node]) }?;
                node += 1;
            }
            Ok(())
        };
        let done: Result<()> = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|panic| Err(Error::panic("", &*panic)));
        done.map_err(|error| Stopped { node, error: error.in_op(self.name(node)) })
    }

    /// Has a node's kernel check the values of its inputs, which were there before the run.
    ///
    /// # Errors
    /// [`Stopped`] with what the kernel would say.
    ///
    /// # Safety
    /// What the kernel checks is bound to memory that nothing writes meanwhile.
    pub unsafe fn check(&self, node: usize) -> std::result::Result<(), Stopped> {
        let step = &self.steps[node];
        // SAFETY: by the caller's promise.
        let done = unsafe { (*step.kernel).check(&self.io(step)) };
        done.map_err(|error| Stopped { node, error: error.in_op(self.name(node)) })
    }

    /// Runs one kernel.
    ///
    /// # Safety
    /// As [`Bound::run_from`].
    #[inline(always)]
    unsafe fn step(&self, step: &Step) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { (*step.kernel).run(&self.io(step)) }
    }

    /// The addresses of one kernel.
    ///
    /// # Safety
    /// As [`Bound::run_from`].
    #[inline(always)]
    unsafe fn io(&self, step: &Step) -> Io<'_> {
        let (inputs, outputs) = (step.inputs as usize, step.outputs as usize);
        // SAFETY: `add` pushed that many addresses and one more from `first` on; `ops` keeps the
        // kernel. By the caller's promise the addresses are those of memory for its metas.
        unsafe {
            let base = self.addresses.as_ptr().add(step.first as usize);
            let from = std::slice::from_raw_parts(base.cast::<*const u8>(), inputs);
            let to = std::slice::from_raw_parts(base.add(inputs), outputs);
            Io::new(from, to, *base.add(inputs + outputs))
        }
    }

    /// The name of a node's operation.
    fn name(&self, node: usize) -> &'static str {
        let kernel = self.steps[node].kernel.cast::<()>();
        let is_its = |op: &&Arc<Prepared>| Arc::as_ptr(&op.kernel).cast::<()>() == kernel;
        self.ops.iter().find(is_its).map_or("graph", |op| op.name())
    }
}

/// Each operation once.
fn distinct(graph: &Graph) -> Vec<Arc<Prepared>> {
    let mut seen = FxHashSet::default();
    let ops = graph.nodes.iter().map(|node| &node.op);
    ops.filter(|op| seen.insert(Arc::as_ptr(op).addr())).cloned().collect()
}

#[cfg(test)]
mod tests;

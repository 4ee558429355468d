//! The addresses of a graph's places.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Stopped;
use crate::device::{Stream, ending};
use crate::error::{Error, Result, guarded};
use crate::graph::{Csr, Graph};
use crate::kernels::{Io, Kernel, Prepared};

/// See the module's documentation.
pub(super) struct Binding {
    steps: Vec<Step>,
    /// For each step: its inputs, its outputs and its scratch if it needs any.
    addresses: Vec<*mut u8>,
    /// The distinct operations of the steps: far fewer than steps, so that they stay in cache.
    calls: Vec<Call>,
    /// The address of each block outside the arena, by number; null until it is bound.
    starts: Vec<*mut u8>,
    /// By block: the addresses relative to its start, as (index, bytes from the start).
    patches: Csr<(u32, usize)>,
    /// The operations of `calls`, whose kernels they keep alive.
    ops: Vec<Arc<Prepared>>,
    stream: Stream,
}

/// A block outside the arena, and an address relative to its start, as in `patches`.
type Outside = (usize, (u32, usize));

/// A node: the index of its call and of its first address.
#[derive(Clone, Copy)]
pub(super) struct Step {
    call: u32,
    first: u32,
}

/// A kernel and the addresses that it takes.
struct Call {
    kernel: *const dyn Kernel,
    inputs: u32,
    outputs: u32,
    has_scratch: bool,
}

// SAFETY: kernels may be shared between threads, and addresses are only used by `run`.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

impl Binding {
    pub(super) fn new(graph: &Graph, arena: *mut u8) -> Binding {
        let mut bound = Binding {
            steps: Vec::with_capacity(graph.ops.len()),
            addresses: Vec::with_capacity(3 * graph.ops.len()),
            calls: Vec::new(),
            starts: vec![std::ptr::null_mut(); graph.roles.len()],
            patches: Csr::with_capacity(0, 0),
            ops: Vec::new(),
            stream: graph.kernels.first().map_or(Stream::HOST, |op| op.target.stream()),
        };
        let (mut known, mut outside) = (FxHashMap::default(), Vec::new());
        for (n, op) in graph.kernels.iter().enumerate() {
            let call = *known.entry(Arc::as_ptr(op)).or_insert_with(|| bound.call(op));
            bound.steps.push(Step { call, first: bound.addresses.len() as u32 });
            bound.add(graph, n, arena, &mut outside);
        }
        bound.patches = Csr::sorted(graph.roles.len(), || outside.iter().copied());
        bound
    }

    /// Adds an operation to `calls`.
    fn call(&mut self, op: &Arc<Prepared>) -> u32 {
        self.calls.push(Call {
            kernel: Arc::as_ptr(&op.kernel),
            inputs: op.inputs.len() as u32,
            outputs: op.outputs.len() as u32,
            has_scratch: op.kernel.scratch() > 0,
        });
        self.ops.push(op.clone());
        self.ops.len() as u32 - 1
    }

    /// Appends a node's addresses; those outside the arena are recorded as (block, patch).
    fn add(&mut self, graph: &Graph, n: usize, arena: *mut u8, outside: &mut Vec<Outside>) {
        let (op, kernel) = (&graph.ops[n], &graph.kernels[n]);
        let counts = (kernel.inputs.len(), kernel.outputs.len());
        assert_eq!((op.inputs.len(), op.outputs.len()), counts, "places of {}", kernel.name());
        for place in op.places() {
            let from = place.offset * place.meta.dtype.size();
            self.addresses.push(match graph.offset(place.block) {
                Some(offset) => arena.wrapping_add(offset + from),
                None => {
                    outside.push((place.block as usize, (self.addresses.len() as u32, from)));
                    std::ptr::null_mut()
                }
            });
        }
        self.addresses.extend(graph.scratch_offset(n).map(|offset| arena.wrapping_add(offset)));
    }

    pub(super) fn bind(&mut self, block: u32, start: *mut u8) {
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

impl Binding {
    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.steps.len()
    }

    /// The nodes, in order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Runs a node's kernel.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    #[inline(always)]
    pub(super) unsafe fn run(&self, step: &Step) -> Result<()> {
        // SAFETY: by the caller's promise; `ops` keeps the kernel.
        unsafe { (*self.calls[step.call as usize].kernel).run(&self.io(step)) }
    }

    /// Runs nodes in recorded order on the calling thread, up to the first one that fails or, if
    /// `CHECKED`, that produces a NaN or an infinity.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    pub(super) unsafe fn run_all<const CHECKED: bool>(
        &self,
        nodes: Range<usize>,
    ) -> Result<(), Stopped> {
        let mut node = nodes.start;
        let run = || {
            for step in &self.steps[nodes] {
                ending::check()?;
                // SAFETY: by the caller's promise.
                unsafe {
                    match CHECKED {
                        true => self.op(node).run_checked(&self.io(step)),
                        false => self.run(step),
                    }
                }?;
                node += 1;
            }
            Ok(())
        };
        guarded("", run).map_err(|error| self.stopped(node, error))
    }

    /// Puts nodes on a stream, that of the device if none is given; what they check has been
    /// checked.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    pub(super) unsafe fn put_all(
        &self,
        nodes: Range<usize>,
        stream: Option<Stream>,
    ) -> Result<(), Stopped> {
        let stream = stream.unwrap_or(self.stream);
        let put = |node: usize| {
            let step = &self.steps[node];
            // SAFETY: by the caller's promise; `ops` keeps the kernel.
            unsafe { (*self.calls[step.call as usize].kernel).put(&self.io(step).on(stream)) }
        };
        { nodes }.try_for_each(|node| {
            guarded("", || put(node)).map_err(|error| self.stopped(node, error))
        })
    }

    /// The addresses of the blocks outside the arena, by number; null for those inside.
    pub(super) fn starts(&self) -> &[*mut u8] {
        &self.starts
    }

    /// Lets a node's kernel check its inputs.
    ///
    /// # Safety
    /// As [`super::Bound::check`].
    pub(super) unsafe fn check(&self, node: usize) -> Result<()> {
        let step = &self.steps[node];
        // SAFETY: by the caller's promise; `ops` keeps the kernel.
        unsafe { (*self.calls[step.call as usize].kernel).check(&self.io(step)) }
    }

    /// The addresses of a step.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    #[inline(always)]
    pub(super) unsafe fn io(&self, step: &Step) -> Io<'_> {
        let call = &self.calls[step.call as usize];
        let (inputs, outputs) = (call.inputs as usize, call.outputs as usize);
        // SAFETY: `add` pushed that many addresses starting at `first`, and one more for scratch.
        // By the caller's promise they point to memory that fits the metas.
        unsafe {
            let base = self.addresses.as_ptr().add(step.first as usize);
            let from = std::slice::from_raw_parts(base.cast::<*const u8>(), inputs);
            let to = std::slice::from_raw_parts(base.add(inputs), outputs);
            // Not reading an address that is not there saves a cache line.
            let scratch = match call.has_scratch {
                true => *base.add(inputs + outputs),
                false => std::ptr::null_mut(),
            };
            Io::new(from, to, scratch).on(self.stream)
        }
    }

    /// A run that stopped at a failed node, with no later node run.
    pub(super) fn stopped(&self, node: usize, error: Error) -> Stopped {
        Stopped { node, end: node + 1, error: error.in_op(self.op(node).name()) }
    }

    /// The operation of a node.
    pub(super) fn op(&self, node: usize) -> &Prepared {
        &self.ops[self.steps[node].call as usize]
    }
}

//! Runs prepared operations on memory: a single one, or those of a bound graph.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;

use smallvec::SmallVec;

use crate::block::Block;
use crate::device::{Account, ending};
use crate::error::Result;
use crate::graph::replay::finite::{Before, not_finite};
use crate::graph::{Bound, Stopped};
use crate::kernels::{Io, Prepared};
use crate::ops::{Call, View};

/// Addresses of the first elements.
type Addresses<T> = SmallVec<[T; 8]>;

/// Runs a kernel. `outputs` are those that are not state, in order. The caller must hold the
/// device's turn, or be the initialiser that a block waits for.
pub(super) fn execute(op: &Prepared, inputs: &[View], outputs: &[View]) -> Result<()> {
    ending::check()?;
    let device = outputs.iter().chain(inputs).next().map(|view| view.block.device());
    let scratch = match (op.kernel.scratch(), device) {
        (0, _) | (_, None) => None,
        (bytes, Some(device)) => Some(device.pool().lend(bytes, Account::Scratch)?),
    };
    let mut from: Addresses<*const u8> = SmallVec::new();
    for input in inputs {
        from.push(input.address(false)?.cast_const());
    }
    let mut to: Addresses<*mut u8> = SmallVec::new();
    let mut fresh = outputs.iter();
    for o in 0..op.outputs.len() {
        to.push(match op.state_of(o) {
            Some(i) => from[i].cast_mut(),
            None => fresh.next().expect("one view an output").address(true)?,
        });
    }
    raise_versions(op, inputs, outputs);
    let place = scratch.as_ref().map_or(std::ptr::null_mut(), |s| s.pointer());
    // SAFETY: the addresses are those of live views with the metas that the kernel was prepared
    // for; `checks` rules out invalid overlap.
    let io = unsafe { Io::new(&from, &to, place) };
    if !CHECKS_FINITE.get() {
        return op.kernel.run(&io);
    }
    // SAFETY: as above, both before and after the kernel has run.
    unsafe {
        let before = Before::of(op, &io);
        op.kernel.run(&io)?;
        not_finite(op, &io, before).map_or(Ok(()), Err)
    }
}

thread_local! {
    static CHECKS_FINITE: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether operations on this thread fail if they produce a NaN or an infinity; returns the
/// previous setting.
pub fn check_finite(is_asked: bool) -> bool {
    CHECKS_FINITE.replace(is_asked)
}

/// Raises the versions of everything written, even if the kernel then fails, because it may have
/// written some of its outputs.
pub(super) fn raise_versions(call: &Call, inputs: &[View], outputs: &[View]) {
    call.effects.state.iter().for_each(|&(i, _)| inputs[i].block.touch());
    outputs.iter().for_each(|v| v.block.touch());
}

/// Runs nodes of a graph, all of whose blocks an [`super::Executable`] has bound.
pub(super) fn replay(bound: &Bound, nodes: Range<usize>) -> std::result::Result<(), Stopped> {
    // SAFETY: the executable bound captured blocks, arguments with the recorded metas and results
    // to memory that it holds; it holds the run's guard, and the arena is backed.
    unsafe { bound.run_from(nodes.start, nodes.end) }
}

/// The same, up to the first node that produces a NaN or an infinity.
pub(super) fn replay_checked(
    bound: &Bound,
    nodes: Range<usize>,
) -> std::result::Result<(), Stopped> {
    // SAFETY: as for `replay`.
    unsafe { bound.run_checked(nodes) }
}

/// Checks the values of a node's arguments before a run.
pub(super) fn check(bound: &Bound, node: usize) -> std::result::Result<(), Stopped> {
    // SAFETY: as for `replay`; the values to check existed before the run.
    unsafe { bound.check(node) }
}

/// Calls `f` with the bytes of a block at this address. The caller must hold the device's turn.
pub(super) fn look<T>(start: *const u8, bytes: usize, f: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: the block has memory of this size, which nobody writes meanwhile.
    f(unsafe { std::slice::from_raw_parts(start, bytes) })
}

/// A copy of a block's bytes. The caller must hold the device's turn.
pub(super) fn save(block: &Block) -> Result<Vec<u8>> {
    let start = block.to_touch()?;
    let refusal = |_| block.device().pool().out_of_memory("save", block.bytes());
    let mut saved = Vec::new();
    saved.try_reserve_exact(block.bytes()).map_err(refusal)?;
    look(start.as_ptr(), block.bytes(), |bytes| saved.extend_from_slice(bytes));
    Ok(saved)
}

/// Restores the bytes that [`save`] returned. The caller must hold the device's turn.
pub(super) fn restore(block: &Block, bytes: &[u8]) {
    let Some(start) = block.address() else { return };
    // SAFETY: the block has memory of that many bytes, which nobody else uses meanwhile.
    unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

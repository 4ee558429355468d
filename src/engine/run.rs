//! Runs one prepared operation on memory.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use super::Engine;
use crate::device::Account;
use crate::error::Result;
use crate::ops::{Io, Prepared, View};

/// Addresses of the first elements.
type Addresses<T> = SmallVec<[T; 8]>;

impl Engine {
    /// Runs a kernel. `outputs` are those that are not state, in order.
    pub(super) fn execute(&self, op: &Prepared, inputs: &[View], outputs: &[View]) -> Result<()> {
        let scratch = match op.kernel.scratch() {
            0 => None,
            bytes => Some(self.device().pool().lend(bytes, Account::Scratch)?),
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
        // SAFETY: the addresses are those of live views with the metas that the kernel was
        // prepared for; `checks` keeps overlapping tensors away.
        op.kernel.run(&unsafe { Io::new(&from, &to, place) })
    }
}

/// Also where the kernel then fails, since it may have written some of its outputs.
fn raise_versions(op: &Prepared, inputs: &[View], outputs: &[View]) {
    op.effects.state.iter().for_each(|&(i, _)| inputs[i].block.touch());
    outputs.iter().for_each(|v| v.block.touch());
}

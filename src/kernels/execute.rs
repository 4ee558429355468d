//! Running a single operation on its tensors.
#![allow(unsafe_code)]

use std::cell::Cell;

use smallvec::SmallVec;

use super::{Io, Prepared};
use crate::device::{Account, ending};
use crate::error::Result;
use crate::ops::View;

/// Addresses of the first elements.
type Addresses<T> = SmallVec<[T; 8]>;

impl Prepared {
    /// Runs the kernel, and raises the versions of what it writes. `outputs` are those that are not
    /// state, in order. The caller must have ruled out that they overlap anything that the
    /// operation does not allow, and hold the device's turn, or be the initialiser that a block
    /// waits for.
    ///
    /// # Errors
    /// Those of the kernel; [`crate::Error::OutOfMemory`]; [`crate::Error::NotFinite`] if this
    /// thread asked for it.
    pub fn execute(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.run_on(inputs, outputs, true)
    }

    /// As [`Prepared::execute`], of an operation that was put off, for which what it writes already
    /// counts as written: raises no versions.
    ///
    /// # Errors
    /// As [`Prepared::execute`].
    pub fn catch_up(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.run_on(inputs, outputs, false)
    }

    fn run_on(&self, inputs: &[View], outputs: &[View], is_write: bool) -> Result<()> {
        ending::check()?;
        let device = outputs.iter().chain(inputs).next().map(|view| view.block.device());
        let scratch = match (self.kernel.scratch(), device) {
            (0, _) | (_, None) => None,
            (bytes, Some(device)) => Some(device.pool().lend(bytes, Account::Scratch)?),
        };
        let mut from: Addresses<*const u8> = SmallVec::new();
        for input in inputs {
            from.push(input.address(false)?.cast_const());
        }
        let mut to: Addresses<*mut u8> = SmallVec::new();
        let mut fresh = outputs.iter();
        for o in 0..self.outputs.len() {
            to.push(match self.state_of(o) {
                Some(i) => from[i].cast_mut(),
                None => fresh.next().expect("one view an output").address(true)?,
            });
        }
        if is_write {
            self.raise_versions(inputs, outputs);
        }
        let place = scratch.as_ref().map_or(std::ptr::null_mut(), |s| s.pointer());
        // SAFETY: the addresses are those of live views with the metas that the kernel was prepared
        // for; the caller has ruled out invalid overlap.
        let io = unsafe { Io::new(&from, &to, place) }.on(self.target.stream());
        match CHECKS_FINITE.get() {
            // SAFETY: as above, both before and after the kernel has run.
            true => unsafe { self.run_checked(&io) },
            false => self.kernel.run(&io),
        }
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

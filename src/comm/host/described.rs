//! What a rank is about to do, for others to compare.

use std::cell::UnsafeCell;

use super::text::Text;
use crate::comm::{Fault, Round};

/// The bytes of an operation's text that others get to see.
pub const WORDS: usize = 120;

/// How bytes go from rank to rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// From each rank to all.
    Gather,
    /// A part of each rank's bytes to each rank.
    Exchange,
    /// From this rank to all.
    Broadcast(usize),
    /// From one rank to another.
    Pair,
}

/// An operation in shared memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Description {
    hash: u64,
    /// The step of the round.
    pub step: u64,
    what: Text<WORDS>,
}

impl Description {
    /// A round that moves so many bytes of each rank. Both are part of what has to be equal: ranks
    /// that disagree about them would read what nobody has written.
    pub fn new(round: &Round, route: Route, bytes: usize) -> Self {
        let way = match route {
            Route::Gather => 0,
            Route::Exchange => 1,
            Route::Pair => 2,
            Route::Broadcast(root) => 3 + root as u64,
        };
        let mixed = |hash: u64, word: u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        };
        let hash = [way, bytes as u64].into_iter().fold(round.hash, mixed);
        Description { hash, step: round.step, what: round.what.into() }
    }

    /// Compares the operation with that of another rank.
    ///
    /// # Errors
    /// [`Fault::Differs`].
    pub fn agree(&self, rank: usize, theirs: Description) -> Result<(), Fault> {
        if self.hash == theirs.hash {
            return Ok(());
        }
        let (theirs, ours) = (theirs.what.to_string(), self.what.to_string());
        Err(Fault::Differs { rank, theirs, ours })
    }
}

/// The operations of a rank's last two numbers, an even and an odd one.
#[repr(C)]
pub struct Descriptions([UnsafeCell<Description>; 2]);

impl Descriptions {
    /// The operation of a number.
    ///
    /// # Safety
    /// The number is published, and its rank has not come to the next but one.
    pub unsafe fn get(&self, number: u32) -> Description {
        // SAFETY: nobody writes it meanwhile, says the caller.
        unsafe { *self.0[number as usize % 2].get() }
    }

    /// Describes a number.
    ///
    /// # Safety
    /// The number is this rank's next, and nobody reads the one before the last any more.
    pub unsafe fn set(&self, number: u32, description: Description) {
        // SAFETY: nobody else accesses it meanwhile, says the caller.
        unsafe { *self.0[number as usize % 2].get() = description };
    }
}

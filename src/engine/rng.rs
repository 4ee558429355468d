//! Random number generators: counter-based, so that a number depends on the seed and its place
//! in the sequence and not on who draws it when. Their state lives in blocks.

use std::sync::Arc;

use super::Turn;
use crate::device::{Account, Device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::view::{Meta, View};

/// Which sequence of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Dropout masks and whatever else a step draws.
    Step,
    /// Initial values of parameters.
    Init,
}

/// The generators of one device: state tensors of int64 seed and position.
pub struct Rng {
    step: View,
    init: View,
}

impl Rng {
    pub(super) fn new(device: &Arc<Device>) -> Self {
        let state = || {
            let view = View::new(device, Meta::new(DType::Int64, [2]));
            view.block.set_account(Account::States);
            view
        };
        Rng { step: state(), init: state() }
    }

    /// The state of a stream, from seed 0 if there was none.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn state(&self, turn: &Turn, stream: Stream) -> Result<&View> {
        if !self.init.block.is_allocated() {
            self.seed(turn, 0)?;
        }
        Ok(match stream {
            Stream::Step => &self.step,
            Stream::Init => &self.init,
        })
    }

    /// Starts both streams anew. They never share numbers: their keys differ in one bit.
    ///
    /// # Errors
    /// [`Error::Value`] for a seed of 2^63 or more, [`Error::OutOfMemory`].
    pub fn seed(&self, _turn: &Turn, seed: u64) -> Result<()> {
        let fits = seed <= i64::MAX as u64;
        crate::ensure!(fits, Error::value("set_seed", seed, "a seed below 2^63"));
        set(&self.step, seed << 1)?;
        set(&self.init, seed << 1 | 1)
    }
}

#[allow(unsafe_code)]
fn set(state: &View, key: u64) -> Result<()> {
    let pointer = state.address(true)?.cast::<[i64; 2]>();
    // SAFETY: the block holds two int64, and the caller has the device's turn.
    unsafe { pointer.write([key as i64, 0]) };
    state.block.touch();
    Ok(())
}

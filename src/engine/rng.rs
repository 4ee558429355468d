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
    pub fn state(&self, _turn: &Turn, stream: Stream) -> Result<&View> {
        if !self.init.block.is_allocated() {
            for (state, key) in [&self.step, &self.init].into_iter().zip(keys(0)?) {
                set(state, key, 0)?;
            }
        }
        Ok(match stream {
            Stream::Step => &self.step,
            Stream::Init => &self.init,
        })
    }
}

/// The keys of both streams. They never share numbers: their keys differ in one bit.
///
/// # Errors
/// [`Error::Value`] for a seed of 2^63 or more.
pub(super) fn keys(seed: u64) -> Result<[u64; 2]> {
    let fits = seed <= i64::MAX as u64;
    crate::ensure!(fits, Error::value("set_seed", seed, "a seed below 2^63"));
    Ok([seed << 1, seed << 1 | 1])
}

/// Puts a generator to a place in its sequence. The caller has the device's turn.
#[allow(unsafe_code)]
pub(super) fn set(state: &View, key: u64, position: u64) -> Result<()> {
    let pointer = state.address(true)?.cast::<[i64; 2]>();
    // SAFETY: the block holds two int64, and the caller has the device's turn.
    unsafe { pointer.write([key as i64, position as i64]) };
    state.block.touch();
    Ok(())
}

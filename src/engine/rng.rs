//! Random number generators. They are counter-based, so that a number depends only on the seed and
//! its position in the sequence, not on who draws it or when. Their state is stored in blocks.

use std::sync::Arc;

use super::Turn;
use crate::device::{Account, Device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::view::{Meta, View};

/// A sequence of random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Dropout masks and other draws of a step.
    Step,
    /// Initial values of parameters.
    Init,
}

/// The generators of one device: state tensors that hold a key and a position as int64.
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

    /// The state of a stream; seeded with 0 if no seed was set.
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

/// The keys of both streams, which differ in one bit, so that the streams never share numbers.
///
/// # Errors
/// [`Error::Value`] for a seed of 2^63 or more.
pub(super) fn keys(seed: u64) -> Result<[u64; 2]> {
    let fits = seed <= i64::MAX as u64;
    crate::ensure!(fits, Error::value("set_seed", seed, "a seed below 2^63"));
    Ok([seed << 1, seed << 1 | 1])
}

/// Sets a generator's key and position. The caller must hold the device's turn.
pub(super) fn set(state: &View, key: u64, position: u64) -> Result<()> {
    let numbers = [key as i64, position as i64].map(i64::to_ne_bytes);
    state.block.write(numbers.as_flattened())?;
    state.block.touch();
    Ok(())
}

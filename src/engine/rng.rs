//! Random number generators. They are counter-based, so that a number depends only on the seed and
//! its position in the sequence, not on who draws it or when. Their state is stored in blocks.

use std::sync::Arc;

use super::record::{self, Mode, Recorder};
use super::{Engine, Turn};
use crate::device::{Account, Device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Call, Kind, Scalar, copy};
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

/// The position of a generator that a recording has reseeded but no run has: initialisers of state,
/// which do not wait for a run, draw from there.
pub(super) struct Seeded {
    generator: View,
    key: u64,
    position: u64,
}

impl Recorder {
    /// Records that `by` blocks of numbers are drawn from a generator.
    pub fn draw(&mut self, generator: &View, by: u64) {
        self.recording.draw(generator, by);
        if let Some(seeded) = self.seeded.as_mut().filter(|s| s.generator.is_same(generator)) {
            seeded.position = seeded.position.wrapping_add(by);
        }
    }

    /// The key and position of a generator, if it was reseeded.
    fn seeded(&self, generator: &View) -> Option<(u64, u64)> {
        let seeded = self.seeded.as_ref().filter(|s| s.generator.is_same(generator));
        seeded.map(|seeded| (seeded.key, seeded.position))
    }
}

impl Engine {
    /// Reseeds both streams, with keys that differ in one bit, so that they never share numbers.
    /// While this thread records, each run of the recording reseeds them at this point.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a seed of 2^63 or more, [`crate::Error::OutOfMemory`].
    pub fn seed(&self, turn: &mut Turn, seed: u64) -> Result<()> {
        let [step, init] = keys(seed)?;
        for (stream, key) in [(Stream::Step, step), (Stream::Init, init)] {
            let state = self.rng().state(turn, stream)?.clone();
            if record::mode() == Mode::Eager {
                set(&state, key, 0)?;
            } else {
                self.record_number(&state, 0, key)?;
                self.record_number(&state, 1, 0)?;
            }
        }
        let generator = self.rng().state(turn, Stream::Init)?.clone();
        record::with(|r| r.seeded = Some(Seeded { generator, key: init, position: 0 }));
        Ok(())
    }

    /// Records a write of one number of a generator's state.
    fn record_number(&self, state: &View, at: usize, value: u64) -> Result<()> {
        let (value, shape, dtype) = (Scalar::Int(value as i64), [1].into(), DType::Int64);
        let fill = Kind::from(copy::Fill { value, shape, dtype });
        let call = Arc::new(Call::new(&fill, <&[View]>::default())?);
        let meta = call.outputs[0].clone();
        let part = View { block: state.block.clone(), meta, offset: at };
        self.append(&call, &[], &[part])
    }

    /// A copy of a generator to draw state from, after which the generator's recorded position
    /// advances by `by` blocks; None if no recording has reseeded it.
    pub(super) fn draw_seeded(&self, generator: &View, by: u64) -> Result<Option<View>> {
        let Some((key, position)) = record::with(|r| r.seeded(generator)).flatten() else {
            return Ok(None);
        };
        let copied = View::of(self.device(), &generator.meta);
        set(&copied, key, position)?;
        // Runs must leave the generator after the numbers drawn here.
        record::with(|recorder| recorder.draw(generator, by));
        Ok(Some(copied))
    }
}

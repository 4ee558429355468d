//! Reseeding the random number generators, at once or in each run of a recording.

use std::sync::Arc;

use super::record::{self, Mode, Recorder};
use super::rng::{self, Stream};
use super::{Engine, Turn};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Call, Kind, Scalar, View, copy};

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
        let [step, init] = rng::keys(seed)?;
        for (stream, key) in [(Stream::Step, step), (Stream::Init, init)] {
            let state = self.rng().state(turn, stream)?.clone();
            if record::mode() == Mode::Eager {
                rng::set(&state, key, 0)?;
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
        rng::set(&copied, key, position)?;
        // Runs must leave the generator after the numbers drawn here.
        record::with(|recorder| recorder.draw(generator, by));
        Ok(Some(copied))
    }
}

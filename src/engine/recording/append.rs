//! What happens to an operation while recording, instead of running it.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::dtype::DType;
use crate::engine::eager::draws;
use crate::engine::record::{self, Mode, Recorder};
use crate::engine::recording::{Blocks, Draws, Recording};
use crate::engine::{Engine, Inputs, Turn};
use crate::error::{Error, Result};
use crate::ops::{Call, Kind, Scalar, View, copy, random};

impl Engine {
    /// Records an operation, or defers it as an initialiser; `outputs` are those that are not
    /// state.
    pub(in crate::engine) fn put_off(
        &self,
        turn: &mut Turn,
        call: &Arc<Call>,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        match record::mode() {
            Mode::State => initialise(turn, call, inputs, outputs),
            _ => self.append(call, inputs, outputs),
        }
    }

    /// Records an operation.
    pub(in crate::engine) fn append(
        &self,
        call: &Arc<Call>,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        self.check_device()?;
        self.make_room(call)?;
        let generator = call.effects.generator;
        let moved = record::with(|r| {
            let mut moved = r.recording.moved(inputs, generator);
            moved.extend(r.recording.moved(outputs, None));
            moved
        });
        advance_all(moved.unwrap_or_default())?;
        let unwritten = record::with(|r| r.recording.unwritten(inputs, outputs));
        zero_all(unwritten.unwrap_or_default())?;
        call.raise_versions(inputs, outputs);
        record::with(|r| {
            r.recording.push(call, inputs, outputs, r.origin());
            if let Some(state) = generator {
                r.draw(&inputs[state], draws(&call.kind, inputs));
            }
        });
        Ok(())
    }

    /// Refuses an operation on tensors of another device than the step is recorded for.
    fn check_device(&self) -> Result<()> {
        let other = record::with(|r| {
            let device = r.recording.device();
            (device.id() != self.device().id()).then(|| device.clone())
        });
        let message =
            |device| format!("got tensors on {:?} in a step on {device:?}", self.device());
        match other.flatten() {
            Some(device) => Err(Error::device("record", message(device))),
            None => Ok(()),
        }
    }

    /// Refuses an operation if there is no memory to record it.
    fn make_room(&self, call: &Call) -> Result<()> {
        let views = call.inputs.len() + call.outputs.len();
        let room = record::with(|r| r.recording.queue.make_room(views));
        let refusal = |bytes| self.device().pool().out_of_memory("record", bytes);
        room.unwrap_or(Ok(())).map_err(refusal)
    }

    /// A tensor with the elements of a host array, which is borrowed only for this call: while this
    /// thread records, a copy that becomes part of the recording.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn bake(&self, _turn: &Turn, array: View, bytes: &[u8]) -> Result<View> {
        if record::mode() != Mode::Record {
            return Ok(array);
        }
        let view = View::of(self.device(), &array.meta);
        view.block.write(bytes)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        record::with(|r| r.recording.bake(&view.block, hasher.finish()));
        Ok(view)
    }

    /// Prepares a draw. A recorded one starts where earlier recorded draws ended. An initialiser of
    /// state draws from a copy of the generator, which itself advances at once.
    pub(in crate::engine) fn draw<'a>(
        &self,
        turn: &mut Turn,
        kind: &'a Kind,
        state: usize,
        inputs: &mut Inputs,
    ) -> Result<Cow<'a, Kind>> {
        match record::mode() {
            Mode::Eager => {}
            Mode::Record => {
                let drawn = record::with(|r| r.recording.drawn(&inputs[state])).unwrap_or(0);
                let moved = (drawn > 0).then(|| kind.family().drawing_from(drawn)).flatten();
                return Ok(moved.map_or(Cow::Borrowed(kind), Cow::Owned));
            }
            Mode::State => inputs[state] = self.draw_apart(turn, kind, state, inputs)?,
        }
        Ok(Cow::Borrowed(kind))
    }

    fn draw_apart(
        &self,
        turn: &mut Turn,
        kind: &Kind,
        state: usize,
        inputs: &Inputs,
    ) -> Result<View> {
        let (generator, by) = (&inputs[state], draws(kind, inputs));
        if let Some(copied) = self.draw_seeded(generator, by)? {
            return Ok(copied);
        }
        record::with(|r| r.recording.draw_state(generator));
        let copied = View::of(self.device(), &generator.meta);
        let op = turn.0.get(&copy::Copy.into(), std::slice::from_ref(generator), None)?;
        op.execute(std::slice::from_ref(generator), std::slice::from_ref(&copied))?;
        let advance = Kind::from(random::Advance { by });
        let op = turn.0.get(&advance, std::slice::from_ref(generator), None)?;
        op.execute(std::slice::from_ref(generator), &[])?;
        Ok(copied)
    }
}

/// Ends a recording on this thread: advances its generators, and zeroes tensors never written.
///
/// # Errors
/// [`crate::Error::Graph`] if this thread is not recording.
pub fn end_recording(results: &[View]) -> Result<Recording> {
    let finish = || {
        let moved = record::with(|r| r.recording.all_moved()).unwrap_or_default();
        advance_all(moved)?;
        let unwritten = record::with(|r| r.recording.never_written());
        zero_all(unwritten.unwrap_or_default())
    };
    let done = finish();
    let mut recording = record::end()?;
    done?;
    recording.answer(results);
    Ok(recording)
}

/// Records that generators advance.
fn advance_all(moved: Draws) -> Result<()> {
    for (state, by) in moved {
        let state = [state];
        let call = Arc::new(Call::new(&random::Advance { by }.into(), &state[..])?);
        record::with(|r| r.recording.push(&call, &state, &[], r.origin()));
    }
    Ok(())
}

/// Records zeroing of blocks, because memory that was never written reads as zero.
fn zero_all(blocks: Blocks) -> Result<()> {
    for block in blocks {
        let bytes = block.bytes();
        let (value, shape) = (Scalar::Int(0), [bytes].into());
        let fill = copy::Fill { value, shape, dtype: DType::UInt8 }.into();
        let call = Arc::new(Call::new(&fill, <&[View]>::default())?);
        let view = View { block, meta: call.outputs[0].clone(), offset: 0 };
        record::with(|r| r.recording.push(&call, &[], &[view], r.origin()));
    }
    Ok(())
}

/// Defers an operation that creates state until it is needed; runs it at once if that is
/// impossible.
fn initialise(turn: &mut Turn, call: &Arc<Call>, inputs: &[View], outputs: &[View]) -> Result<()> {
    let generator = call.effects.generator;
    let taken = record::with(|r: &mut Recorder| {
        let waits = r.state.takes(inputs, outputs, generator);
        if waits {
            r.state.push(call, inputs, outputs);
        }
        waits
    });
    if taken == Some(true) {
        call.raise_versions(inputs, outputs);
        return Ok(());
    }
    record::settle();
    turn.0.of(call)?.execute(inputs, outputs)
}

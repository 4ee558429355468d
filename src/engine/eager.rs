//! Submitting operations, which run at once unless the thread is recording.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::record::{self, Mode};
use super::transfer::{is_transfer, transfer};
use super::{Engine, Inputs, Outputs, Stream, Turn, checks};
use crate::error::{self, Result};
use crate::graph::{Kernels, Queue};
use crate::kernels::Prepared;
use crate::ops::call::Parts;
use crate::ops::{Call, Kind, Meta, View, copy, random};

impl Engine {
    /// Runs an operation into new tensors, which do not include the inputs that it updates. While
    /// this thread is recording, the operation is only appended to the recording.
    ///
    /// # Errors
    /// Any error of [`crate::ops::Family::infer`] or of the kernel; [`crate::Error::OutOfMemory`].
    /// Nothing is written unless the kernel itself fails.
    pub fn submit(&self, mut turn: Turn, kind: &Kind, mut inputs: Inputs) -> Result<Outputs> {
        if kind.family().effects().host {
            drop(turn); // user code may itself submit operations
            return guarded(kind, || self.on_host(kind, &inputs));
        }
        let made = guarded(kind, || self.fresh(&mut turn, kind, &mut inputs));
        // Before the inputs: dropping the last view of another library's memory releases it.
        drop(turn);
        made
    }

    /// [`Engine::submit`] if the operation is prepared and so short that releasing and retaking the
    /// GIL would take longer than running it; otherwise does nothing. Keeps the GIL.
    pub fn submit_if_short(
        &self,
        mut turn: Turn,
        kind: &Kind,
        inputs: &mut Inputs,
    ) -> Option<Result<Outputs>> {
        if record::mode() != Mode::Eager {
            return None;
        }
        let run = || {
            self.complete(&mut turn, kind, inputs)?;
            let Some(op) = turn.0.find_short(kind, inputs) else { return Ok(None) };
            let outputs = self.outputs(op);
            op.execute(inputs, &outputs)?;
            self.advance(&mut turn, kind, inputs)?;
            Ok(Some(outputs))
        };
        let made = guarded(kind, run).transpose();
        drop(turn);
        made
    }

    /// Runs an operation into given tensors, which may overlap its inputs; if they overlap each
    /// other, the later ones win. An input that is updated is its own output. A caller that holds
    /// the GIL leaves transfers ([`is_transfer`]) to others, since they wait for two devices.
    ///
    /// # Errors
    /// As [`Engine::submit`]; [`crate::Error::Shape`] or [`crate::Error::DType`] if an output does
    /// not fit.
    pub fn submit_into(
        &self,
        mut turn: Turn,
        kind: &Kind,
        mut inputs: Inputs,
        outputs: &[View],
    ) -> Result<()> {
        if kind.family().effects().host {
            drop(turn);
            return guarded(kind, || self.on_host_into(kind, &inputs, outputs));
        }
        if is_transfer(kind, &inputs, outputs) {
            drop(turn); // each device has its own
            return guarded(kind, || transfer(kind, &inputs[0], &outputs[0]));
        }
        let done = guarded(kind, || self.write(&mut turn, kind, &mut inputs, outputs));
        drop(turn);
        done
    }

    pub(super) fn fresh(
        &self,
        turn: &mut Turn,
        kind: &Kind,
        inputs: &mut Inputs,
    ) -> Result<Outputs> {
        let kind = &*self.complete(turn, kind, inputs)?;
        if record::mode() != Mode::Eager {
            let call = Arc::new(Call::new(kind, &inputs[..])?);
            let outputs = self.outputs(&call);
            self.put_off(turn, &call, inputs, &outputs)?;
            return Ok(outputs);
        }
        let op = turn.0.get(kind, inputs, None)?;
        let outputs = self.outputs(op);
        op.execute(inputs, &outputs)?;
        self.advance(turn, kind, inputs)?;
        Ok(outputs)
    }

    fn write(
        &self,
        turn: &mut Turn,
        kind: &Kind,
        inputs: &mut Inputs,
        outputs: &[View],
    ) -> Result<()> {
        let (family, kind) = (kind.family(), &*self.complete(turn, kind, inputs)?);
        checks::device(family, self.device(), outputs)?;
        let is_eager = record::mode() == Mode::Eager;
        let op = is_eager.then(|| turn.0.get(kind, inputs, None).cloned()).transpose()?;
        let call = match &op {
            Some(op) => op.call().clone(),
            None => Arc::new(Call::new(kind, &inputs[..])?),
        };
        checks::outputs(&call, family.name(), inputs, outputs)?;
        let written = without_state(&call, outputs);
        if checks::runs_apart(&call, family, inputs, outputs) {
            let made = self.fresh(turn, kind, inputs)?;
            return self.copy(turn, &made, &written);
        }
        let fits = call.outputs.iter().zip(outputs).all(|(meta, view)| *meta == view.meta);
        let given = (!fits).then_some(outputs);
        if let Some(op) = op {
            let op = if fits { op } else { turn.0.get(kind, inputs, given)?.clone() };
            self.execute_in_place(&op, kind, inputs, &written)?;
            return self.advance(turn, kind, inputs);
        }
        let parts = Parts { kind, inputs: &inputs[..], given };
        let call = if fits { call } else { Arc::new(parts.call()?) };
        self.put_off(turn, &call, inputs, &written)
    }

    /// Adds the generator's state if it was omitted, and copies inputs that overlap an updated one.
    /// Returns the operation, which in a recording starts after earlier draws.
    fn complete<'a>(
        &self,
        turn: &mut Turn,
        kind: &'a Kind,
        inputs: &mut Inputs,
    ) -> Result<Cow<'a, Kind>> {
        let (family, effects) = (kind.family(), kind.family().effects());
        checks::device(family, self.device(), inputs)?;
        if effects.generator == Some(inputs.len()) {
            inputs.push(self.rng().state(turn, Stream::Step)?.clone());
        }
        if !effects.state.is_empty() {
            for i in checks::shared_with_state(family, inputs)? {
                let copied =
                    self.fresh(turn, &copy::Copy.into(), &mut smallvec![inputs[i].clone()])?;
                inputs[i] = copied[0].clone();
            }
        }
        match effects.generator {
            Some(state) if state < inputs.len() => self.draw(turn, kind, state, inputs),
            _ => Ok(Cow::Borrowed(kind)),
        }
    }

    pub(super) fn outputs(&self, call: &Call) -> Outputs {
        let mut outputs = Outputs::new();
        for (o, meta) in call.outputs.iter().enumerate() {
            if call.state_of(o).is_none() {
                outputs.push(record::fresh(self.device(), meta));
            }
        }
        outputs
    }

    /// Runs an operation; memory that was never written still reads as zero if the kernel fails.
    fn execute_in_place(
        &self,
        op: &Prepared,
        kind: &Kind,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        let unwritten: SmallVec<[&View; 2]> =
            outputs.iter().filter(|v| !v.block.is_allocated()).collect();
        let done = guarded(kind, || op.execute(inputs, outputs));
        if done.is_err() {
            unwritten.iter().for_each(|v| v.block.clear());
        }
        done
    }

    /// Advances the generator past the numbers that the operation drew.
    fn advance(&self, turn: &mut Turn, kind: &Kind, inputs: &[View]) -> Result<()> {
        let Some(state) = kind.family().effects().generator else { return Ok(()) };
        let by = draws(kind, inputs);
        self.fresh(turn, &random::Advance { by }.into(), &mut smallvec![inputs[state].clone()])
            .map(drop)
    }

    pub(super) fn copy(&self, turn: &mut Turn, from: &[View], to: &[View]) -> Result<()> {
        let one = |(from, to): (&View, _)| {
            self.write(
                turn,
                &copy::Copy.into(),
                &mut smallvec![from.clone()],
                std::slice::from_ref(to),
            )
        };
        from.iter().zip(to).try_for_each(one)
    }

    /// Runs user code, without the turn and without caching its kernel.
    fn on_host(&self, kind: &Kind, inputs: &[View]) -> Result<Outputs> {
        checks::device(kind.family(), self.device(), inputs)?;
        let call = Call::new(kind, inputs)?;
        let outputs = self.outputs(&call);
        self.run_on_host(call, inputs, &outputs)?;
        Ok(outputs)
    }

    fn run_on_host(&self, call: Call, inputs: &[View], outputs: &[View]) -> Result<()> {
        let call = Arc::new(call);
        if record::mode() == Mode::Record {
            return self.append(&call, inputs, outputs);
        }
        record::settle(); // it may read state whose initialisers are still being collected
        let op = Prepared::new(call, self.device(), self.device().threads())?;
        op.execute(inputs, outputs)
    }

    /// Prepares the kernels of a queue's operations. Those that run user code are not cached.
    pub(super) fn prepare(&self, queue: &Queue) -> Result<Kernels> {
        let (mut turn, device) = (self.turn(), self.device());
        Kernels::of(queue, |call| match call.effects.host {
            true => Prepared::new(call.clone(), device, device.threads()).map(Arc::new),
            false => turn.0.of(call).cloned().map_err(|error| error.in_op(call.name())),
        })
    }

    fn on_host_into(&self, kind: &Kind, inputs: &[View], outputs: &[View]) -> Result<()> {
        checks::device(kind.family(), self.device(), inputs)?;
        checks::device(kind.family(), self.device(), outputs)?;
        let call = Call::new(kind, inputs)?;
        checks::outputs(&call, kind.family().name(), inputs, outputs)?;
        let made = self.outputs(&call);
        self.run_on_host(call, inputs, &made)?;
        self.copy(&mut self.turn(), &made, outputs)
    }
}

/// How many blocks of random numbers an operation draws.
pub(super) fn draws(kind: &Kind, inputs: &[View]) -> u64 {
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|v| &*v.meta).collect();
    kind.family().draws(&metas)
}

fn without_state(call: &Call, outputs: &[View]) -> Outputs {
    let is_fresh = |(o, _): &(usize, &View)| call.state_of(*o).is_none();
    outputs.iter().enumerate().filter(is_fresh).map(|(_, v)| v.clone()).collect()
}

/// Attributes an error or a panic to the operation.
fn guarded<T>(kind: &Kind, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let name = kind.family().name();
    error::guarded(name, run).map_err(|error| error.in_op(name))
}

//! An engine that is not recording: a queue of length one.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::{SmallVec, smallvec};

use super::{Engine, Inputs, Outputs, Stream, Turn};
use crate::device::pool::Piece;
use crate::device::{Account, process};
use crate::error::{Error, Result};
use crate::ops::{Effects, Io, Kind, Meta, Metas, Op, View, copy, random};
use crate::view;

impl Engine {
    /// Runs an operation into new tensors (state that it updates is answered as it was passed).
    ///
    /// # Errors
    /// What [`crate::ops::Family::infer`] or the kernel says of the inputs, or
    /// [`Error::OutOfMemory`]. Nothing is written unless the kernel itself fails.
    pub fn submit(&self, turn: Turn, kind: &Kind, inputs: Inputs) -> Result<Outputs> {
        guarded(kind, || {
            let _turn = keep_unless_host(turn, kind);
            let op = self.make(kind, inputs)?;
            self.execute(&op)?;
            Ok(op.outputs)
        })
    }

    /// Runs an operation into given tensors, which may overlap its inputs.
    ///
    /// # Errors
    /// As [`Engine::submit`]; [`Error::Shape`] or [`Error::DType`] where an output does not fit.
    pub fn submit_into(
        &self,
        turn: Turn,
        kind: &Kind,
        inputs: Inputs,
        outputs: &[View],
    ) -> Result<()> {
        guarded(kind, || {
            let _turn = keep_unless_host(turn, kind);
            let mut op = self.make(kind, inputs)?;
            check_outputs(&op, outputs)?;
            if (0..outputs.len()).any(|o| runs_apart(&op, o, &outputs[o])) {
                self.execute(&op)?;
                return self.copy_outputs(&op.outputs, outputs);
            }
            op.outputs = outputs.iter().cloned().collect();
            self.execute(&op)
        })
    }

    /// Infers and checks an operation, and makes the tensors that it writes.
    fn make(&self, kind: &Kind, mut inputs: Inputs) -> Result<Op> {
        let family = kind.family();
        process::check(family.name())?;
        let effects = family.effects();
        if effects.generator == Some(inputs.len()) {
            inputs.push(self.rng().state(Stream::Step).clone());
        }
        self.check_device(kind, &inputs)?;
        let metas = family.infer(&refs(&inputs))?;
        let outputs = self.outputs(effects, &inputs, metas);
        Ok(Op { kind: kind.clone(), inputs, outputs })
    }

    fn outputs(&self, effects: Effects, inputs: &[View], metas: Metas) -> Outputs {
        let state = |o: usize| effects.state.iter().find(|pair| pair.1 == o).map(|pair| pair.0);
        let output = |(o, meta)| match state(o) {
            Some(i) => inputs[i].clone(),
            None => View::new(self.device(), meta),
        };
        metas.into_iter().enumerate().map(output).collect()
    }

    fn check_device(&self, kind: &Kind, views: &[View]) -> Result<()> {
        let same = views.iter().all(|v| v.block.device().id() == self.device().id());
        let message = || format!("all tensors must be on {:?}", self.device());
        crate::ensure!(same, Error::Device { op: kind.family().name().into(), message: message() });
        Ok(())
    }

    fn execute(&self, op: &Op) -> Result<()> {
        let kernel = self.kernels.get(op)?;
        let inputs: SmallVec<[*const u8; 4]> =
            op.inputs.iter().map(|v| Ok(v.address(false)?.cast_const())).collect::<Result<_>>()?;
        let outputs: SmallVec<[*mut u8; 2]> =
            op.outputs.iter().map(|v| v.address(true)).collect::<Result<_>>()?;
        let scratch = self.scratch(kernel.scratch())?;
        let place = scratch.as_ref().map_or(std::ptr::null_mut(), |s| s.pointer().as_ptr());
        // SAFETY: the addresses are those of live views with the metas that the kernel was
        // prepared for; `runs_apart` keeps overlapping tensors away.
        let status = kernel.run(&unsafe { Io::new(&inputs, &outputs, place) });
        scratch.into_iter().for_each(|s| self.device().pool().give(s, Account::Scratch));
        op.outputs.iter().for_each(|v| v.block.touch());
        status?;
        self.advance(op)
    }

    /// Moves the generator past the numbers that `op` read.
    fn advance(&self, op: &Op) -> Result<()> {
        let family = op.kind.family();
        let Some(state) = family.effects().generator else { return Ok(()) };
        let by = family.draws(&refs(&op.inputs));
        self.execute(
            &self.make(&random::Advance { by }.into(), smallvec![op.inputs[state].clone()])?,
        )
    }

    fn copy_outputs(&self, from: &[View], to: &[View]) -> Result<()> {
        for (from, to) in from.iter().zip(to).filter(|(from, to)| !from.is_same(to)) {
            let mut op = self.make(&copy::Copy.into(), smallvec![from.clone()])?;
            op.outputs = std::iter::once(to.clone()).collect();
            self.execute(&op)?;
        }
        Ok(())
    }

    fn scratch(&self, bytes: usize) -> Result<Option<Piece>> {
        let take = || self.device().pool().take(bytes, Account::Scratch, false);
        (bytes > 0).then(take).transpose()
    }
}

/// A panic is a bug of ours, but never the end of the user's process.
fn guarded<T>(kind: &Kind, run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(Error::panic("", &*panic)))
        .map_err(|error| error.in_op(kind.family().name()))
}

/// User code on the host may itself submit operations, so it runs without the turn.
fn keep_unless_host<'a>(turn: Turn<'a>, kind: &Kind) -> Option<Turn<'a>> {
    (!kind.family().effects().host).then_some(turn)
}

fn check_outputs(op: &Op, outputs: &[View]) -> Result<()> {
    let name = op.kind.family().name();
    let (got, want) = (outputs.len(), op.outputs.len());
    crate::ensure!(got == want, Error::Arity { op: name.into(), got, want: want.to_string() });
    for (made, given) in op.outputs.iter().zip(outputs) {
        check_output(name, &made.meta, given)?;
        crate::ensure!(
            std::sync::Arc::ptr_eq(made.block.device(), given.block.device()),
            Error::Device { op: name.into(), message: "the output is on another device".into() }
        );
    }
    Ok(())
}

fn check_output(name: &'static str, made: &Meta, given: &View) -> Result<()> {
    let want = || format!("an output of shape {}", made.shape);
    crate::ensure!(given.meta.shape == made.shape, Error::shape(name, [&given.meta.shape], want()));
    let want = || format!("an output of dtype {}", made.dtype);
    crate::ensure!(given.meta.dtype == made.dtype, Error::dtype(name, [given.meta.dtype], want()));
    let repeats = view::repeats(&given.meta);
    crate::ensure!(
        !repeats,
        Error::value(name, "an expanded output", "each element in a place of its own")
    );
    Ok(())
}

/// Whether output `o` cannot be written where it is: it overlaps an input in a way the operation
/// does not allow, or has strides that it does not write.
fn runs_apart(op: &Op, o: usize, given: &View) -> bool {
    let family = op.kind.family();
    let strides_fit = family.any_output_strides() || given.meta == op.outputs[o].meta;
    let shares = |i: usize| {
        let is_state = family.effects().state.contains(&(i, o));
        let may = is_state || family.in_place().contains(&(i, o));
        given.overlaps(&op.inputs[i]) && !(may && given.is_same(&op.inputs[i]))
    };
    !strides_fit || (0..op.inputs.len()).any(shares)
}

fn refs(views: &[View]) -> SmallVec<[&Meta; 4]> {
    views.iter().map(|v| &*v.meta).collect()
}

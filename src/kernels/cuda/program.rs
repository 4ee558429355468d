//! What an operation runs on a GPU: kernels in turn, and what is checked before.

use std::sync::Arc;

use super::check::Check;
use super::source::Source;
use crate::device::cuda::Demand;
use crate::ops::Meta;

/// A tensor that a kernel is given, or a part of the scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An input.
    Input(usize),
    /// An input, from an offset in bytes on.
    Part(usize, isize),
    /// An output, from an offset in bytes on.
    Output(usize, isize),
    /// The scratch memory, from an offset in bytes on.
    Scratch(usize),
}

impl Place {
    /// The place so many bytes further on.
    pub fn moved(self, bytes: isize) -> Place {
        match self {
            Place::Input(i) => Place::Part(i, bytes),
            Place::Part(i, offset) => Place::Part(i, offset + bytes),
            Place::Output(o, offset) => Place::Output(o, offset + bytes),
            Place::Scratch(offset) => Place::Scratch(offset.wrapping_add_signed(bytes)),
        }
    }
}

/// A kernel, and the tensors that it is given.
#[derive(Clone, Debug)]
pub struct Step {
    /// The kernel.
    pub source: Source,
    /// Its inputs, then its outputs.
    pub places: Vec<Place>,
    /// What a library computes instead, where there is one.
    pub library: Option<Box<Library>>,
}

/// What a library computes in place of a kernel.
#[derive(Clone, Debug)]
pub struct Library {
    /// What it is asked for.
    pub demand: Demand,
    /// The tensors of the call.
    pub places: Vec<Place>,
    /// Kernels that bring tensors into the layout of the library, before and after the call. Their
    /// scratch memory is the program's.
    pub around: [Vec<Step>; 2],
}

/// The kernels of an operation.
#[derive(Clone, Default)]
pub struct Program {
    /// What runs, in order.
    pub steps: Vec<Step>,
    /// Bytes of scratch memory.
    pub scratch: usize,
    /// What must hold before anything is written.
    pub checks: Vec<Arc<Check>>,
}

impl Program {
    /// One kernel on the operation's inputs and outputs.
    pub fn one(source: Source, inputs: usize, outputs: usize) -> Program {
        let inputs = (0..inputs).map(Place::Input);
        let places: Vec<Place> = inputs.chain((0..outputs).map(|o| Place::Output(o, 0))).collect();
        Program::default().then(source, &places)
    }

    /// Adds a kernel.
    pub fn then(mut self, source: Source, places: &[Place]) -> Program {
        self.steps.push(Step { source, places: places.to_vec(), library: None });
        self
    }

    /// Adds scratch memory; where it begins.
    pub fn take(&mut self, bytes: usize) -> Place {
        let at = self.scratch;
        self.scratch += bytes.next_multiple_of(crate::device::ALIGNMENT);
        Place::Scratch(at)
    }

    /// Runs only if this holds. An input without elements is not checked.
    pub fn checked(mut self, check: Check, meta: &Meta) -> Program {
        self.checks.extend((meta.numel() > 0).then(|| Arc::new(check)));
        self
    }
}

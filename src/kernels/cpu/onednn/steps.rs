//! Kernels made of steps: reorders of tensors into the layout or type that a oneDNN primitive
//! requires, then the primitive, then a reorder of its result.
#![allow(unsafe_code)]

mod packing;

use std::sync::Arc;

use smallvec::SmallVec;

use super::layout::{Layout, Location, Tensor, describe, settled};
use super::pieces::Pieces;
use super::reorder::{reorder, reorder_in_place};
use super::sums::sums;
use crate::device::ALIGNMENT;
use crate::device::onednn::{Descriptor, Library};
use crate::error::Result;
use crate::kernels::cpu::copy;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;
use packing::Packed;

#[derive(Clone)]
enum Action {
    /// A kernel of this crate; reads the first place and writes the second.
    Ours(Arc<dyn Kernel>),
    /// oneDNN's primitives; they write the last place and read the others.
    Primitives(Arc<Pieces>),
}

#[derive(Clone)]
struct Step {
    action: Action,
    places: SmallVec<[Location; 4]>,
}

impl Step {
    fn scratch(&self) -> usize {
        match &self.action {
            Action::Ours(kernel) => kernel.scratch(),
            Action::Primitives(pieces) => pieces.scratch(),
        }
    }

    fn threads(&self) -> usize {
        match &self.action {
            Action::Ours(kernel) => kernel.threads(),
            Action::Primitives(pieces) => pieces.seats(),
        }
    }

    /// # Safety
    /// `io` is what the steps were made for, and `scratch` has [`Step::scratch`] bytes.
    unsafe fn run(&self, io: &Io, scratch: *mut u8) -> Result<()> {
        let at: SmallVec<[*mut u8; 4]> = self.places.iter().map(|p| p.address(io)).collect();
        match &self.action {
            // SAFETY: by the caller's promise.
            Action::Primitives(pieces) => unsafe { pieces.run(&at, scratch) },
            Action::Ours(kernel) => {
                let (inputs, outputs) = ([at[0].cast_const()], [at[1]]);
                // SAFETY: by the caller's promise.
                kernel.run(&unsafe { Io::new(&inputs, &outputs, scratch) })
            }
        }
    }
}

/// Steps that run in sequence.
pub struct Steps {
    library: &'static Library,
    width: Width,
    steps: Vec<Step>,
    /// Bytes of the tensors in scratch memory; each step's own scratch memory follows them.
    reserved: usize,
    packed: Option<Packed>,
}

impl Steps {
    /// The primitive, with the steps that bring its tensors into the layouts it requires and bring
    /// back its result, the last one. `None` where oneDNN has no fast reorder to its own layout.
    ///
    /// # Errors
    /// [`crate::Error::Library`], or the error of preparing a copy.
    pub fn new(
        library: &'static Library,
        pieces: Pieces,
        tensors: &[(&Tensor, Layout)],
        width: Width,
    ) -> Result<Option<Self>> {
        let mut steps = Steps { library, width, steps: Vec::new(), reserved: 0, packed: None };
        let ((result, layout), inputs) = tensors.split_last().expect("a primitive has a result");
        let mut places = SmallVec::new();
        for (tensor, layout) in inputs {
            let first = steps.steps.len();
            let Some(place) = steps.read(tensor, layout)? else { return Ok(None) };
            steps.note_packed(tensor, layout, place, first);
            places.push(place);
        }
        let direct = layout.is_that_of(result, library)?;
        let unpacking = if direct { None } else { steps.unpacking(layout, result)? };
        let fits = direct || unpacking.is_some();
        let place = if fits { result.place } else { steps.reserve(layout) };
        steps.compute(pieces, places, place);
        steps.steps.extend(unpacking);
        let done = fits || steps.write((place, layout), result)?;
        Ok(done.then_some(steps))
    }

    /// The step that brings a packed result, which is in the memory of its destination, into the
    /// layout of that. It spares the scratch memory of a second copy. `None` where the result is not
    /// packed, or takes other bytes.
    fn unpacking(&self, layout: &Layout, result: &Tensor) -> Result<Option<Step>> {
        let Layout::Packed(packed, dtype) = layout else { return Ok(None) };
        let plain = describe(self.library, &settled(&result.meta))?;
        let Some(plain) = plain.filter(|_| *dtype == result.meta.dtype) else { return Ok(None) };
        let ends = [packed.copy(self.library)?, plain];
        let pieces = reorder_in_place(self.library, ends, &result.meta, self.width)?;
        Ok(pieces.map(|pieces| Step {
            action: Action::Primitives(Arc::new(pieces)),
            places: [result.place, result.place].into_iter().collect(),
        }))
    }

    /// Adds the pieces, which read these places, and the sum of their results if they are to be
    /// added.
    fn compute(&mut self, pieces: Pieces, mut places: SmallVec<[Location; 4]>, result: Location) {
        let Some((count, bytes)) = pieces.sums() else {
            places.push(result);
            self.steps.push(Step { action: Action::Primitives(Arc::new(pieces)), places });
            return;
        };
        let parts = self.room(count * bytes);
        places.push(parts);
        self.steps.push(Step { action: Action::Primitives(Arc::new(pieces)), places });
        let kernel = sums(count, bytes, bytes / size_of::<f32>(), self.width);
        let places = [parts, result].into_iter().collect();
        self.steps.push(Step { action: Action::Ours(kernel), places });
    }

    /// The place of the tensor in this layout, after steps that bring it there.
    fn read(&mut self, tensor: &Tensor, layout: &Layout) -> Result<Option<Location>> {
        if layout.is_that_of(tensor, self.library)? {
            return Ok(Some(tensor.place));
        }
        let to = self.reserve(layout);
        let from = describe(self.library, &settled(&tensor.meta))?;
        let ends = [(from, tensor.place), (layout.describe(self.library)?, to)];
        let done = layout.dtype() == tensor.meta.dtype && self.reorder(&tensor.meta, ends)?;
        if done {
            return Ok(Some(to));
        }
        let (meta, packed) = layout.strided(tensor);
        if !packed {
            self.copy((tensor.place, &tensor.meta), (to, &meta))?;
            return Ok(Some(to));
        }
        // oneDNN does not support these strides, or converts slowly: row-major first.
        let rows = Layout::Strided(meta.clone());
        let from = rows.describe(self.library)?;
        let Some(place) = self.read(tensor, &rows)? else { return Ok(None) };
        let ends = [(from, place), (layout.describe(self.library)?, to)];
        Ok(self.reorder(&meta, ends)?.then_some(to))
    }

    /// Brings a result of this layout to its destination. False where oneDNN has no fast reorder.
    fn write(&mut self, from: (Location, &Layout), to: &Tensor) -> Result<bool> {
        let (place, layout) = from;
        let described = || layout.describe(self.library);
        let plain = describe(self.library, &settled(&to.meta))?;
        let ends = [(described()?, place), (plain, to.place)];
        let done = layout.dtype() == to.meta.dtype && self.reorder(&to.meta, ends)?;
        if done {
            return Ok(true);
        }
        let (meta, packed) = layout.strided(to);
        let mut from = place;
        if packed {
            let rows = Layout::Strided(meta.clone());
            from = self.reserve(&rows);
            let ends = [(described()?, place), (rows.describe(self.library)?, from)];
            if !self.reorder(&meta, ends)? {
                return Ok(false);
            }
        }
        self.copy((from, &meta), (to.place, &to.meta))?;
        Ok(true)
    }

    /// Reserves scratch memory for a tensor.
    fn reserve(&mut self, layout: &Layout) -> Location {
        self.room(layout.bytes(self.library))
    }

    fn room(&mut self, bytes: usize) -> Location {
        let place = Location::Scratch(self.reserved);
        self.reserved += bytes.next_multiple_of(ALIGNMENT);
        place
    }

    /// Adds oneDNN's reorder of a tensor of this shape and type between two layouts. False where it
    /// has no fast one.
    fn reorder(
        &mut self,
        meta: &Meta,
        [(from, source), (to, target)]: [(Option<Descriptor>, Location); 2],
    ) -> Result<bool> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(false) };
        let pieces = reorder(self.library, [from, to], meta, self.width)?;
        let Some(pieces) = pieces else { return Ok(false) };
        let places = [source, target].into_iter().collect();
        self.steps.push(Step { action: Action::Primitives(Arc::new(pieces)), places });
        Ok(true)
    }

    /// Adds this crate's copy kernel, which supports any strides, and converts between types, which
    /// oneDNN does an element at a time on most processors.
    fn copy(&mut self, from: (Location, &Meta), to: (Location, &Meta)) -> Result<()> {
        let kernel = copy::cast(from.1, to.1, self.width);
        let places = [from.0, to.0].into_iter().collect();
        self.steps.push(Step { action: Action::Ours(kernel), places });
        Ok(())
    }

    /// The name of the implementation of the main primitive: the one that reads several tensors.
    pub fn implementation(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match &step.action {
            Action::Primitives(pieces) if step.places.len() > 2 => Some(pieces.implementation()),
            _ => None,
        })
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl std::fmt::Display for Steps {
    /// The implementations' names in execution order.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |step: &Step| match &step.action {
            Action::Primitives(pieces) => pieces.implementation().to_owned(),
            Action::Ours(_) => "copy".into(),
        };
        f.write_str(&self.steps.iter().map(name).collect::<Vec<_>>().join(", "))
    }
}

impl Kernel for Steps {
    fn scratch(&self) -> usize {
        self.reserved + self.steps.iter().map(Step::scratch).max().unwrap_or(0)
    }

    fn threads(&self) -> usize {
        self.steps.iter().map(Step::threads).max().unwrap_or(1)
    }

    fn run(&self, io: &Io) -> Result<()> {
        let scratch = io.scratch::<u8>().wrapping_add(self.reserved);
        // SAFETY: `io` is what the kernel was prepared for, with as much scratch memory as
        // requested.
        self.steps.iter().try_for_each(|step| unsafe { step.run(io, scratch) })
    }
}

//! Kernels made of steps: tensors brought into the layout or type that a oneDNN primitive wants,
//! then the primitive, then its result brought back.
#![allow(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::ALIGNMENT;
use crate::device::onednn::{self, Descriptor, Library, Primitive};
use crate::error::Result;
use crate::ops::{Family, Io, Kernel, Meta, Width, copy};

/// Where a tensor of a step is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An input of the operation.
    Input(usize),
    /// An output of the operation.
    Output(usize),
    /// Work space, this many bytes from its start.
    Scratch(usize),
}

impl Place {
    fn address(self, io: &Io) -> *mut u8 {
        match self {
            Place::Input(i) => io.input::<u8>(i).cast_mut(),
            Place::Output(o) => io.output(o),
            Place::Scratch(at) => io.scratch::<u8>().wrapping_add(at),
        }
    }
}

/// A tensor of a step.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Where its first element is.
    pub place: Place,
    /// How it lies.
    pub meta: Meta,
}

enum Action {
    /// Reads the first place and writes the second.
    Ours(Arc<dyn Kernel>),
    /// Writes the last place and reads the others.
    Primitive(Primitive),
}

struct Step {
    action: Action,
    places: SmallVec<[Place; 4]>,
}

impl Step {
    fn scratch(&self) -> usize {
        match &self.action {
            Action::Ours(kernel) => kernel.scratch(),
            Action::Primitive(primitive) => primitive.scratch(),
        }
    }

    /// # Safety
    /// `io` is what the steps were made for, and `scratch` has [`Step::scratch`] bytes.
    unsafe fn run(&self, io: &Io, scratch: *mut u8) -> Result<()> {
        let at: SmallVec<[*mut u8; 4]> = self.places.iter().map(|p| p.address(io)).collect();
        match &self.action {
            // SAFETY: by the caller's promise.
            Action::Primitive(primitive) => unsafe { primitive.run(&at, scratch) },
            Action::Ours(kernel) => {
                let (inputs, outputs) = ([at[0].cast_const()], [at[1]]);
                // SAFETY: by the caller's promise.
                kernel.run(&unsafe { Io::new(&inputs, &outputs, scratch) })
            }
        }
    }
}

/// Steps that run one after the other.
pub struct Steps {
    library: &'static Library,
    width: Width,
    steps: Vec<Step>,
    /// Bytes of the tensors in work space; each step's own work space comes behind them.
    reserved: usize,
}

impl Steps {
    /// No steps yet.
    pub fn new(library: &'static Library, width: Width) -> Self {
        Steps { library, width, steps: Vec::new(), reserved: 0 }
    }

    /// Room for a tensor in work space.
    pub fn reserve(&mut self, bytes: usize) -> Place {
        let place = Place::Scratch(self.reserved);
        self.reserved += bytes.next_multiple_of(ALIGNMENT);
        place
    }

    /// A tensor of layout `to` in work space, not yet written.
    pub fn fresh(&mut self, to: Meta) -> Tensor {
        Tensor { place: self.reserve(to.bytes()), meta: to }
    }

    /// Adds a copy between tensors of one shape, whatever their types and strides.
    ///
    /// # Errors
    /// What preparing the copy says.
    pub fn copy(&mut self, from: &Tensor, to: &Tensor) -> Result<()> {
        let kernel = copy_kernel(&from.meta, &to.meta, self.width)?;
        let places = [from.place, to.place].into_iter().collect();
        self.steps.push(Step { action: Action::Ours(kernel), places });
        Ok(())
    }

    /// The same tensor in another layout or type, copied into work space.
    ///
    /// # Errors
    /// What preparing the copy says.
    pub fn gather(&mut self, from: &Tensor, to: Meta) -> Result<Tensor> {
        let to = self.fresh(to);
        self.copy(from, &to)?;
        Ok(to)
    }

    /// Adds a primitive; the last place is the one that it writes.
    pub fn primitive(&mut self, primitive: Primitive, places: &[Place]) {
        let places = places.iter().copied().collect();
        self.steps.push(Step { action: Action::Primitive(primitive), places });
    }

    /// Adds a copy between layouts only oneDNN knows. False where it has no fast one.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn reorder(&mut self, from: (Descriptor, Place), to: (Descriptor, Place)) -> Result<bool> {
        let made = onednn::reorder(self.library, from.0, to.0, self.width.0)?;
        let found = made.is_some();
        made.into_iter().for_each(|primitive| self.primitive(primitive, &[from.1, to.1]));
        Ok(found)
    }

    /// The library.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// How many threads each step uses.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Kernel for Steps {
    fn scratch(&self) -> usize {
        self.reserved + self.steps.iter().map(Step::scratch).max().unwrap_or(0)
    }

    fn run(&self, io: &Io) -> Result<()> {
        let scratch = io.scratch::<u8>().wrapping_add(self.reserved);
        // SAFETY: `io` is what the kernel was prepared for, its work space as large as asked for.
        self.steps.iter().try_for_each(|step| unsafe { step.run(io, scratch) })
    }
}

fn copy_kernel(from: &Meta, to: &Meta, width: Width) -> Result<Arc<dyn Kernel>> {
    copy::Copy.cpu(&[from, to], width)
}

/// A descriptor of the tensor as it lies. `None` where oneDNN takes no such strides: negative
/// ones, or elements that share a place. Strides that are never taken (extents of 1) are passed on.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn describe(library: &Library, meta: &Meta) -> Result<Option<Descriptor>> {
    if !is_disjoint(meta) {
        return Ok(None);
    }
    let dims: SmallVec<[i64; 6]> = meta.shape.iter().map(|&e| e as i64).collect();
    let strides: SmallVec<[i64; 6]> = meta.strides.iter().map(|&s| s as i64).collect();
    Descriptor::strided(library, meta.dtype, &dims, &strides).map(Some)
}

/// Whether strides are positive and nest: each steps over all that the smaller ones reach.
pub fn is_disjoint(meta: &Meta) -> bool {
    let moves = meta.shape.iter().zip(&meta.strides).filter(|(e, _)| **e != 1);
    let mut moves: SmallVec<[(isize, usize); 6]> = moves.map(|(&e, &s)| (s, e)).collect();
    moves.sort_unstable();
    let mut reach = 1;
    moves.iter().all(|&(stride, extent)| {
        let fits = stride >= reach;
        reach = stride.saturating_mul(extent as isize);
        fits
    })
}

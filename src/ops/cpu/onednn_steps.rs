//! Kernels made of steps: tensors brought into the layout or type that a oneDNN primitive wants,
//! then the primitive, then its result brought back.
#![allow(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::ALIGNMENT;
use crate::device::onednn::{self, Descriptor, Library, Primitive};
use crate::dtype::DType;
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

/// How a primitive wants a tensor.
pub enum Layout {
    /// With these strides and of this type.
    Strided(Meta),
    /// As only oneDNN knows.
    Packed(Descriptor),
}

impl Layout {
    fn bytes(&self, library: &Library) -> usize {
        match self {
            Layout::Strided(meta) => meta.bytes(),
            Layout::Packed(descriptor) => descriptor.bytes(library),
        }
    }

    fn is_that_of(&self, tensor: &Tensor, library: &Library) -> Result<bool> {
        match self {
            Layout::Strided(meta) => Ok(is_same(meta, &tensor.meta)),
            Layout::Packed(descriptor) => {
                let plain = describe(library, &settled(&tensor.meta))?;
                Ok(plain.is_some_and(|plain| plain.equals(library, descriptor)))
            }
        }
    }

    fn describe(&self, library: &Library) -> Result<Option<Descriptor>> {
        match self {
            Layout::Strided(meta) => describe(library, &settled(meta)),
            Layout::Packed(descriptor) => descriptor.copy(library).map(Some),
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
    /// The primitive, with what brings its tensors into the layouts that it wants and its
    /// result, the last one, back. `None` where such a copy would be slow.
    ///
    /// # Errors
    /// [`crate::Error::Library`], or what preparing a copy says.
    pub fn new(
        library: &'static Library,
        primitive: Primitive,
        tensors: &[(&Tensor, Layout)],
        width: Width,
    ) -> Result<Option<Self>> {
        let mut steps = Steps { library, width, steps: Vec::new(), reserved: 0 };
        let ((result, layout), inputs) = tensors.split_last().expect("a primitive has a result");
        let mut places = SmallVec::new();
        for (tensor, layout) in inputs {
            let Some(place) = steps.read(tensor, layout)? else { return Ok(None) };
            places.push(place);
        }
        let direct = layout.is_that_of(result, library)?;
        let place = if direct { result.place } else { steps.reserve(layout) };
        places.push(place);
        steps.steps.push(Step { action: Action::Primitive(primitive), places });
        let done = direct || steps.copy_back((place, layout), result)?;
        Ok(done.then_some(steps))
    }

    /// Where the tensor is in this layout.
    fn read(&mut self, tensor: &Tensor, layout: &Layout) -> Result<Option<Place>> {
        if layout.is_that_of(tensor, self.library)? {
            return Ok(Some(tensor.place));
        }
        let to = self.reserve(layout);
        let from = describe(self.library, &settled(&tensor.meta))?;
        if self.reorder((from, tensor.place), (layout.describe(self.library)?, to))? {
            return Ok(Some(to));
        }
        match layout {
            Layout::Strided(meta) => {
                Ok(self.copy((tensor.place, &tensor.meta), (to, meta))?.then_some(to))
            }
            // Strides that oneDNN does not take: row-major first.
            Layout::Packed(_) if !tensor.meta.is_contiguous() => {
                let meta = Meta::new(tensor.meta.dtype, tensor.meta.shape.clone());
                let rows = Layout::Strided(meta.clone());
                let Some(place) = self.read(tensor, &rows)? else { return Ok(None) };
                let from = (describe(self.library, &settled(&meta))?, place);
                let done = self.reorder(from, (layout.describe(self.library)?, to))?;
                Ok(done.then_some(to))
            }
            Layout::Packed(_) => Ok(None),
        }
    }

    fn copy_back(&mut self, from: (Place, &Layout), to: &Tensor) -> Result<bool> {
        let (place, layout) = from;
        let described = layout.describe(self.library)?;
        let plain = describe(self.library, &settled(&to.meta))?;
        if self.reorder((described, place), (plain, to.place))? {
            return Ok(true);
        }
        match layout {
            Layout::Strided(meta) => self.copy((place, meta), (to.place, &to.meta)),
            Layout::Packed(_) => Ok(false),
        }
    }

    /// Room for a tensor in work space.
    fn reserve(&mut self, layout: &Layout) -> Place {
        let place = Place::Scratch(self.reserved);
        self.reserved += layout.bytes(self.library).next_multiple_of(ALIGNMENT);
        place
    }

    /// Adds oneDNN's copy between two layouts. False where it has no fast one.
    fn reorder(
        &mut self,
        (from, source): (Option<Descriptor>, Place),
        (to, target): (Option<Descriptor>, Place),
    ) -> Result<bool> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(false) };
        let made = onednn::reorder(self.library, from, to, self.width.0)?;
        let Some(primitive) = made else { return Ok(false) };
        let places = [source, target].into_iter().collect();
        self.steps.push(Step { action: Action::Primitive(primitive), places });
        Ok(true)
    }

    /// Adds our own copy between any strides. False where the types differ.
    fn copy(&mut self, from: (Place, &Meta), to: (Place, &Meta)) -> Result<bool> {
        if from.1.dtype != to.1.dtype {
            return Ok(false);
        }
        let kernel = copy::Copy.cpu(&[from.1, to.1], self.width)?;
        let places = [from.0, to.0].into_iter().collect();
        self.steps.push(Step { action: Action::Ours(kernel), places });
        Ok(true)
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

impl std::fmt::Display for Steps {
    /// The implementations' names in the order in which they run.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |step: &Step| match &step.action {
            Action::Primitive(primitive) => primitive.implementation().to_owned(),
            Action::Ours(_) => "copy".into(),
        };
        f.write_str(&self.steps.iter().map(name).collect::<Vec<_>>().join(", "))
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

/// The same with strides that are never taken set beyond all others.
pub fn settled(meta: &Meta) -> Meta {
    let mut settled = meta.clone();
    let reach = meta.span().end;
    for d in (0..meta.shape.rank()).filter(|&d| meta.shape[d] == 1) {
        settled.strides[d] = reach;
    }
    settled
}

/// Whether both say the same of every element (strides that are never taken may differ).
pub fn is_same(a: &Meta, b: &Meta) -> bool {
    let same = |d: usize| a.shape[d] == 1 || a.strides[d] == b.strides[d];
    a.dtype == b.dtype && a.shape == b.shape && (0..a.shape.rank()).all(same)
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

/// The types to compute in, best first: half types are widened where oneDNN is not fast in them.
pub fn compute_types(dtype: DType) -> &'static [DType] {
    match dtype {
        DType::Float32 => &[DType::Float32],
        DType::Float16 => &[DType::Float16, DType::Float32],
        DType::BFloat16 => &[DType::BFloat16, DType::Float32],
        _ => &[],
    }
}

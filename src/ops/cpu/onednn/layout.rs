//! Where the tensors of a primitive are, and how it wants them to lie.

use smallvec::SmallVec;

use crate::device::onednn::{Descriptor, Library};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Io, Meta};

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
    /// Its address in a run.
    pub fn address(self, io: &Io) -> *mut u8 {
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

/// How a primitive wants a tensor.
pub enum Layout {
    /// With these strides and of this type.
    Strided(Meta),
    /// As only oneDNN knows, of this type.
    Packed(Descriptor, DType),
}

impl Layout {
    /// Bytes of a tensor of this layout.
    pub fn bytes(&self, library: &Library) -> usize {
        match self {
            Layout::Strided(meta) => meta.bytes(),
            Layout::Packed(descriptor, _) => descriptor.bytes(library),
        }
    }

    /// Whether the tensor lies so already.
    pub fn is_that_of(&self, tensor: &Tensor, library: &Library) -> Result<bool> {
        match self {
            Layout::Strided(meta) => Ok(is_same(meta, &tensor.meta)),
            Layout::Packed(descriptor, _) => {
                let plain = describe(library, &settled(&tensor.meta))?;
                Ok(plain.is_some_and(|plain| plain.equals(library, descriptor)))
            }
        }
    }

    /// The layout itself, or (then true) row-major of the same type where it is packed.
    pub fn strided(&self, tensor: &Tensor) -> (Meta, bool) {
        match self {
            Layout::Strided(meta) => (meta.clone(), false),
            Layout::Packed(_, dtype) => (Meta::new(*dtype, tensor.meta.shape.clone()), true),
        }
    }

    /// In oneDNN's terms, if it has any for it.
    pub fn describe(&self, library: &Library) -> Result<Option<Descriptor>> {
        match self {
            Layout::Strided(meta) => describe(library, &settled(meta)),
            Layout::Packed(descriptor, _) => descriptor.copy(library).map(Some),
        }
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

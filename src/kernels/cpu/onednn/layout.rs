//! The places of a primitive's tensors, and the layouts it requires.

use smallvec::SmallVec;

use crate::device::onednn::{Descriptor, Library};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Io;
use crate::ops::Meta;

/// The place of a step's tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// An input of the operation.
    Input(usize),
    /// An output of the operation.
    Output(usize),
    /// Scratch memory, this many bytes from its start.
    Scratch(usize),
}

impl Location {
    /// Its address during a run.
    pub fn address(self, io: &Io) -> *mut u8 {
        match self {
            Location::Input(i) => io.input::<u8>(i).cast_mut(),
            Location::Output(o) => io.output(o),
            Location::Scratch(at) => io.scratch::<u8>().wrapping_add(at),
        }
    }
}

/// A tensor of a step.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The place of its first element.
    pub place: Location,
    /// Its dtype, shape and strides.
    pub meta: Meta,
}

/// The layout a primitive requires for a tensor.
pub enum Layout {
    /// With the strides and dtype of this meta.
    Strided(Meta),
    /// Opaque to all but oneDNN, with elements of this dtype.
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

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            Layout::Strided(meta) => meta.dtype,
            Layout::Packed(_, dtype) => *dtype,
        }
    }

    /// Whether the tensor already has this layout.
    pub fn is_that_of(&self, tensor: &Tensor, library: &Library) -> Result<bool> {
        match self {
            Layout::Strided(meta) => Ok(is_same(meta, &tensor.meta)),
            Layout::Packed(descriptor, _) => {
                let plain = describe(library, &settled(&tensor.meta))?;
                Ok(plain.is_some_and(|plain| plain.equals(library, descriptor)))
            }
        }
    }

    /// The layout itself, or, with true, the row-major layout of the same type if it is packed.
    pub fn strided(&self, tensor: &Tensor) -> (Meta, bool) {
        match self {
            Layout::Strided(meta) => (meta.clone(), false),
            Layout::Packed(_, dtype) => (Meta::new(*dtype, tensor.meta.shape.clone()), true),
        }
    }

    /// The layout as a oneDNN descriptor, if possible.
    pub fn describe(&self, library: &Library) -> Result<Option<Descriptor>> {
        match self {
            Layout::Strided(meta) => describe(library, &settled(meta)),
            Layout::Packed(descriptor, _) => descriptor.copy(library).map(Some),
        }
    }
}

/// A descriptor of the tensor with its strides. `None` where oneDNN does not support the strides:
/// negative ones, or elements that overlap. Unused strides (extents of 1) are passed on.
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

/// The same with unused strides replaced by one larger than all others.
pub fn settled(meta: &Meta) -> Meta {
    let mut settled = meta.clone();
    let reach = meta.span().end;
    for d in (0..meta.shape.rank()).filter(|&d| meta.shape[d] == 1) {
        settled.strides[d] = reach;
    }
    settled
}

/// Whether both describe the same elements (unused strides may differ).
pub fn is_same(a: &Meta, b: &Meta) -> bool {
    let same = |d: usize| a.shape[d] == 1 || a.strides[d] == b.strides[d];
    a.dtype == b.dtype && a.shape == b.shape && (0..a.shape.rank()).all(same)
}

/// Whether strides are positive and nest: each steps past the span of all smaller ones.
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

/// The types to compute in, best first: half types are widened where oneDNN is slow in them.
pub fn compute_types(dtype: DType) -> &'static [DType] {
    match dtype {
        DType::Float32 => &[DType::Float32],
        DType::Float16 => &[DType::Float16, DType::Float32],
        DType::BFloat16 => &[DType::BFloat16, DType::Float32],
        _ => &[],
    }
}

//! Memory descriptors: the layout of a tensor in oneDNN's terms.

use std::ffi::c_int;

use super::api::{self, Raw, query};
use super::library::{Library, Owned};
use crate::dtype::DType;
use crate::error::Result;

/// Whether the CPU engine supports the type.
pub fn is_supported(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::BFloat16)
}

fn code(dtype: DType) -> Result<c_int> {
    match dtype {
        DType::Float16 => Ok(1),
        DType::BFloat16 => Ok(2),
        DType::Float32 => Ok(3),
        other => Err(crate::Error::dtype("onednn", [other], "float16, bfloat16 or float32")),
    }
}

/// A memory descriptor.
pub struct Descriptor(Owned);

impl Descriptor {
    /// A tensor with these strides in elements. Strides of 0 repeat elements; negative ones and
    /// overlaps are refused.
    ///
    /// # Errors
    /// [`crate::Error::Library`] for strides that oneDNN does not accept; [`crate::Error::DType`]
    /// for types other than those of [`is_supported`].
    pub fn strided(library: &Library, dtype: DType, dims: &[i64], strides: &[i64]) -> Result<Self> {
        assert_eq!(dims.len(), strides.len());
        let (f, rank, code) = (&library.functions, rank(dims), code(dtype)?);
        Self::new(library, "dnnl_memory_desc_create_with_strides", |raw| {
            let (dims, strides) = (dims.as_ptr(), strides.as_ptr());
            // SAFETY: both arrays have `rank` entries.
            unsafe { (f.memory_desc_create_with_strides)(raw, rank, dims, code, strides) }
        })
    }

    /// A tensor whose layout the primitive chooses.
    ///
    /// # Errors
    /// [`crate::Error::Library`] for extents that oneDNN does not accept; [`crate::Error::DType`]
    /// for types other than those of [`is_supported`].
    pub fn any(library: &Library, dtype: DType, dims: &[i64]) -> Result<Self> {
        let (f, rank, code) = (&library.functions, rank(dims), code(dtype)?);
        Self::new(library, "dnnl_memory_desc_create_with_tag", |raw| {
            // SAFETY: the array has `rank` entries.
            unsafe { (f.memory_desc_create_with_tag)(raw, rank, dims.as_ptr(), code, api::TAG_ANY) }
        })
    }

    /// A copy of the descriptor.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn copy(&self, library: &Library) -> Result<Self> {
        Self::copy_raw(library, self.raw())
    }

    /// The layout of each of `parts` equal parts along dimension `d` of a tensor in this layout,
    /// which has these extents, and how many elements one part begins after the one before. `None`
    /// where the layout cannot be cut there.
    pub fn part(
        &self,
        library: &Library,
        dims: &[i64],
        d: usize,
        parts: usize,
    ) -> Option<(Self, usize)> {
        if parts == 1 || dims[d] % parts as i64 != 0 {
            return self.copy(library).ok().filter(|_| parts == 1).map(|whole| (whole, 0));
        }
        let extent = dims[d] / parts as i64;
        Some((self.first(library, dims, d, extent)?, self.apart(library, dims, d, extent)?))
    }

    /// The layout of the first `extent` along dimension `d` of a tensor in this layout. `None` where
    /// the layout cannot be cut there.
    pub fn first(&self, library: &Library, dims: &[i64], d: usize, extent: i64) -> Option<Self> {
        let mut dims = Vec::from(dims);
        dims[d] = extent;
        self.within(library, &dims, &vec![0; dims.len()]).ok()
    }

    /// How many elements after the first `extent` along dimension `d` the next as many begin.
    /// `None` where there are fewer, or the layout cannot be cut there.
    pub fn apart(&self, library: &Library, dims: &[i64], d: usize, extent: i64) -> Option<usize> {
        let (mut dims, mut start) = (Vec::from(dims), vec![0; dims.len()]);
        (dims[d], start[d]) = (extent, extent);
        self.within(library, &dims, &start).ok()?.offset(library)
    }

    /// The part of these extents that starts there.
    fn within(&self, library: &Library, dims: &[i64], start: &[i64]) -> Result<Self> {
        let (f, dims, start) = (&library.functions, dims.as_ptr(), start.as_ptr());
        Self::new(library, "dnnl_memory_desc_create_submemory", |raw| {
            // SAFETY: the descriptor is live, and both arrays have an entry for each dimension.
            unsafe { (f.memory_desc_create_submemory)(raw, self.raw(), dims, start) }
        })
    }

    /// The number of elements before its first one in the tensor of which it is a part.
    fn offset(&self, library: &Library) -> Option<usize> {
        let (f, what, mut offset) = (&library.functions, query::SUBMEMORY_OFFSET, 0_i64);
        // SAFETY: the descriptor is live, and this query writes an integer of 64 bits.
        let status = unsafe { (f.memory_desc_query)(self.raw(), what, (&raw mut offset).cast()) };
        usize::try_from(offset).ok().filter(|_| status == 0)
    }

    /// A copy of a descriptor that another object owns.
    pub(super) fn copy_raw(library: &Library, other: Raw) -> Result<Self> {
        Self::new(library, "dnnl_memory_desc_clone", |raw| {
            // SAFETY: `other` is a live descriptor.
            unsafe { (library.functions.memory_desc_clone)(raw, other) }
        })
    }

    fn new(
        library: &Library,
        call: &'static str,
        create: impl FnOnce(*mut Raw) -> api::Status,
    ) -> Result<Self> {
        Owned::new(call, library.functions.memory_desc_destroy, create).map(Descriptor)
    }

    /// The size of the layout in bytes, padding included.
    pub fn bytes(&self, library: &Library) -> usize {
        // SAFETY: the descriptor is live.
        unsafe { (library.functions.memory_desc_get_size)(self.raw()) }
    }

    /// Whether both describe the same layout of the same tensor.
    pub fn equals(&self, library: &Library, other: &Descriptor) -> bool {
        // SAFETY: both descriptors are live.
        unsafe { (library.functions.memory_desc_equal)(self.raw(), other.raw()) != 0 }
    }

    pub(super) fn raw(&self) -> Raw {
        self.0.raw()
    }
}

fn rank(dims: &[i64]) -> c_int {
    assert!(dims.len() <= api::MAX_RANK, "{} dimensions", dims.len());
    dims.len() as c_int
}

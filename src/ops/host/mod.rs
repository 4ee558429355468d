//! Host operations: user code that reads and writes plain buffers.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use super::{Catalog, Effects, Family, Meta, Metas};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cpu::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::shape::Shape;

/// A tensor that user code reads.
#[derive(Clone, Copy, Debug)]
pub struct HostInput<'a> {
    /// The dtype of the elements.
    pub dtype: DType,
    /// The shape.
    pub shape: &'a Shape,
    /// The elements, row-major.
    pub bytes: &'a [u8],
}

/// A tensor that user code writes; initially all zeros.
#[derive(Debug)]
pub struct HostOutput<'a> {
    /// The dtype of the elements.
    pub dtype: DType,
    /// The shape.
    pub shape: &'a Shape,
    /// The elements, row-major.
    pub bytes: &'a mut [u8],
}

/// User code.
pub trait HostFn: Any + Send + Sync {
    /// Shapes and dtypes of the outputs (their strides are ignored).
    ///
    /// # Errors
    /// Whatever error it has for these inputs.
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas>;

    /// Computes the outputs. It may itself submit operations.
    ///
    /// # Errors
    /// Whatever error it has for the data, as [`crate::Error::Host`].
    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()>;

    /// Whether another object is the same code with the same data, so that the two are
    /// interchangeable.
    fn is_same(&self, _other: &dyn Any) -> bool {
        false
    }
}

/// A user-defined operation, identified by the object that created it, or by [`HostFn::is_same`].
#[derive(Clone)]
pub struct Host {
    name: &'static str,
    id: u64,
    function: Arc<dyn HostFn>,
}

impl Host {
    /// An operation named `name` in error messages, equal to another only if [`HostFn::is_same`]
    /// says so.
    pub fn new(name: &str, function: Arc<dyn HostFn>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Host { name: interned(name), id: NEXT.fetch_add(1, Relaxed), function }
    }
}

/// An equal string that lives as long as the process; each distinct one is leaked once.
fn interned(text: &str) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    names.get(text).copied().unwrap_or_else(|| {
        let kept: &'static str = Box::leak(text.into());
        names.insert(kept);
        kept
    })
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            || self.name == other.name && self.function.is_same(&*other.function as &dyn Any)
    }
}

impl Eq for Host {}

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({}, {})", self.name, self.id)
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Host", 2)?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field("id", &self.id)?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(
            "a host operation is user code and cannot be made from text; make it from its functions",
        ))
    }
}

impl Catalog for Host {
    fn names() -> Vec<&'static str> {
        vec!["host"]
    }
}

impl Family for Host {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let row_major = |meta: Meta| {
            meta.shape.checked_numel(self.name)?;
            Ok(Meta::new(meta.dtype, meta.shape))
        };
        self.function.infer(inputs)?.into_iter().map(row_major).collect()
    }

    fn effects(&self) -> Effects {
        Effects { host: true, ..Effects::PURE }
    }

    fn cpu(&self, io: &[&Meta], _width: Width) -> Result<Arc<dyn Kernel>> {
        let metas: Vec<Meta> = io.iter().map(|&m| m.clone()).collect();
        let function = self.function.clone();
        let scratch = metas.iter().map(room).sum();
        Ok(kernel(scratch, move |io| call(&*function, &metas, io)))
    }
}

/// Bytes of scratch memory for the row-major copy of a tensor, if it needs one.
fn room(meta: &Meta) -> usize {
    if meta.is_contiguous() { 0 } else { meta.bytes().next_multiple_of(64) }
}

fn call(function: &dyn HostFn, metas: &[Meta], io: &Io) -> Result<()> {
    let (from, to) = metas.split_at(io.input_count());
    let mut place = 0;
    let mut inputs: SmallVec<[HostInput; 4]> = SmallVec::new();
    for (i, meta) in from.iter().enumerate() {
        let bytes = input(io, i, meta, place..place + room(meta));
        inputs.push(HostInput { dtype: meta.dtype, shape: &meta.shape, bytes });
        place += room(meta);
    }
    let output = |(o, meta): (usize, _)| {
        let meta: &Meta = meta;
        // SAFETY: the outputs are row-major, as they were inferred.
        let bytes = unsafe { io.write::<u8>(o, meta.bytes()) };
        bytes.fill(0);
        HostOutput { dtype: meta.dtype, shape: &meta.shape, bytes }
    };
    let mut outputs: SmallVec<[HostOutput; 2]> = to.iter().enumerate().map(output).collect();
    function.call(&inputs, &mut outputs)
}

/// The row-major elements of input `i`: in place, or a copy in this range of the scratch memory.
fn input<'a>(io: &Io<'a>, i: usize, meta: &Meta, room: Range<usize>) -> &'a [u8] {
    if meta.is_contiguous() {
        // SAFETY: the elements are contiguous.
        return unsafe { io.read(i, meta.bytes()) };
    }
    // SAFETY: this range of the scratch memory was requested, and is used for this input alone.
    unsafe {
        let copy = io.scratch::<u8>().add(room.start);
        match meta.dtype.size() {
            1 => gather::<u8>(io.input(i), meta, copy.cast()),
            2 => gather::<u16>(io.input(i), meta, copy.cast()),
            4 => gather::<u32>(io.input(i), meta, copy.cast()),
            _ => gather::<u64>(io.input(i), meta, copy.cast()),
        }
        std::slice::from_raw_parts(copy, meta.bytes())
    }
}

/// Copies a tensor with elements of the size of `T` to `to`, row-major.
///
/// # Safety
/// `from` is the first element of a tensor of this meta; `to` has room for all elements.
unsafe fn gather<T: Copy>(from: *const T, meta: &Meta, mut to: *mut T) {
    let walk = Walk::new(dims([meta]));
    let step = walk.inner().strides[0];
    for ([at], n) in walk.runs(0..walk.elements()) {
        for i in 0..n as isize {
            // SAFETY: by the caller's promise.
            unsafe {
                *to = *from.offset(at + i * step);
                to = to.add(1);
            }
        }
    }
}

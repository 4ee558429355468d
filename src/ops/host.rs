//! Host operations: user code that reads and writes plain buffers.

use std::any::Any;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Effects, Family, Meta, Metas};
use crate::dtype::DType;
use crate::error::{Result, locked};
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

catalog!(Host => "host");

impl Host {
    /// An operation named `name` in error messages, equal to another only if [`HostFn::is_same`]
    /// says so.
    pub fn new(name: &str, function: Arc<dyn HostFn>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Host { name: interned(name), id: NEXT.fetch_add(1, Relaxed), function }
    }

    /// The user code.
    pub fn function(&self) -> &Arc<dyn HostFn> {
        &self.function
    }
}

/// An equal string that lives as long as the process; each distinct one is leaked once.
fn interned(text: &str) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = locked(&NAMES);
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
        Effects::OUTSIDE
    }

    moves_only!();
}

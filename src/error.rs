//! The error type of the crate, with structured fields.

pub mod finite;
pub mod memory;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::shape::Shape;
pub use finite::NotFinite;
pub use memory::{LiveTensor, Usage};

/// The result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The name of the operation that failed.
pub type OpName = Cow<'static, str>;

/// What can go wrong. Each variant maps to one Python exception (`python/error.rs`).
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Shapes that the operation does not accept.
    #[error("{op}: got shapes {}, want {want}", list(got))]
    Shape {
        /// The operation.
        op: OpName,
        /// The shapes it was given.
        got: Vec<Shape>,
        /// What it accepts, in words.
        want: String,
    },
    /// Element types that the operation does not accept.
    #[error("{op}: got dtype {}, want {want}", list(got))]
    DType {
        /// The operation.
        op: OpName,
        /// The element types it was given.
        got: Vec<DType>,
        /// What it accepts, in words.
        want: String,
    },
    /// An attribute or a value out of range.
    #[error("{op}: got {got}, want {want}")]
    Value {
        /// The operation.
        op: OpName,
        /// What it was given.
        got: String,
        /// What it accepts, in words.
        want: String,
    },
    /// An index or a class label out of range.
    #[error("{op}: index {index} is out of range for size {size}")]
    Index {
        /// The operation.
        op: OpName,
        /// The offending index.
        index: i64,
        /// How many entries there are.
        size: usize,
    },
    /// The wrong number of inputs or outputs.
    #[error("{op}: got {got} tensors, want {want}")]
    Arity {
        /// The operation.
        op: OpName,
        /// How many there were.
        got: usize,
        /// How many it accepts, in words.
        want: String,
    },
    /// Memory that could not be allocated.
    #[error(
        "{op}: out of memory: requested {requested} bytes, {in_use} bytes in use, \
         {available} bytes available on {device}; {usage}"
    )]
    OutOfMemory {
        /// The operation.
        op: OpName,
        /// The device's name.
        device: &'static str,
        /// Bytes asked for.
        requested: usize,
        /// Bytes that live tensors of the device hold.
        in_use: usize,
        /// Bytes that the machine or its control group could still provide.
        available: usize,
        /// How well memory was used, and which tensors held most of it.
        usage: Box<Usage>,
    },
    /// A memory budget for the arena that no plan meets.
    #[error(
        "{op}: no plan keeps the arena within {budget} bytes; the smallest one takes {smallest} \
         bytes, and {outside} bytes lie outside of it; {usage}"
    )]
    Budget {
        /// What was asked for.
        op: OpName,
        /// The budget in bytes.
        budget: usize,
        /// Bytes of the smallest arena that was found.
        smallest: usize,
        /// Bytes of parameters, states, arguments and results.
        outside: usize,
        /// The contents of the smallest arena at its peak.
        usage: Box<Usage>,
    },
    /// A device that cannot do what was asked.
    #[error("{op}: {message}")]
    Device {
        /// The operation.
        op: OpName,
        /// What is wrong, in words.
        message: String,
    },
    /// A misuse of the tape or of a recording.
    #[error("{op}: {message}")]
    Graph {
        /// The operation.
        op: OpName,
        /// What is wrong, in words.
        message: String,
    },
    /// A file that cannot be read or written, is damaged, or is of another kind.
    #[error("{op}: {message}")]
    Checkpoint {
        /// The operation.
        op: OpName,
        /// What is wrong, in words.
        message: String,
    },
    /// An exchange between processes that failed: a rank that is gone, late, has failed itself, or
    /// has come with another operation.
    #[error("{op}: {message}")]
    Exchange {
        /// The operation.
        op: OpName,
        /// What is wrong, in words; names the ranks.
        message: String,
    },
    /// A failed call into a library.
    #[error("{op}: {library} returned {status} for {call}")]
    Library {
        /// The operation.
        op: OpName,
        /// The library's name.
        library: &'static str,
        /// The function that was called.
        call: &'static str,
        /// The status that it returned.
        status: i32,
    },
    /// A host operation (user code) that raised an exception.
    #[error("{op}: host operation failed: {message}")]
    Host {
        /// The operation.
        op: OpName,
        /// The exception as text.
        message: String,
    },
    /// A NaN or an infinity in a result, if checking for them was requested.
    #[error("{op}: {report}")]
    NotFinite {
        /// The operation.
        op: OpName,
        /// Its inputs and outputs.
        report: Box<NotFinite>,
    },
    /// A bug: a panic, or an analysis that failed its verification. The process continues.
    #[error("{op}: internal error: {message}")]
    Internal {
        /// The operation.
        op: OpName,
        /// What happened.
        message: String,
    },
}

impl Error {
    /// A [`Error::Shape`].
    pub fn shape<'a>(
        op: impl Into<OpName>,
        got: impl IntoIterator<Item = &'a Shape>,
        want: impl Into<String>,
    ) -> Self {
        Error::Shape { op: op.into(), got: got.into_iter().cloned().collect(), want: want.into() }
    }

    /// A [`Error::DType`].
    pub fn dtype(
        op: impl Into<OpName>,
        got: impl IntoIterator<Item = DType>,
        want: impl Into<String>,
    ) -> Self {
        Error::DType { op: op.into(), got: got.into_iter().collect(), want: want.into() }
    }

    /// A [`Error::Value`].
    pub fn value(
        op: impl Into<OpName>,
        got: impl std::fmt::Display,
        want: impl Into<String>,
    ) -> Self {
        Error::Value { op: op.into(), got: got.to_string(), want: want.into() }
    }

    /// A [`Error::Arity`].
    pub fn arity(op: impl Into<OpName>, got: usize, want: impl std::fmt::Display) -> Self {
        Error::Arity { op: op.into(), got, want: want.to_string() }
    }

    /// A [`Error::Device`].
    pub fn device(op: impl Into<OpName>, message: impl Into<String>) -> Self {
        Error::Device { op: op.into(), message: message.into() }
    }

    /// A [`Error::Graph`].
    pub fn graph(op: impl Into<OpName>, message: impl Into<String>) -> Self {
        Error::Graph { op: op.into(), message: message.into() }
    }

    /// A [`Error::Internal`] from what `catch_unwind` caught.
    pub fn panic(op: impl Into<OpName>, payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Error::Internal { op: op.into(), message: message.unwrap_or_else(|| "a panic".into()) }
    }

    /// The same error, attributed to operation `name` instead of the layer that raised it.
    pub fn in_op(mut self, name: impl Into<OpName>) -> Self {
        *self.op_mut() = name.into();
        self
    }

    /// The name of the operation that failed.
    pub fn op_mut(&mut self) -> &mut OpName {
        use Error::*;
        let (Shape { op, .. }
        | DType { op, .. }
        | Value { op, .. }
        | Index { op, .. }
        | Arity { op, .. }
        | OutOfMemory { op, .. }
        | Budget { op, .. }
        | Device { op, .. }
        | Graph { op, .. }
        | Checkpoint { op, .. }
        | Exchange { op, .. }
        | Library { op, .. }
        | Host { op, .. }
        | NotFinite { op, .. }
        | Internal { op, .. }) = self;
        op
    }
}

/// Runs a closure; a panic in it is a bug in this crate, but must never end the user's process.
///
/// # Errors
/// Any error of `run`; [`Error::Internal`] if it panics.
pub fn guarded<T>(op: impl Into<OpName>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Error::panic(op, &*panic)))
}

/// Locks a mutex, also after a thread that held it has panicked: what panics is reported there, and
/// leaves what the mutex guards as it may be found.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the error from the enclosing function unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $error:expr) => {
        if !$condition {
            return Err($error);
        }
    };
}

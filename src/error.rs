//! The one error type of the crate, with structured fields.

pub mod finite;
pub mod memory;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::dtype::DType;
use crate::shape::Shape;
pub use finite::NotFinite;
pub use memory::{LiveTensor, Usage};

/// The result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The name of the operation that failed.
pub type OpName = Cow<'static, str>;

/// What can go wrong. Each variant has one Python exception (`python/error.rs`).
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Shapes that the operation cannot take.
    #[error("{op}: got shapes {}, want {want}", list(got))]
    Shape {
        /// The operation.
        op: OpName,
        /// The shapes it was given.
        got: Vec<Shape>,
        /// What it takes, in words.
        want: String,
    },
    /// Element types that the operation cannot take.
    #[error("{op}: got dtype {}, want {want}", list(got))]
    DType {
        /// The operation.
        op: OpName,
        /// The element types it was given.
        got: Vec<DType>,
        /// What it takes, in words.
        want: String,
    },
    /// An attribute or a value out of its range.
    #[error("{op}: got {got}, want {want}")]
    Value {
        /// The operation.
        op: OpName,
        /// What it was given.
        got: String,
        /// What it takes, in words.
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
        /// How many it takes, in words.
        want: String,
    },
    /// Memory that cannot be had.
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
        /// Bytes that the machine or its control group would still give.
        available: usize,
        /// How well the memory was used, and what held most of it.
        usage: Box<Usage>,
    },
    /// A bound for the arena that no plan keeps.
    #[error(
        "{op}: no plan keeps the arena within {budget} bytes; the smallest one takes {smallest} \
         bytes, and {outside} bytes lie outside of it; {usage}"
    )]
    Budget {
        /// What was asked for.
        op: OpName,
        /// The bound in bytes.
        budget: usize,
        /// Bytes of the smallest arena that was found.
        smallest: usize,
        /// Bytes of parameters, states, arguments and results.
        outside: usize,
        /// The smallest arena where it is fullest.
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
    /// A call into a library that did not succeed.
    #[error("{op}: {library} answered {status} to {call}")]
    Library {
        /// The operation.
        op: OpName,
        /// The library's name.
        library: &'static str,
        /// The function called.
        call: &'static str,
        /// Its status.
        status: i32,
    },
    /// A host operation (user code) that raised; the text is what it raised.
    #[error("{op}: host operation failed: {message}")]
    Host {
        /// The operation.
        op: OpName,
        /// The exception as text.
        message: String,
    },
    /// A result that is no finite number, where somebody asked to be told.
    #[error("{op}: {report}")]
    NotFinite {
        /// The operation.
        op: OpName,
        /// What it was given, and what it made.
        report: Box<NotFinite>,
    },
    /// A bug: a panic, or an analysis that did not stand up to its check. The process goes on.
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

    /// A [`Error::Internal`] from what `catch_unwind` caught.
    pub fn panic(op: impl Into<OpName>, payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Error::Internal { op: op.into(), message: message.unwrap_or_else(|| "a panic".into()) }
    }

    /// The same error, said of operation `name` instead of the library layer that met it.
    pub fn in_op(mut self, name: impl Into<OpName>) -> Self {
        *self.op_mut() = name.into();
        self
    }

    /// The name of the operation that it speaks of.
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
        | Library { op, .. }
        | Host { op, .. }
        | NotFinite { op, .. }
        | Internal { op, .. }) = self;
        op
    }
}

/// Runs something; a panic in it is a bug of ours, but never the end of the user's process.
///
/// # Errors
/// What it says; [`Error::Internal`] where it panics.
pub fn guarded<T>(op: impl Into<OpName>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Error::panic(op, &*panic)))
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the error from the enclosing function.
#[macro_export]
macro_rules! bail {
    ($error:expr) => {
        return Err($error)
    };
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

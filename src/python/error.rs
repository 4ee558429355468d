//! The only mapping from [`Error`] to Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{
    PyFloatingPointError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

use super::exit;
use crate::error::finite::Statistics;
use crate::error::{Error, LiveTensor, NotFinite, Usage};

create_exception!(singa_rs, ShapeError, PyValueError, "Shapes that an operation cannot take.");
create_exception!(
    singa_rs,
    DTypeError,
    PyTypeError,
    "Element types that an operation cannot take."
);
create_exception!(singa_rs, DeviceError, PyRuntimeError, "A device that cannot do what was asked.");
create_exception!(singa_rs, GraphError, PyRuntimeError, "A misuse of the tape or of a recording.");
create_exception!(
    singa_rs,
    DividedError,
    GraphError,
    "A write into elements that are divided among processes."
);
create_exception!(
    singa_rs,
    OutOfMemoryError,
    PyMemoryError,
    "Memory that neither the pool nor the machine has."
);
create_exception!(
    singa_rs,
    MemoryBudgetError,
    OutOfMemoryError,
    "A memory budget that no plan meets."
);
create_exception!(
    singa_rs,
    InternalError,
    PyRuntimeError,
    "A bug in the package: a panic, or an analysis that fails its check."
);
create_exception!(
    singa_rs,
    CheckpointError,
    PyValueError,
    "A file of parameters or states that cannot be read, or does not fit."
);

create_exception!(
    singa_rs,
    DistError,
    PyRuntimeError,
    "An exchange between processes that failed, with the ranks that are missing or have failed."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let text = error.to_string();
        match error {
            Error::Shape { .. } => ShapeError::new_err(text),
            Error::DType { .. } => DTypeError::new_err(text),
            Error::Value { .. } | Error::Index { .. } => PyValueError::new_err(text),
            Error::Arity { .. } => PyTypeError::new_err(text),
            Error::OutOfMemory { requested, in_use, available, usage, .. } => {
                let error = OutOfMemoryError::new_err(text);
                let figures =
                    [("requested", requested), ("in_use", in_use), ("available", available)];
                with(error, |object| memory(object, &figures, &usage))
            }
            Error::Budget { budget, smallest, outside, usage, .. } => {
                let figures = [("budget", budget), ("smallest", smallest), ("outside", outside)];
                with(MemoryBudgetError::new_err(text), |object| memory(object, &figures, &usage))
            }
            Error::NotFinite { report, .. } => {
                with(PyFloatingPointError::new_err(text), |object| numbers(object, &report))
            }
            Error::Device { .. } => DeviceError::new_err(text),
            Error::Graph { .. } => GraphError::new_err(text),
            Error::Checkpoint { .. } => CheckpointError::new_err(text),
            Error::Exchange { .. } => DistError::new_err(text),
            Error::Internal { .. } => InternalError::new_err(text),
            Error::Library { .. } | Error::Host { .. } => PyRuntimeError::new_err(text),
        }
    }
}

/// Sets the error's fields as attributes of the exception.
fn with(error: PyErr, set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    match exit::attach(|py| set(error.value(py).as_any())) {
        Some(Err(other)) => other,
        _ => error,
    }
}

/// Sets the attributes of a memory error; each tensor is (name, bytes, line).
fn memory(object: &Bound<'_, PyAny>, figures: &[(&str, usize)], usage: &Usage) -> PyResult<()> {
    for &(name, bytes) in figures {
        object.setattr(name, bytes)?;
    }
    object.setattr("bound", usage.bound)?;
    object.setattr("fragmentation", usage.fragmentation)?;
    let tensor = |t: &LiveTensor| (t.name.clone(), t.bytes, t.line.as_deref().map(String::from));
    object.setattr("largest", usage.largest.iter().map(tensor).collect::<Vec<_>>())
}

fn numbers(object: &Bound<'_, PyAny>, report: &NotFinite) -> PyResult<()> {
    object.setattr("operation", report.operation)?;
    object.setattr("line", report.line.as_deref())?;
    let texts = |list: &[Statistics]| list.iter().map(Statistics::to_string).collect::<Vec<_>>();
    object.setattr("inputs", texts(&report.inputs))?;
    object.setattr("outputs", texts(&report.outputs))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ShapeError", py.get_type::<ShapeError>())?;
    module.add("DTypeError", py.get_type::<DTypeError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("GraphError", py.get_type::<GraphError>())?;
    module.add("DividedError", py.get_type::<DividedError>())?;
    module.add("OutOfMemoryError", py.get_type::<OutOfMemoryError>())?;
    module.add("MemoryBudgetError", py.get_type::<MemoryBudgetError>())?;
    module.add("InternalError", py.get_type::<InternalError>())?;
    module.add("DistError", py.get_type::<DistError>())?;
    module.add("CheckpointError", py.get_type::<CheckpointError>())
}

//! Operations as callable Python objects.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyTuple};

use super::attrs;
use super::device::PyDevice;
use super::divided;
use super::exit;
use super::graph::{at_line, note_line};
use super::handler;
use super::host::PythonFn;
use super::tensor::{self, Handle};
use crate::device::Device;
use crate::device::live::LARGE;
use crate::engine::record::{self, Mode};
use crate::engine::{self, Engine, Inputs, Outputs, Turn};
use crate::error::Error;
use crate::kernels;
use crate::ops::host::Host;
use crate::ops::unary::Saves;
use crate::ops::{Kind, View};

/// An operation with its attributes, callable with tensors. Gradients are never recorded.
#[pyclass(module = "singa_rs._core", frozen)]
pub(super) struct Op {
    kind: Kind,
    /// Where it runs if it has no inputs; otherwise it runs where they are.
    device: Option<Arc<Device>>,
    /// The user's functions, which the kind holds, too.
    host: Option<Arc<PythonFn>>,
}

impl Op {
    /// A host operation.
    pub(super) fn host(name: &str, functions: PythonFn) -> Self {
        let functions = Arc::new(functions);
        Op { kind: Host::new(name, functions.clone()).into(), device: None, host: Some(functions) }
    }
}

/// The engine that runs an operation on these tensors; one of none runs on `device`, or on that of
/// the step that is being recorded.
fn engine_of(
    kind: &Kind,
    views: &[View],
    device: Option<&Device>,
) -> crate::Result<&'static Engine> {
    let first = views.first().map(|view| &**view.block.device());
    let recorded = || record::device().unwrap_or_else(|| kernels::host().clone());
    let found = match first.or(device) {
        Some(device) => engine::of(device),
        None => engine::of(&recorded()),
    };
    found.map_err(|error| error.in_op(kind.family().name()))
}

/// Runs without releasing the GIL where the work is short and need not wait: releasing and retaking
/// it would cost more.
pub(super) fn run(
    py: Python<'_>,
    kind: &Kind,
    mut inputs: Inputs,
    device: Option<&Device>,
) -> PyResult<Outputs> {
    let engine = engine_of(kind, &inputs, device)?;
    note_line(py);
    let line = takes_much(&inputs).then(|| at_line(py));
    let short = match engine.try_turn() {
        Some(turn) if record::mode() != Mode::Eager => {
            Some(engine.submit(turn, kind, inputs.clone()))
        }
        Some(turn) => engine.submit_if_short(turn, kind, &mut inputs),
        None => None,
    };
    let made = short.unwrap_or_else(|| {
        let _line = line.is_none().then(|| at_line(py));
        exit::detach(py, || engine.submit(engine.turn(), kind, inputs))
    });
    made.map_err(exception)
}

/// As `run`, but writes into given tensors.
pub(super) fn run_into(
    py: Python<'_>,
    kind: &Kind,
    inputs: Inputs,
    outputs: &[View],
) -> PyResult<()> {
    let engine = engine_of(kind, outputs, None)?;
    note_line(py);
    let line = takes_much(inputs.iter().chain(outputs)).then(|| at_line(py));
    let is_far = engine::is_transfer(kind, &inputs, outputs);
    let is_short = |turn: &mut Turn| record::mode() != Mode::Eager || turn.is_short(kind, &inputs);
    let turn = if is_far { None } else { engine.try_turn() };
    let short = turn.and_then(|mut turn| is_short(&mut turn).then_some(turn));
    let done = match short {
        Some(turn) => engine.submit_into(turn, kind, inputs, outputs),
        None => {
            let _line = line.is_none().then(|| at_line(py));
            exit::detach(py, || engine.submit_into(engine.turn(), kind, inputs, outputs))
        }
    };
    done.map_err(exception)
}

/// Whether any tensor has yet to allocate so much memory that its line is noted.
fn takes_much<'a>(tensors: impl IntoIterator<Item = &'a View>) -> bool {
    let mut blocks = tensors.into_iter().map(|view| &view.block);
    blocks.any(|block| block.bytes() >= LARGE && !block.is_allocated())
}

/// The exception that user code raised, or the one for this error.
pub(super) fn exception(error: crate::Error) -> PyErr {
    super::host::raised(&error).unwrap_or_else(|| error.into())
}

#[pymethods]
impl Op {
    /// An operation of no inputs runs on `device`, or on the CPU.
    #[new]
    #[pyo3(signature = (name, /, *, device=None, **attrs))]
    fn py_new(
        name: &str,
        device: Option<&PyDevice>,
        attrs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let device = device.map(|device| device.0.clone());
        Ok(Op { kind: attrs::kind(name, attrs)?, device, host: None })
    }

    /// For Python's cycle collector: an object often holds the operation made from its methods.
    /// Functions that are also held elsewhere, such as by a run of the operation, are not visited.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.host {
            Some(host) if Arc::strong_count(host) == 2 => host.traverse(visit),
            _ => Ok(()),
        }
    }

    /// The operation's name in error messages.
    #[getter]
    fn name(&self) -> &'static str {
        self.kind.family().name()
    }

    /// The attributes, with the family's name under `op`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        attrs::to_python(py, &attrs::attributes(&self.kind)?)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Op({})", attrs::attributes(&self.kind)?))
    }

    /// The new tensors computed from `inputs`: one, or a tuple of several, or None if the operation
    /// only updates its inputs.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        inputs: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(made) = handler::handled(inputs, || Ok(slf.clone().into_any()))? {
            return Ok(made);
        }
        let (py, op) = (inputs.py(), slf.get());
        let views = views(&op.kind, inputs.iter_borrowed())?;
        results(py, run(py, &op.kind, views, op.device.as_deref())?)
    }

    /// Writes the outputs into existing tensors, which may overlap the inputs.
    fn into(
        slf: &Bound<'_, Self>,
        inputs: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if handler::has_written(slf.as_any(), &inputs, &outputs)? {
            return Ok(());
        }
        let op = slf.get();
        let from = views(&op.kind, inputs.iter().map(|t| t.as_borrowed()))?;
        let target =
            |t: &Bound<'_, PyAny>| handle(op.name(), t.as_borrowed())?.get().target_in(op.name());
        let to = outputs.iter().map(target).collect::<PyResult<Outputs>>()?;
        run_into(slf.py(), &op.kind, from, &to)
    }
}

fn results(py: Python<'_>, made: Outputs) -> PyResult<Bound<'_, PyAny>> {
    let mut made = made.into_iter();
    let Some(first) = made.next() else { return Ok(py.None().into_bound(py)) };
    let first = tensor::make(py, first)?;
    let Some(second) = made.next() else { return Ok(first.into_any()) };
    let rest = std::iter::once(second).chain(made).map(|v| tensor::make(py, v));
    let all = std::iter::once(Ok(first)).chain(rest).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, all)?.into_any())
}

/// The views of the tensors passed to an operation.
fn views<'a, 'py: 'a>(
    kind: &Kind,
    tensors: impl Iterator<Item = Borrowed<'a, 'py, PyAny>>,
) -> PyResult<Inputs> {
    let op = kind.family().name();
    let view = |(i, t): (usize, Borrowed<'a, 'py, PyAny>)| {
        let view = handle(op, t)?.get().place_in(op)?;
        if view.block.divided().is_some() { divided::input(view, kind, i) } else { Ok(view) }
    };
    tensors.enumerate().map(view).collect()
}

/// The tensor that operation `op` is given.
fn handle<'a, 'py>(
    op: &'static str,
    object: Borrowed<'a, 'py, PyAny>,
) -> PyResult<Borrowed<'a, 'py, Handle>> {
    object.cast::<Handle>().map_err(|_| not_a_tensor(op, &object))
}

fn not_a_tensor(op: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string());
    pyo3::exceptions::PyTypeError::new_err(format!("{op}: got a {kind}, want a Tensor"))
}

/// Which tensor the gradient of a unary elementwise function needs besides the gradient of its
/// result: its input `x`, its result `y`, or None.
#[pyfunction]
fn unary_saves(op: &Op) -> PyResult<Option<&'static str>> {
    let Kind::Unary(unary) = &op.kind else {
        let want = "a function of one tensor, element by element";
        return Err(Error::value("unary_saves", op.kind.family().name(), want).into());
    };
    Ok(match unary.f.saves() {
        Saves::Input => Some("x"),
        Saves::Output => Some("y"),
        Saves::Nothing => None,
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<Op>(module)?;
    module.add_function(wrap_pyfunction!(unary_saves, module)?)
}

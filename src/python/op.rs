//! Operations as callable Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::attrs;
use super::tensor::{self, Handle};
use crate::device::cpu;
use crate::engine::{self, Engine, Inputs, Outputs, Turn};
use crate::error::Error;
use crate::ops::unary::Saves;
use crate::ops::{Kind, View};

/// Operations on fewer bytes than this run without releasing Python's lock: giving it away and
/// taking it back would cost more than the work.
const SHORT_BYTES: usize = 256 << 10;

/// An operation with its attributes, ready to be called with tensors. Never recorded for
/// gradients.
#[pyclass(module = "singa_rs._core", frozen)]
pub(super) struct Op {
    kind: Kind,
}

/// Where an operation runs, and whether it is short.
struct Site {
    engine: &'static Engine,
    short: bool,
}

impl Site {
    fn of(kind: &Kind, views: &[View]) -> crate::Result<Site> {
        let device = views.first().map_or(cpu::device(), |v| v.block.device());
        let engine = engine::of(device).map_err(|error| error.in_op(kind.family().name()))?;
        let bytes: usize = views.iter().map(|v| v.meta.bytes()).sum();
        Ok(Site { engine, short: bytes < SHORT_BYTES })
    }
}

impl Op {
    pub(super) fn new(kind: Kind) -> Self {
        Op { kind }
    }

    /// Runs `job` when it is this thread's turn on the device. Python's lock is only kept for
    /// short work that need not wait.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        site: Site,
        job: impl FnOnce(&'static Engine, Turn) -> crate::Result<T> + Send,
    ) -> PyResult<T> {
        let Site { engine, short } = site;
        let done = match engine.try_turn().filter(|_| short) {
            Some(turn) => job(engine, turn),
            None => py.detach(|| job(engine, engine.turn())),
        };
        done.map_err(|error| super::host::raised(&error).unwrap_or_else(|| error.into()))
    }
}

#[pymethods]
impl Op {
    #[new]
    #[pyo3(signature = (name, /, **attrs))]
    fn py_new(name: &str, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Op::new(attrs::kind(name, attrs)?))
    }

    /// The operation's name in error messages.
    #[getter]
    fn name(&self) -> &'static str {
        self.kind.family().name()
    }

    /// The attributes, and the family's name under `op`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        attrs::to_python(py, &attrs::attributes(&self.kind)?)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Op({})", attrs::attributes(&self.kind)?))
    }

    /// The new tensors that the operation makes of `inputs`: one, or a tuple of several, or None
    /// where it only updates its inputs.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(&self, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = inputs.py();
        let views = views(inputs.iter_borrowed())?;
        let site = Site::of(&self.kind, &views)?;
        let made = self.run(py, site, |engine, turn| engine.submit(turn, &self.kind, views))?;
        self.results(py, made)
    }

    /// Writes the outputs into existing tensors, which may overlap the inputs.
    fn into(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let from = views(inputs.iter().map(|t| t.as_borrowed()))?;
        let to = views(outputs.iter().map(|t| t.as_borrowed()))?;
        let site = Site::of(&self.kind, &to)?;
        self.run(py, site, |engine, turn| engine.submit_into(turn, &self.kind, from, &to))
    }
}

impl Op {
    fn results<'py>(&self, py: Python<'py>, made: Outputs) -> PyResult<Bound<'py, PyAny>> {
        let state = self.kind.family().effects().state;
        let is_fresh = |o: &usize| !state.iter().any(|pair| pair.1 == *o);
        let mut fresh = made.into_iter().enumerate().filter(|(o, _)| is_fresh(o)).map(|(_, v)| v);
        let Some(first) = fresh.next() else { return Ok(py.None().into_bound(py)) };
        let first = tensor::make(py, first)?;
        let Some(second) = fresh.next() else { return Ok(first.into_any()) };
        let rest = std::iter::once(second).chain(fresh).map(|v| tensor::make(py, v));
        let all = std::iter::once(Ok(first)).chain(rest).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, all)?.into_any())
    }
}

fn views<'a, 'py: 'a>(tensors: impl Iterator<Item = Borrowed<'a, 'py, PyAny>>) -> PyResult<Inputs> {
    tensors.map(|t| t.cast::<Handle>().map_err(|_| not_a_tensor(&t))?.get().view()).collect()
}

fn not_a_tensor(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string());
    pyo3::exceptions::PyTypeError::new_err(format!("operation: got a {kind}, want a Tensor"))
}

/// Which tensor the gradient of a function of one tensor is computed from, besides that of its
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
    module.add_class::<Op>()?;
    module.add_function(wrap_pyfunction!(unary_saves, module)?)
}

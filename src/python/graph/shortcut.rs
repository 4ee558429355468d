//! The fast path for a call like the previous one: a few checks, then the replay.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFrozenSet, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashSet;

use super::super::tensor::{self, Handle};
use super::executable::PyGraph;
use super::watch::PyWatch;
use crate::block;
use crate::engine::record::{self, Mode};
use crate::ops::View;

/// The clock is looked at once in so many calls.
const CALLS_A_LOOK: u32 = 64;

/// Replays a graph for calls with only tensors as positional arguments, while nothing has changed
/// that the slow path would check.
#[pyclass(name = "Shortcut", module = "singa_rs._core", frozen)]
pub(super) struct PyShortcut {
    graph: Py<PyGraph>,
    watch: Py<PyWatch>,
    /// The value of `changes` for which the graph is valid.
    changes: AtomicU64,
    /// The `requires_grad` flags of the arguments.
    requires_grad: Vec<bool>,
    /// The attributes that the arguments may have.
    attributes: Py<PyFrozenSet>,
    /// The addresses of tensors that the program reaches in other ways, if it may compare tensors
    /// by identity.
    known: Option<FxHashSet<usize>>,
    /// When a call is to take the slow path, which then looks closer; and the number of calls.
    due: Option<Instant>,
    calls: AtomicU32,
}

impl PyShortcut {
    fn is_due(&self) -> bool {
        let is_look = || self.calls.fetch_add(1, Relaxed).is_multiple_of(CALLS_A_LOOK);
        self.due.is_some_and(|due| is_look() && Instant::now() >= due)
    }

    /// The views of the arguments, if these match the recorded ones.
    fn accept(&self, args: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<View>>> {
        if args.len() != self.requires_grad.len() {
            return Ok(None);
        }
        let mut views = Vec::with_capacity(args.len());
        for (arg, want) in args.iter().zip(&self.requires_grad) {
            let Some(handle) = tensor::exact(&arg) else { return Ok(None) };
            if self.known.as_ref().is_some_and(|known| {
                let is_given_twice = args.iter().take(views.len()).any(|other| other.is(&arg));
                is_given_twice || known.contains(&arg.as_ptr().addr())
            }) {
                return Ok(None);
            }
            let flag = arg.getattr(intern!(arg.py(), "requires_grad"))?;
            let is_parameter = arg.getattr(intern!(arg.py(), "_stores_grad"))?.is_truthy()?;
            let has_history = !arg.getattr(intern!(arg.py(), "_creator"))?.is_none()
                || arg.getattr(intern!(arg.py(), "_is_cut"))?.is_truthy()?;
            if is_parameter
                || has_history
                || self.is_marked(&arg)?
                || !flag.is(&*PyBool::new(arg.py(), *want))
            {
                return Ok(None);
            }
            views.push(handle.view()?);
        }
        Ok(Some(views))
    }

    /// Whether the program has set attributes of its own on a tensor.
    fn is_marked(&self, arg: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, known) = (arg.py(), self.attributes.bind(arg.py()));
        let attributes = arg.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
        for (name, _) in &attributes {
            if !known.contains(name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[pymethods]
impl PyShortcut {
    #[new]
    fn new(
        graph: Py<PyGraph>,
        watch: Py<PyWatch>,
        changes: u64,
        requires_grad: Vec<bool>,
        attributes: Py<PyFrozenSet>,
        known: Option<FxHashSet<usize>>,
        seconds: Option<f64>,
    ) -> Self {
        let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let due = seconds.and_then(|seconds| Instant::now().checked_add(seconds));
        let (calls, changes) = (AtomicU32::new(0), AtomicU64::new(changes));
        PyShortcut { graph, watch, changes, requires_grad, attributes, known, due, calls }
    }

    /// Replays the graph; returns its results, each a new tensor. None where the call must take the
    /// slow path.
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if block::changes() != self.changes.load(Relaxed)
            || record::mode() != Mode::Eager
            || self.is_due()
        {
            return Ok(None);
        }
        let Some(views) = self.accept(args)? else { return Ok(None) };
        let graph = self.graph.get();
        if !graph.accepts(&views) || !self.watch.get().holds(py)? {
            return Ok(None);
        }
        let results: Vec<Bound<'_, Handle>> = graph.results(py, &views)?;
        PyTuple::new(py, results).map(Some)
    }

    /// Notes so many changes that the caller has made, which leave the graph valid.
    fn advance(&self, count: u64) {
        self.changes.fetch_add(count, Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.graph)?;
        visit.call(&self.watch)
    }
}

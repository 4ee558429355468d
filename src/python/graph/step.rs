//! Steps that were read from files, as Python objects.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::super::device::PyDevice;
use super::super::dtype::{self, PyDType};
use super::super::file::PyFile;
use super::super::tensor::{self, Handle};
use super::super::{exit, op};
use super::executable::PyGraph;
use super::recording::views;
use crate::engine;
use crate::step::{Step, Tensor};

/// A tensor's name, shape and dtype.
type Described<'py> = (String, Bound<'py, PyTuple>, Bound<'py, PyDType>);

/// A recorded step that was read from a file.
#[pyclass(name = "Step", module = "singa_rs._core", frozen)]
pub(super) struct PyStep {
    /// Boxed, since it needs a stricter alignment than the 16 bytes that Python gives objects.
    step: Box<Step>,
}

#[pymethods]
impl PyStep {
    /// Reads and plans the step in a binary file of `size` bytes.
    #[new]
    fn new(file: &Bound<'_, PyAny>, size: u64, device: &PyDevice) -> PyResult<Self> {
        let engine = engine::of(&device.0)?;
        let mut reader = PyFile::new(file);
        let read = exit::detach(file.py(), || Step::read(engine, &mut reader, size));
        Ok(PyStep { step: Box::new(reader.finish(read)?) })
    }

    /// Name, shape and dtype of each argument.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Vec<Described<'py>>> {
        self.step.arguments().iter().map(|tensor| described(py, tensor)).collect()
    }

    /// Name, shape and dtype of each result.
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Vec<Described<'py>>> {
        self.step.results().iter().map(|tensor| described(py, tensor)).collect()
    }

    /// The states by name, each as a new tensor on the state's memory.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, Handle>)>> {
        let views = self.step.states().zip((0..).map_while(|index| self.step.state_view(index)));
        let state = |(state, view): (&Tensor, &crate::ops::View)| {
            Ok((state.name.clone(), tensor::make(py, view.clone())?))
        };
        views.map(state).collect()
    }

    /// Runs the step once; returns the results, each a new tensor.
    fn run<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<Bound<'py, Handle>>,
    ) -> PyResult<Vec<Bound<'py, Handle>>> {
        let arguments = views(&arguments)?;
        let results = exit::detach(py, || self.step.call(&arguments)).map_err(op::exception)?;
        results.into_iter().map(|view| tensor::make(py, view)).collect()
    }

    /// The graph that runs it, for inspection.
    fn graph(&self, py: Python<'_>) -> PyResult<PyGraph> {
        Ok(PyGraph::new(exit::detach(py, || self.step.graph())?))
    }

    /// Writes the step with its present states to a binary file.
    fn write(&self, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut writer = PyFile::new(file);
        let written = exit::detach(file.py(), || self.step.write(&mut writer));
        writer.finish(written)
    }
}

fn described<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Described<'py>> {
    let shape = PyTuple::new(py, tensor.shape.iter())?;
    Ok((tensor.name.clone(), shape, dtype::object(py, tensor.dtype)?))
}

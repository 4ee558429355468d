//! What of a model's attributes changes without a note.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet};
use pyo3::{PyTraverseError, PyVisit};

/// The flags and gradients of parameters and the items of containers, as they were when this was
/// made.
#[pyclass(name = "Watch", module = "singa_rs._core", frozen)]
pub(super) struct PyWatch {
    parameters: Vec<Parameter>,
    /// Containers, each with a shallow copy.
    containers: Vec<(Py<PyAny>, Py<PyAny>)>,
}

struct Parameter {
    tensor: Py<PyAny>,
    requires_grad: Py<PyAny>,
    grad: Py<PyAny>,
}

impl Parameter {
    fn new(tensor: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (requires_grad, grad) = marks(tensor)?;
        let tensor = tensor.clone().unbind();
        Ok(Parameter { tensor, requires_grad: requires_grad.unbind(), grad: grad.unbind() })
    }

    fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        let (requires_grad, grad) = marks(self.tensor.bind(py))?;
        Ok(requires_grad.is(&self.requires_grad) && grad.is(&self.grad))
    }
}

fn marks<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = tensor.py();
    Ok((tensor.getattr(intern!(py, "requires_grad"))?, tensor.getattr(intern!(py, "grad"))?))
}

#[pymethods]
impl PyWatch {
    #[new]
    fn new(
        parameters: Vec<Bound<'_, PyAny>>,
        containers: Vec<(Py<PyAny>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let parameters = parameters.iter().map(Parameter::new).collect::<PyResult<_>>()?;
        Ok(PyWatch { parameters, containers })
    }

    /// Whether all is as it was: each parameter has the same flag and the same gradient object,
    /// each container the same objects as its copy.
    pub(super) fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        for parameter in &self.parameters {
            if !parameter.holds(py)? {
                return Ok(false);
            }
        }
        for (container, copy) in &self.containers {
            if !is_same(container.bind(py), copy.bind(py))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for Parameter { tensor, requires_grad, grad } in &self.parameters {
            visit.call(tensor)?;
            visit.call(requires_grad)?;
            visit.call(grad)?;
        }
        self.containers.iter().try_for_each(|(container, copy)| {
            visit.call(container)?;
            visit.call(copy)
        })
    }
}

/// Whether two containers of one type hold the very same objects; sets: equal ones.
fn is_same(container: &Bound<'_, PyAny>, copy: &Bound<'_, PyAny>) -> PyResult<bool> {
    if container.len()? != copy.len()? {
        return Ok(false);
    }
    if let (Ok(now), Ok(then)) = (container.cast::<PyList>(), copy.cast::<PyList>()) {
        return Ok(now.iter().zip(then.iter()).all(|(a, b)| a.is(&b)));
    }
    if let (Ok(now), Ok(then)) = (container.cast::<PyDict>(), copy.cast::<PyDict>()) {
        let same = now.iter().zip(then.iter()).all(|((k, v), (l, w))| k.is(&l) && v.is(&w));
        return Ok(same);
    }
    if container.is_instance_of::<PySet>() {
        return container.eq(copy);
    }
    for pair in container.try_iter()?.zip(copy.try_iter()?) {
        if !pair.0?.is(&pair.1?) {
            return Ok(false);
        }
    }
    Ok(true)
}

//! Detects changes to a model's attributes that nothing reports.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::error::locked;

/// Where a program keeps a value.
struct Place {
    owner: Py<PyAny>,
    /// An attribute name or a dictionary key.
    key: Py<PyAny>,
    value: Mutex<Py<PyAny>>,
}

impl Place {
    fn value(&self) -> MutexGuard<'_, Py<PyAny>> {
        locked(&self.value)
    }
}

/// A snapshot of the items of containers and of other values that programs read.
#[pyclass(name = "Watch", module = "singa_rs._core", frozen)]
pub(super) struct PyWatch {
    /// Containers, each with a shallow copy.
    containers: Vec<(Py<PyAny>, Py<PyAny>)>,
    places: Vec<Place>,
    /// Arrays, each with the result of `looks` for it.
    arrays: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// Containers of which only the length is checked.
    lengths: Vec<(Py<PyAny>, usize)>,
    looks: Py<PyAny>,
    /// The sentinel for a missing value.
    nothing: Py<PyAny>,
}

#[pymethods]
impl PyWatch {
    #[new]
    fn new(
        containers: Vec<(Py<PyAny>, Py<PyAny>)>,
        places: Vec<(Py<PyAny>, Py<PyAny>, Py<PyAny>)>,
        arrays: Vec<(Py<PyAny>, Py<PyAny>)>,
        lengths: Vec<(Py<PyAny>, usize)>,
        looks: Py<PyAny>,
        nothing: Py<PyAny>,
    ) -> Self {
        let place =
            |(owner, key, value): (_, _, Py<PyAny>)| Place { owner, key, value: value.into() };
        let places = places.into_iter().map(place).collect();
        PyWatch { containers, places, arrays, lengths, looks, nothing }
    }

    /// Adopts a value that the caller has written to a place.
    fn follow(
        &self,
        owner: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: Py<PyAny>,
    ) -> PyResult<()> {
        for place in self.places.iter().filter(|place| place.owner.is(owner)) {
            if place.key.bind(owner.py()).eq(key)? {
                let _before = std::mem::replace(&mut *place.value(), value);
                break;
            }
        }
        Ok(())
    }

    /// Whether nothing has changed: each container and each place holds the same objects, `looks`
    /// returns the same for each array, and the other containers have the same lengths.
    pub(super) fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        for (container, copy) in &self.containers {
            if !is_same(container.bind(py), copy.bind(py))? {
                return Ok(false);
            }
        }
        for place in &self.places {
            let now = found(place.owner.bind(py), place.key.bind(py))?;
            let now = now.as_ref().unwrap_or_else(|| self.nothing.bind(py));
            if !now.is(&*place.value()) {
                return Ok(false);
            }
        }
        for (array, looks) in &self.arrays {
            if !self.looks.bind(py).call1((array,))?.eq(looks)? {
                return Ok(false);
            }
        }
        for (container, length) in &self.lengths {
            if container.bind(py).len()? != *length {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (object, copy) in self.containers.iter().chain(&self.arrays) {
            visit.call(object)?;
            visit.call(copy)?;
        }
        visit.call(&self.looks)?;
        visit.call(&self.nothing)?;
        self.lengths.iter().try_for_each(|(container, _)| visit.call(container))?;
        self.places.iter().try_for_each(|place| {
            visit.call(&place.owner)?;
            visit.call(&place.key)?;
            place.value.try_lock().map_or(Ok(()), |value| visit.call(&*value))
        })
    }
}

/// The value at a place, if there is one.
fn found<'py>(
    owner: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match owner.cast_exact::<PyDict>() {
        Ok(owner) => owner.get_item(key),
        Err(_) => Ok(owner.getattr_opt(key.cast::<PyString>()?)?),
    }
}

/// Whether two containers of one type, other than sets, hold the same objects, by identity.
fn is_same(container: &Bound<'_, PyAny>, copy: &Bound<'_, PyAny>) -> PyResult<bool> {
    if container.len()? != copy.len()? {
        return Ok(false);
    }
    if let (Ok(now), Ok(then)) = (container.cast::<PyList>(), copy.cast::<PyList>()) {
        return Ok(now.iter().zip(then.iter()).all(|(a, b)| a.is(&b)));
    }
    if let (Ok(now), Ok(then)) = (container.cast_exact::<PyDict>(), copy.cast_exact::<PyDict>()) {
        let same = now.iter().zip(then.iter()).all(|((k, v), (l, w))| k.is(&l) && v.is(&w));
        return Ok(same);
    }
    // Dictionaries of other classes may have their own order.
    let (now, then) = match container.is_instance_of::<PyDict>() {
        true => (container.call_method0("values")?, copy.call_method0("values")?),
        false => (container.clone(), copy.clone()),
    };
    Ok(is_same_row(&now, &then)? && (now.is(container) || is_same_row(container, copy)?))
}

/// Whether two iterables yield the same objects, by identity.
fn is_same_row(now: &Bound<'_, PyAny>, then: &Bound<'_, PyAny>) -> PyResult<bool> {
    for pair in now.try_iter()?.zip(then.try_iter()?) {
        if !pair.0?.is(&pair.1?) {
            return Ok(false);
        }
    }
    Ok(true)
}

//! A view of a block as a Python object, the base of the package's `Tensor`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::args::Extents;
use super::device::{self, PyDevice};
use super::divided;
use super::dtype::{self, PyDType};
use super::error::GraphError;
use super::exit;
use super::journal;
use crate::block::{Block, note_change};
use crate::device::{Account, heap};
use crate::dtype::DType;
use crate::engine::{self, record};
use crate::error::{Error, locked};
use crate::kernels;
use crate::view::{Meta, View};

/// A view of a block: a tensor without names and gradients.
#[pyclass(module = "singa_rs._core", frozen, subclass, weakref)]
pub(super) struct Handle {
    /// Set once by `__init__` or by the operation that made the tensor; `rebind` replaces it.
    view: Mutex<Option<View>>,
    /// The recording it was created in; see [`journal::birth`].
    born: u64,
    /// The step that it was created in; see [`journal::step`].
    pub(super) step: Option<u64>,
    /// Whether changes of its attributes count among the `changes`.
    is_watched: AtomicBool,
}

impl Handle {
    fn of(view: Option<View>) -> Self {
        Handle {
            view: Mutex::new(view),
            born: journal::birth(),
            step: journal::step(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// The recording it was created in; see [`journal::birth`].
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    /// Restores a view that a recording replaced; returns the other, as [`Handle::set`] does.
    pub(super) fn replace(&self, view: Option<View>) -> Option<View> {
        std::mem::replace(&mut *locked(&self.view), view)
    }

    /// The handle's view.
    pub(super) fn view(&self) -> PyResult<View> {
        self.view_in("tensor")
    }

    /// The same for an operation that errors name. Elements that ranks have parts of are gathered.
    pub(super) fn view_in(&self, op: &str) -> PyResult<View> {
        let view = self.place_in(op)?;
        if view.block.divided().is_some() { divided::gathered(view, op) } else { Ok(view) }
    }

    /// The handle's view, whether or not its elements are divided among processes.
    pub(super) fn place(&self) -> PyResult<View> {
        self.place_in("tensor")
    }

    /// The same for operation `op`.
    pub(super) fn place_in(&self, op: &str) -> PyResult<View> {
        exit::keep_thread();
        heap::check()?;
        let view = locked(&self.view);
        let mut view = view.clone().ok_or_else(|| no_value(op))?;
        // A tensor created in a recording shows the results of its graph's latest run.
        if let Some(block) = view.block.current() {
            view.block = block;
        }
        Ok(view)
    }

    /// Points the handle to a view; returns the previous one. Dropping the last view of another
    /// library's memory runs its owner's code, so the caller drops it after releasing the lock.
    fn set(&self, view: View) -> Option<View> {
        self.replace(Some(view))
    }

    /// A property of the view. No Python object is created under the lock, since that may trigger
    /// garbage collection, and a finaliser may use the same handle.
    pub(super) fn ask<T>(&self, what: impl FnOnce(&View) -> T) -> PyResult<T> {
        exit::keep_thread();
        let view = locked(&self.view);
        view.as_ref().map(what).ok_or_else(|| no_value("tensor"))
    }

    /// The id of its device.
    pub(super) fn device_id(&self) -> PyResult<i32> {
        self.ask(|view| view.block.device().id())
    }

    /// A property of the block.
    fn ask_block<T>(&self, what: impl FnOnce(&Arc<Block>) -> T) -> PyResult<T> {
        match self.ask(|view| view.block.current())? {
            Some(latest) => Ok(what(&latest)),
            None => self.ask(|view| what(&view.block)),
        }
    }

    /// The view's meta.
    pub(super) fn meta(&self) -> PyResult<Arc<Meta>> {
        self.ask(|view| view.meta.clone())
    }
}

fn no_value(op: &str) -> PyErr {
    GraphError::new_err(format!(
        "{op}: got a tensor that has no value yet: an unfilled Placeholder, or one whose __init__ \
         was not called"
    ))
}

#[pymethods]
impl Handle {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyAny>>) -> Self {
        Handle::of(None)
    }

    /// A tensor in a new block, which reads as zeros until it is written.
    #[pyo3(signature = (shape, device=None, dtype=None))]
    fn __init__(
        &self,
        shape: Extents,
        device: Option<&PyDevice>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        heap::check()?;
        let Extents(shape) = shape;
        shape.checked_numel("tensor")?;
        let dtype = dtype.map_or(Ok(DType::Float32), dtype::parse)?;
        let device = device.map_or(kernels::host(), |d| &d.0);
        self.set(record::fresh(device, &Arc::new(Meta::new(dtype, shape))));
        Ok(())
    }

    /// Extents, a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.meta()?.shape.iter())
    }

    /// Reshapes a tensor in place; the tape is notified.
    #[setter]
    fn set_shape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.call_method1(intern!(slf.py(), "_set_shape"), (shape,)).map(drop)
    }

    /// Strides in elements, a tuple.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.meta()?.strides.iter())
    }

    /// Element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        dtype::object(py, self.meta()?.dtype)
    }

    /// The device of the tensor.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDevice>> {
        device::object(py, self.ask(|view| view.block.device().clone())?)
    }

    /// The number of elements.
    #[getter]
    fn numel(&self) -> PyResult<usize> {
        Ok(self.meta()?.numel())
    }

    /// The size of the elements in bytes.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.meta()?.bytes())
    }

    /// The number of dimensions.
    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.meta()?.shape.rank())
    }

    /// How many writes have been submitted to the tensor's block.
    #[getter]
    fn version(&self) -> PyResult<u64> {
        self.ask_block(|block| block.version())
    }

    /// The offset of the tensor within its block, in elements.
    #[getter]
    fn offset(&self) -> PyResult<usize> {
        Ok(self.place()?.offset)
    }

    /// A number that is the same for all tensors that share the block, and differs from that of any
    /// other live block.
    #[getter]
    pub(super) fn block_id(&self) -> PyResult<usize> {
        self.ask_block(|block| Arc::as_ptr(block).addr())
    }

    /// Whether the block has memory allocated, or each process that has a share of it does.
    #[getter]
    fn is_allocated(&self) -> PyResult<bool> {
        self.ask_block(|block| block.is_allocated() || block.divided().is_some())
    }

    /// Whether it was created in a recording by an operation that no graph has run yet.
    #[getter]
    fn is_recorded(&self) -> PyResult<bool> {
        self.ask_block(|block| block.recorded_at().is_some())
    }

    /// Where in the program that operation is.
    #[getter(_recorded_at)]
    fn recorded_at(&self) -> PyResult<Option<String>> {
        self.ask_block(|block| Some(block.recorded_at()?.to_string()))
    }

    /// Whether it shows the latest run of a graph, which rebinds it to other memory each time.
    #[getter]
    fn shows_runs(&self) -> PyResult<bool> {
        self.ask(|view| view.block.shows_runs())
    }

    /// Whether the elements are contiguous in row-major order.
    fn is_contiguous(&self) -> PyResult<bool> {
        Ok(self.meta()?.is_contiguous())
    }

    /// Whether both tensors share memory.
    fn shares_block(&self, other: &Handle) -> PyResult<bool> {
        Ok(self.block_id()? == other.block_id()?)
    }

    /// A new tensor object on the same view.
    pub(super) fn alias<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Handle>> {
        make(py, self.place()?)
    }

    /// Rebinds this object to the view of another one.
    fn rebind(slf: &Bound<'_, Self>, other: &Handle) -> PyResult<()> {
        let now = other.place()?;
        let block = now.block.clone();
        let before = slf.get().set(now);
        journal::note_view(slf, before.clone());
        if let Some(before) = before {
            let left = before.block.current().unwrap_or(before.block);
            if !Arc::ptr_eq(&left, &block) {
                left.note_departure();
                if let Some(divided) = left.divided() {
                    divided.place().share.note_departure();
                }
            }
            note_change();
        }
        Ok(())
    }

    /// As for any object; a recording notes the old value, and changes of attributes that graphs
    /// depend on count among the `changes`.
    fn __setattr__(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        journal::note_attribute(slf, name)?;
        if slf.get().is_watched.load(Relaxed) {
            note_other(slf, name, Some(value))?;
        }
        set_generic(slf, name, value.as_ptr())
    }

    fn __delattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        journal::note_attribute(slf, name)?;
        if slf.get().is_watched.load(Relaxed) {
            note_other(slf, name, None)?;
        }
        set_generic(slf, name, std::ptr::null_mut())
    }

    /// From here on, changes of its attributes count among the `changes`.
    #[pyo3(name = "_watch")]
    fn watch(&self) {
        self.is_watched.store(true, Relaxed);
    }

    /// Moves the block to another account of the ledger: `parameters`, `states`, `results`,
    /// `staging`.
    fn set_account(&self, name: &str) -> PyResult<()> {
        let of_tensors = [Account::Parameters, Account::States, Account::Results, Account::Staging];
        let account = of_tensors.into_iter().find(|a| a.name() == name);
        let want = "parameters, states, results or staging";
        let account = account.ok_or_else(|| Error::value("set_account", name, want))?;
        let block = self.place()?.block;
        engine::of(block.device())?;
        block.set_account(account);
        Ok(())
    }
}

/// Notes a change if the attribute's new value is a different object.
fn note_other(
    tensor: &Bound<'_, Handle>,
    name: &Bound<'_, PyString>,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let attributes = tensor.getattr(intern!(tensor.py(), "__dict__"))?.cast_into::<PyDict>()?;
    let is_same = match (attributes.get_item(name)?, value) {
        (Some(now), Some(value)) => now.is(value),
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        note_change();
    }
    Ok(())
}

/// Python's default attribute assignment; null deletes.
#[allow(unsafe_code)]
fn set_generic(
    tensor: &Bound<'_, Handle>,
    name: &Bound<'_, PyString>,
    value: *mut pyo3::ffi::PyObject,
) -> PyResult<()> {
    // SAFETY: all are live objects, except for the value, which may be null.
    let done = unsafe { pyo3::ffi::PyObject_GenericSetAttr(tensor.as_ptr(), name.as_ptr(), value) };
    if done == 0 { Ok(()) } else { Err(PyErr::fetch(tensor.py())) }
}

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Registers the class of result tensors.
#[pyfunction]
fn set_tensor_class(class: &Bound<'_, PyType>) -> PyResult<()> {
    if !class.is_subclass_of::<Handle>()? {
        return Err(pyo3::exceptions::PyTypeError::new_err(
            "set_tensor_class: want a subclass of Handle",
        ));
    }
    CLASS.set(class.py(), class.clone().unbind()).map_err(|_| {
        pyo3::exceptions::PyRuntimeError::new_err("set_tensor_class: the class is set already")
    })
}

/// The tensor behind an object, if its class is exactly that of result tensors.
pub(super) fn exact<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Handle> {
    let class = CLASS.get(object.py())?;
    let is_exact = object.get_type_ptr() == class.bind(object.py()).as_type_ptr();
    is_exact.then(|| object.cast::<Handle>().ok().map(Bound::get)).flatten()
}

/// A tensor object for a view. Its `__init__` is skipped: the view is all that it needs.
pub(super) fn make(py: Python<'_>, view: View) -> PyResult<Bound<'_, Handle>> {
    let Some(class) = CLASS.get(py) else {
        return Bound::new(py, Handle::of(Some(view)));
    };
    let object = instantiate(class.bind(py))?;
    object.get().set(view);
    Ok(object)
}

/// `class.__new__(class)` through the type's slot, which is several times faster than the call.
#[allow(unsafe_code)]
fn instantiate<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, Handle>> {
    let py = class.py();
    let empty = PyTuple::empty(py);
    // SAFETY: the class derives from Handle, so its `tp_new` slot is Handle's or a Python
    // override of it, and either takes the class, a tuple and no keywords.
    unsafe {
        let slot = pyo3::ffi::PyType_GetSlot(class.as_type_ptr(), pyo3::ffi::Py_tp_new);
        let new: pyo3::ffi::newfunc = std::mem::transmute(slot);
        let object = new(class.as_type_ptr(), empty.as_ptr(), std::ptr::null_mut());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into()?)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<Handle>(module)?;
    module.add_function(wrap_pyfunction!(set_tensor_class, module)?)
}

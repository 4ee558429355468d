//! Tensors lent to other libraries.
#![allow(unsafe_code)]

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::smallvec;

use super::super::exit;
use super::super::tensor::Handle;
use super::{
    CPU, DlDevice, DlTensor, IS_COPIED, MAJOR, Managed, Unversioned, Versioned, dl_type, place,
};
use crate::engine::{self, Engine, record};
use crate::kernels::gpu::Gpu;
use crate::view::View;

/// What an exported tensor must keep alive while the consumer holds it.
struct Export {
    view: View,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Export {
    fn new(view: &View) -> Box<Self> {
        let shape = view.meta.shape.iter().map(|&n| n as i64).collect();
        let strides = view.meta.strides.iter().map(|&n| n as i64).collect();
        view.block.lend();
        Box::new(Export { view: view.clone(), shape, strides })
    }

    fn tensor(&mut self, data: *mut u8) -> DlTensor {
        let (meta, (kind, id)) = (&self.view.meta, place(self.view.block.device()));
        DlTensor {
            data: data.cast(),
            device: DlDevice { kind, id },
            rank: meta.shape.rank() as i32,
            dtype: dl_type(meta.dtype),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: (self.view.offset * meta.dtype.size()) as u64,
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        self.view.block.take_back();
    }
}

unsafe extern "C" fn delete<T: Managed>(managed: *mut T) {
    // SAFETY: made by `Box::into_raw` in `capsule`, and deleted once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    unsafe { drop(Box::from_raw(managed.parts().1.cast::<Export>())) };
}

/// Deletes the structure that a capsule holds if no consumer took it.
unsafe extern "C" fn capsule_dropped<T: Managed>(capsule: *mut ffi::PyObject) {
    let name = T::NAMES[0].as_ptr();
    // SAFETY: a consumer renames the capsule, so an unchanged name means that the structure is
    // still the exporter's to delete.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name) == 1 {
            delete::<T>(ffi::PyCapsule_GetPointer(capsule, name).cast());
        }
    }
}

#[pymethods]
impl Handle {
    /// The tensor's memory as a DLPack capsule, shared (copied where `copy` is true). What a GPU has
    /// been given to do is done before, unless `stream` is -1.
    ///
    /// Writes by the consumer escape the tape's version check.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view = self.target_in("__dlpack__")?;
        let place = place(view.block.device());
        if let Some(wanted) = dl_device.filter(|wanted| *wanted != place) {
            let message = format!(
                "__dlpack__: got a tensor on {:?} for DLPack's device {wanted:?}; copy it: \
                 t.to(device)",
                view.block.device()
            );
            return Err(PyBufferError::new_err(message));
        }
        if place.0 == CPU && stream.is_some() {
            let message = "__dlpack__: the tensor is on the CPU, which has no streams";
            return Err(PyBufferError::new_err(message));
        }
        record::check_read("__dlpack__", &view)?;
        let engine = engine::of(view.block.device())?;
        let is_copied = copy == Some(true);
        let view = if is_copied { copied(py, engine, view)? } else { view };
        let data = touched(py, engine, &view)?;
        let is_unordered =
            stream.is_some_and(|stream| stream.extract::<i64>().is_ok_and(|number| number == -1));
        if let Some(gpu) = Gpu::of(view.block.device()).filter(|_| !is_unordered) {
            exit::detach(py, || gpu.wait())?;
        }
        match max_version.is_some_and(|(major, _)| major >= MAJOR) {
            true => capsule::<Versioned>(py, &view, data, if is_copied { IS_COPIED } else { 0 }),
            false => capsule::<Unversioned>(py, &view, data, 0),
        }
    }

    /// (1, 0): the CPU; or (2, n): a GPU.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        Ok(place(self.target_in("__dlpack_device__")?.block.device()))
    }
}

fn copied(py: Python<'_>, engine: &Engine, view: View) -> PyResult<View> {
    let kind = crate::ops::copy::Copy.into();
    Ok(exit::detach(py, || engine.submit(engine.turn(), &kind, smallvec![view]))?[0].clone())
}

/// The address of its block. A pending initialiser runs in the device's turn, without the GIL.
fn touched(py: Python<'_>, engine: &Engine, view: &View) -> PyResult<*mut u8> {
    if !view.block.is_allocated() {
        let touch = || {
            let _turn = engine.turn();
            view.block.to_touch().map(drop)
        };
        exit::detach(py, touch)?;
    }
    Ok(view.block.to_touch()?.as_ptr())
}

fn capsule<'py, T: Managed>(
    py: Python<'py>,
    view: &View,
    data: *mut u8,
    flags: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let mut export = Export::new(view);
    let tensor = export.tensor(data);
    let made = T::new(tensor, Box::into_raw(export).cast(), Some(delete::<T>), flags);
    let (made, name) = (Box::into_raw(Box::new(made)), T::NAMES[0].as_ptr());
    // SAFETY: the pointer is a structure of the kind that the name denotes, and the destructor
    // frees it unless a consumer took it; without a capsule, it is deleted here.
    unsafe {
        let object = ffi::PyCapsule_New(made.cast(), name, Some(capsule_dropped::<T>));
        let capsule = Bound::from_owned_ptr_or_err(py, object);
        capsule.inspect_err(|_| delete::<T>(made))
    }
}

//! Python's file objects as readers and writers, for threads that do not hold the GIL.

use std::io::{self, Read, Write};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::exit;

/// A binary file object; keeps the exception of the call that failed.
pub(super) struct PyFile {
    file: Py<PyAny>,
    raised: Option<PyErr>,
}

impl PyFile {
    pub(super) fn new(file: &Bound<'_, PyAny>) -> PyFile {
        PyFile { file: file.clone().unbind(), raised: None }
    }

    /// What an operation on the file returned; the exception of the file itself goes before the
    /// error that followed from it.
    pub(super) fn finish<T>(self, done: crate::Result<T>) -> PyResult<T> {
        match (done, self.raised) {
            (Err(_), Some(raised)) => Err(raised),
            (done, _) => Ok(done?),
        }
    }

    fn with<T>(&mut self, f: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        let made = exit::attach(|py| f(self.file.bind(py)));
        let made = made.ok_or_else(|| io::Error::other("the interpreter is shutting down"))?;
        made.map_err(|error| {
            let text = error.to_string();
            self.raised = Some(error);
            io::Error::other(text)
        })
    }
}

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|file| {
            let bytes = file.call_method1("read", (buffer.len(),))?.cast_into::<PyBytes>()?;
            let bytes = bytes.as_bytes();
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|file| {
            let written = file.call_method1("write", (PyBytes::new(file.py(), bytes),))?;
            // What is unbuffered may write less; some objects do not say how much they did.
            Ok(written.extract().map_or(bytes.len(), |count: usize| count.min(bytes.len())))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(|file| file.call_method0("flush").map(drop))
    }
}

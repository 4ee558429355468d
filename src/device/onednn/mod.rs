//! Finding, opening and calling oneDNN's C API (version 3, built for OpenMP). Its code runs on the
//! calling thread alone: kernels cut their work into chunks for the thread team.
//!
//! The library is looked for in this order: the file that `SINGA_RS_ONEDNN` names, files passed to
//! [`offer`] (from pip's wheel `onednn-cpu-gomp`), the active virtual environment, the system's
//! library folders. `SINGA_RS_KERNELS=portable` disables it.
#![allow(unsafe_code)]

pub mod api;
mod convolution;
mod descriptor;
mod find;
mod library;
mod matmul;
mod primitive;
mod shortage;
mod signals;
mod single;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use super::team;
use crate::error::locked;
pub use convolution::{Axes, Propagation, Tensors, Window, convolution};
pub use descriptor::{Descriptor, is_supported};
pub use find::offer;
pub use library::Library;
pub use matmul::{Addend, matmul};
pub use primitive::{Choice, Gate, Primitive, reorder};

/// How to install the library and its OpenMP runtime.
const ADVICE: &str = "the portable kernels are used, which are several times slower. Install it \
                      with `pip install onednn-cpu-gomp`, and the OpenMP runtime that it needs \
                      with `apt-get install libgomp1` (or your system's package of libgomp)";

static WARNING: Mutex<Option<String>> = Mutex::new(None);

/// The library, opened on first use; `None` if it is missing or disabled.
pub fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(open).as_ref()
}

/// Whether oneDNN's kernels are used.
pub fn is_available() -> bool {
    library().is_some()
}

/// `onednn X.Y`, or `portable` if the library is not used.
pub fn name() -> String {
    library().map_or_else(|| "portable".into(), |l| format!("onednn {}.{}", l.major, l.minor))
}

/// A warning for the user about missing libraries, returned only once per process. Opens the library
/// if it is not open.
pub fn take_warning() -> Option<String> {
    library();
    locked(&WARNING).take()
}

fn warn(text: String) {
    log::warn!("{text}");
    let mut warning = locked(&WARNING);
    let before = warning.take().map(|before| before + "; ");
    *warning = Some(before.unwrap_or_default() + &text);
}

fn open() -> Option<Library> {
    // Opening starts OpenMP, which may bind this thread, so count the processors first.
    team::allowed_threads();
    find::complaint().into_iter().for_each(warn);
    match find::choice() {
        find::Choice::Portable => None,
        find::Choice::Named(path) => {
            let opened = Library::open(&path);
            opened.map_err(|why| warn(format!("oneDNN at {path:?}: {why}; {ADVICE}"))).ok()
        }
        find::Choice::Search(paths) => search(&paths),
    }
}

fn search(paths: &[PathBuf]) -> Option<Library> {
    let mut reasons = Vec::new();
    for path in paths {
        match Library::open(path) {
            Ok(library) => return Some(library),
            Err(why) => reasons.push(format!("{path:?}: {why}")),
        }
    }
    let has_wheel = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if has_wheel || !reasons.is_empty() {
        let found = if reasons.is_empty() { "not found".into() } else { reasons.join("; ") };
        warn(format!("oneDNN, which does convolution and matrix products: {found}; {ADVICE}"));
    }
    None
}

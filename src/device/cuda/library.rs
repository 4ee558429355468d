//! Libraries of CUDA beside the driver, opened at run time.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::refusal;
use crate::error::{Result, locked};

/// An open library, which is never closed.
pub(super) type Open = &'static libloading::Library;

/// Where systems keep CUDA's libraries, beside those that the loader knows.
const FOLDERS: [&str; 3] = ["", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/"];

static OFFERED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Offers a path to one of the libraries, such as a file that an installed package's metadata
/// lists.
pub fn offer(path: PathBuf) {
    locked(&OFFERED).push(path);
}

/// Where a library may be.
pub(super) struct Places {
    /// The variable that names its file; empty for none.
    pub variable: &'static str,
    /// What its files are called, the newest first.
    pub names: &'static [&'static str],
}

impl Places {
    /// Opens what the environment names, or else the first that is offered or found; None where
    /// there is none.
    ///
    /// # Errors
    /// Those of `opened`, for what the environment names.
    pub(super) fn find<T>(&self, opened: impl Fn(&Path) -> Result<T>) -> Result<Option<T>> {
        match std::env::var_os(self.variable) {
            Some(path) if path.is_empty() => return Ok(None),
            Some(path) => return opened(path.as_ref()).map(Some),
            None => {}
        }
        let is_one = |path: &PathBuf| self.names.iter().any(|name| path.ends_with(name));
        let offered: Vec<PathBuf> = locked(&OFFERED).clone();
        let of_system =
            FOLDERS.iter().flat_map(|folder| self.names.iter().map(move |name| (folder, name)));
        let of_system = of_system.map(|(folder, name)| PathBuf::from(format!("{folder}{name}")));
        let mut places = offered.into_iter().filter(is_one).chain(of_system);
        Ok(places.find_map(|path| opened(&path).ok()))
    }
}

/// Opens a library.
///
/// # Errors
/// [`crate::Error::Device`] where the file is none.
pub(super) fn open(path: &Path) -> Result<Open> {
    // SAFETY: the user, or the package manager, vouches for the file.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|error| refusal(error.to_string()))?;
    Ok(Box::leak(Box::new(library)))
}

/// A function of a library.
///
/// # Errors
/// [`crate::Error::Device`] where the library lacks it.
///
/// # Safety
/// `F` is the type of the function of that name.
pub(super) unsafe fn function<F: Copy>(library: Open, name: &str) -> Result<F> {
    let address = symbol(library, name)?;
    // SAFETY: by the caller's promise, it is a function of that type.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

fn symbol(library: Open, name: &str) -> Result<*const ()> {
    // SAFETY: only the address is looked up.
    let found = unsafe { library.get::<*const ()>(name.as_bytes()) };
    found.map(|found| *found).map_err(|error| refusal(error.to_string()))
}

//! Where to look for oneDNN: paths named by the environment or by the Python package, and the usual
//! places.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::locked;

/// The variable that names the library's file.
const PATH_VARIABLE: &str = "SINGA_RS_ONEDNN";
/// The variable that disables the library if it is `portable`.
const KERNELS_VARIABLE: &str = "SINGA_RS_KERNELS";
/// The file's name in the folders that are searched.
const FILE: &str = "libdnnl.so.3";

static OFFERED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Offers a path to the library, such as the file that an installed package's metadata lists.
/// Offers made after the library is first needed have no effect.
pub fn offer(path: PathBuf) {
    locked(&OFFERED).push(path);
}

/// What the environment requests.
pub(super) enum Choice {
    /// No library.
    Portable,
    /// This file and no other.
    Named(PathBuf),
    /// The first of these that can be opened.
    Search(Vec<PathBuf>),
}

/// What the environment requests.
pub(super) fn choice() -> Choice {
    if env::var_os(KERNELS_VARIABLE).is_some_and(|kernels| kernels == "portable") {
        return Choice::Portable;
    }
    match env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Choice::Named(path.into()),
        None => Choice::Search(candidates()),
    }
}

/// What is wrong with the environment, in words, if anything.
pub(super) fn complaint() -> Option<String> {
    let kernels = env::var_os(KERNELS_VARIABLE)?;
    let is_known = kernels.is_empty() || kernels == "portable";
    (!is_known).then(|| format!("{KERNELS_VARIABLE} is {kernels:?}, want \"portable\" or nothing"))
}

/// The existing files, as absolute paths, in the order in which they are tried.
fn candidates() -> Vec<PathBuf> {
    let offered = locked(&OFFERED).clone();
    let environment = env::var_os("VIRTUAL_ENV").map(|root| Path::new(&root).join("lib"));
    let system = [
        "/usr/local/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let folders = environment.into_iter().chain(system.map(PathBuf::from));
    let files = folders.map(|folder| folder.join(FILE));
    offered.into_iter().chain(files).filter_map(|path| path.canonicalize().ok()).collect()
}

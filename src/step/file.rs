//! Files that are replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::format;
use crate::error::{Error, Result};

/// Writes a file beside the one at `path`, then replaces that by it; permissions are kept. Where
/// the path is a symbolic link, its target is replaced.
///
/// # Errors
/// [`Error::Checkpoint`] if it cannot be written; those of `write`. The file is then as it was.
pub(super) fn replace(
    op: &'static str,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let refused = |error| refused(op, path, error);
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = beside(&target);
    let file = OpenOptions::new().write(true).create_new(true).open(&name).map_err(refused)?;
    let done = write_to(file, write, refused).and_then(|()| put(&name, &target).map_err(refused));
    if done.is_err() {
        let _ = fs::remove_file(&name); // the first error is the one to report
    }
    done
}

/// The error of an operation on a file.
pub(super) fn refused(op: &'static str, path: &Path, error: io::Error) -> Error {
    format::refusal(op, format!("{}: {error}", path.display()))
}

/// An unused name in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_to(
    file: File,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
    refused: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(refused)
}

fn put(name: &Path, target: &Path) -> io::Result<()> {
    if let Ok(before) = fs::metadata(target) {
        fs::set_permissions(name, before.permissions())?;
    }
    fs::rename(name, target)
}

//! Files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::format;
use crate::error::{Error, Result};

/// Writes a file beside the one at `path`, then replaces that by it; permissions are kept. Where
/// the path is a symbolic link, its target is replaced.
///
/// # Errors
/// [`Error::Checkpoint`] if it cannot be written, or a pipe, a device or a folder is there; those of
/// `write`. The file is then as it was.
pub(super) fn replace(
    op: &'static str,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let refused = |error| refused(op, path, error);
    if let Ok(found) = fs::metadata(path) {
        check_kind(op, path, &found)?;
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (name, file) = beside(&target).map_err(refused)?;
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

/// Checks that what is at a path is a file: a pipe may wait for ever, and a device would be lost.
pub(super) fn check_kind(op: &'static str, path: &Path, found: &fs::Metadata) -> Result<()> {
    let message = || format!("{}: not a regular file", path.display());
    crate::ensure!(found.is_file(), format::refusal(op, message()));
    Ok(())
}

/// A new file in the same folder: other threads, and processes that ended midway, have theirs.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let create = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}-{number}.tmp", std::process::id()));
        let path = path.with_file_name(name);
        let made = File::create_new(&path);
        let is_taken = made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        (!is_taken).then(|| made.map(|file| (path, file)))
    };
    (0..).find_map(create).expect("some number is free")
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
    fs::rename(name, target)?;
    // The file is complete, whether or not the system flushes its folder.
    let _ = File::open(folder(target)).and_then(|folder| folder.sync_all());
    Ok(())
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_writer_has_left_is_passed_over() {
        let folder = std::env::temp_dir().join(format!("singa_rs-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("step.srs");
        let (left, _) = beside(&path).unwrap();
        for text in ["one", "two"] {
            let write = |file: &mut BufWriter<File>| {
                file.write_all(text.as_bytes()).map_err(|error| refused("save", &path, error))
            };
            replace("save", &path, write).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(left.exists() && fs::read_dir(&folder).unwrap().count() == 2);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_files_are_replaced() {
        let folder = std::env::temp_dir().join(format!("singa_rs-socket-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for path in [&path, &folder] {
            let error = replace("save", path, |_| Ok(())).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert!(fs::read_dir(&folder).unwrap().count() == 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}

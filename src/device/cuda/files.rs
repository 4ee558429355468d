//! Compiled kernels in files, so that a process starts with those of earlier ones.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::error::Result;

/// Where the files are: `SINGA_RS_CACHE`, or a folder of the user's cache. Empty for none.
const VARIABLE: &str = "SINGA_RS_CACHE";

/// The files of kernels for one architecture, made by one version of the compiler.
pub struct Files {
    folder: Option<PathBuf>,
}

impl Files {
    /// Files for `architecture` (`sm_90`), made by `version` of the compiler.
    pub fn new(architecture: &str, version: (i32, i32)) -> Files {
        let name = format!("{architecture}-{}.{}", version.0, version.1);
        Files { folder: root().map(|root| root.join(name)) }
    }

    /// The compiled kernel of a text, from its file, or compiled now and written there. A file that
    /// cannot be read or written costs its compilation alone.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn get(&self, text: &str, compile: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let Some(folder) = &self.folder else { return compile() };
        let path = folder.join(format!("{:016x}", hash(text)));
        if let Some(image) = fs::read(&path).ok().and_then(|file| image(&file, text)) {
            return Ok(image);
        }
        let image = compile()?;
        if let Err(error) = write(folder, &path, text, &image) {
            log::debug!("{}: {error}", path.display());
        }
        Ok(image)
    }
}

fn root() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(folder.into()),
        None => {
            let cache = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
            let cache = cache.map(PathBuf::from);
            let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
            cache.or_else(home).map(|cache| cache.join("singa_rs"))
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The image in a file: the text with its length comes first, so that no two texts are mistaken for
/// each other.
fn image(file: &[u8], text: &str) -> Option<Vec<u8>> {
    let rest = file.strip_prefix(&(text.len() as u64).to_le_bytes())?;
    let image = rest.strip_prefix(text.as_bytes())?;
    (!image.is_empty()).then(|| image.to_vec())
}

/// Writes a file under a name of its own, which is renamed when it is whole.
fn write(folder: &Path, path: &Path, text: &str, image: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let own = path.with_extension(std::process::id().to_string());
    let length = (text.len() as u64).to_le_bytes();
    fs::write(&own, [&length, text.as_bytes(), image].concat())?;
    fs::rename(&own, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Files {
        Files { folder: Some(folder.to_path_buf()) }
    }

    #[test]
    fn a_kernel_is_compiled_once() {
        let folder = std::env::temp_dir().join(format!("singa_rs-files-{}", std::process::id()));
        let compiled = files(&folder).get("text", || Ok(vec![1, 2])).unwrap();
        let found = files(&folder).get("text", || panic!("it is in a file")).unwrap();
        assert_eq!((compiled, found), (vec![1, 2], vec![1, 2]));
        assert_eq!(files(&folder).get("other", || Ok(vec![3])).unwrap(), [3]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_torn_file_is_compiled_again() {
        let folder = std::env::temp_dir().join(format!("singa_rs-torn-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{:016x}", hash("text"))), "short").unwrap();
        assert_eq!(files(&folder).get("text", || Ok(vec![4])).unwrap(), [4]);
        assert_eq!(files(&folder).get("text", || panic!("it is whole now")).unwrap(), [4]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_only_time() {
        let none = files(Path::new("/proc/singa_rs"));
        assert_eq!(none.get("text", || Ok(vec![5])).unwrap(), [5]);
    }
}

//! How ranks find each other: they lock the file of their segment, and the first prepares it.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::refused;
use super::segment::{MAX_RANKS, PREAMBLE, Segment};
use crate::comm::{Fault, process};

/// The first word of a segment: this program's name.
const MAGIC: u64 = u64::from_ne_bytes(*b"singa_rs");
/// What the layout of a segment is; to be counted up when it, or what it means, changes.
const VERSION: u64 = 1;
/// Between two attempts to lock the file, which is held for microseconds.
const PAUSE: Duration = Duration::from_millis(1);

/// The words at the start of a segment, which are equal for all who may attach: the program, the
/// layout, the number of ranks and the name space of their processes.
type Preamble = [u64; 4];

/// How long a rank that leaves waits for the lock; after that the name stays.
const LEAVING: Duration = Duration::from_millis(100);

/// Maps a group's segment and takes a rank in it. The first to come prepares the file, and the last
/// removes its name, if it has one. A file of which all processes have ended before that makes room
/// for a new one.
///
/// # Errors
/// [`Fault::System`].
pub fn attach(path: &Path, rank: usize, size: usize, timeout: Duration) -> Result<Segment, Fault> {
    if size == 0 || size > MAX_RANKS || rank >= size {
        let text = format!("got rank {rank} of {size}, want a smaller one, of 1 to {MAX_RANKS}");
        return Err(refused(text));
    }
    let file = locked(path, timeout).map_err(|error| about(path, error))?;
    prepare(&file, size).map_err(|error| about(path, error))?;
    let segment = Segment::map(&file, size).map_err(|error| about(path, error))?;
    segment.member(rank).identity.claim(rank).map_err(|error| about(path, error))?;
    if segment.attach() == size {
        remove(&file, path).map_err(|error| about(path, error))?;
    }
    file.unlock().map_err(|error| about(path, error))?;
    Ok(segment)
}

/// Removes the name of a segment that nobody is left in, if it has one still: nobody else is to
/// join them. Where that fails, the next to come does it.
pub fn leave(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path);
    if let Ok(file) = file
        && lock(&file, LEAVING).is_ok()
        && is_at(&file, path).is_ok_and(|is_there| is_there)
        && is_abandoned(&file).is_ok_and(|is_dead| is_dead)
    {
        // Nobody is told: the name may be gone, or belong to another user.
        drop(remove(&file, path));
    }
}

/// The locked file of a path, without those that are abandoned.
fn locked(path: &Path, timeout: Duration) -> Result<File, String> {
    loop {
        let file = open(path).map_err(|error| error.to_string())?;
        lock(&file, timeout)?;
        if !is_at(&file, path).map_err(|error| error.to_string())? {
            continue;
        }
        if !is_abandoned(&file).map_err(|error| error.to_string())? {
            return Ok(file);
        }
        remove(&file, path).map_err(|error| error.to_string())?;
    }
}

/// Whether a file still has the name under which it was opened, or is one in memory.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file with a name is the segment of a group whose processes have all ended. Those of
/// another layout or name space are not looked at.
fn is_abandoned(file: &File) -> std::io::Result<bool> {
    let (of, namespace) = (file.metadata()?, process::namespace()?);
    let [magic, version, size, space] = read(file)?;
    let size = size as usize;
    let is_known = [magic, version, space] == [MAGIC, VERSION, namespace];
    if of.nlink() == 0 || !is_known || !(1..=MAX_RANKS).contains(&size) {
        return Ok(false);
    }
    if of.len() < Segment::bytes(size) as u64 {
        return Ok(false);
    }
    let segment = Segment::map(file, size)?;
    Ok(!(0..size).any(|rank| segment.member(rank).identity.is_there()))
}

fn about(path: &Path, error: impl Display) -> Fault {
    refused(format!("{}: {error}", path.display()))
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Locks the file; the system unlocks it when its holder dies.
fn lock(file: &File, timeout: Duration) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < timeout => sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another process has locked it for {timeout:?}"));
            }
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
}

/// Makes a segment of a new file, and refuses another group's.
fn prepare(file: &File, size: usize) -> Result<(), String> {
    let namespace = process::namespace().map_err(|error| error.to_string())?;
    let wanted = [MAGIC, VERSION, size as u64, namespace];
    let found = read(file).map_err(|error| error.to_string())?;
    if found == Preamble::default() {
        let made = allocate(file, Segment::bytes(size));
        return made.and_then(|()| write(file, wanted)).map_err(|error| error.to_string());
    }
    compare(found, wanted)
}

/// The words of a file, as far as it has any.
fn read(file: &File) -> std::io::Result<Preamble> {
    let mut bytes = [0; size_of::<Preamble>()];
    file.read_at(&mut bytes, 0)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(std::array::from_fn(|word| u64::from_ne_bytes(words[word])))
}

fn write(file: &File, words: Preamble) -> std::io::Result<()> {
    const { assert!(size_of::<Preamble>() <= PREAMBLE) };
    file.write_all_at(words.map(u64::to_ne_bytes).as_flattened(), 0)
}

/// What is wrong with a file, in words.
fn compare(found: Preamble, wanted: Preamble) -> Result<(), String> {
    if found[0] != wanted[0] {
        return Err("it is not the segment of a group".into());
    }
    let names = ["the layout's version", "the number of ranks", "the processes' name space"];
    for (name, (found, wanted)) in names.iter().zip(found[1..].iter().zip(&wanted[1..])) {
        if found != wanted {
            return Err(format!("{name} is {found} there, and {wanted} here"));
        }
    }
    Ok(())
}

/// Reserves the memory now: where there is none, an access to it would end the process.
fn allocate(file: &File, bytes: usize) -> std::io::Result<()> {
    // SAFETY: the file is open.
    let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as i64) };
    if code == 0 {
        return Ok(());
    }
    file.set_len(0)?;
    Err(std::io::Error::from_raw_os_error(code))
}

/// Removes the name of a file; one in memory alone has none.
fn remove(file: &File, path: &Path) -> std::io::Result<()> {
    if file.metadata()?.nlink() == 0 { Ok(()) } else { fs::remove_file(path) }
}

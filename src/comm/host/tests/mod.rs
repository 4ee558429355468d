mod faults;
mod model;
mod opening;
mod processes;
mod rounds;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::segment::CHUNK;
use super::*;

/// Longer than anything takes here that does not fail.
const LONG: Duration = Duration::from_secs(60);

/// An empty file in memory.
struct Memory(File);

impl Memory {
    fn new() -> Self {
        // SAFETY: the name is a string; the descriptor is new.
        let file = unsafe {
            let number = libc::memfd_create(c"ranks".as_ptr(), libc::MFD_CLOEXEC);
            assert!(number >= 0, "{}", std::io::Error::last_os_error());
            File::from_raw_fd(number)
        };
        Memory(file)
    }

    /// Where all processes find it.
    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// What each rank of a group of threads returns. Each maps the segment itself.
fn ranks<T: Send>(size: usize, timeout: Duration, part: impl Fn(Host) -> T + Sync) -> Vec<T> {
    let memory = Memory::new();
    let (path, part) = (memory.path(), &part);
    thread::scope(|scope| {
        let open = |rank| Host::open(&path, rank, size, timeout).unwrap();
        let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || part(open(rank)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// An operation of this name.
fn round(what: &str) -> Round<'_> {
    let mixed = |hash: u64, byte: u8| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte);
    Round { what, hash: what.bytes().fold(7, mixed), step: 0 }
}

//! The transport through MPI: the library that the process has loaded already, whichever it is.
//!
//! Only non-blocking functions are called, and polled: blocking ones keep a processor busy and
//! cannot be left when a rank is dead. A second communicator carries questions to ranks that do not
//! come, and failures.
#![allow(unsafe_code)]

mod api;
mod control;
mod lane;
mod link;
mod message;
mod monitor;
mod peers;
mod record;

use std::path::Path;
use std::time::Duration;

use crate::comm::{Fault, Transport};
use api::Status;
use link::Link;

/// What only the library's header, or a program compiled with it, knows: its handles and constants
/// as integers, handles extended to 64 bits in either way.
#[derive(Debug, Clone, Copy)]
pub struct Handles {
    /// The size of a handle: 4 where it is an integer, 8 where it is a pointer.
    pub handle_bytes: usize,
    /// The size of a status.
    pub status_bytes: usize,
    /// The size of the longest error text.
    pub error_string_bytes: usize,
    /// `MPI_ANY_SOURCE`.
    pub any_source: i32,
    /// `MPI_BYTE`.
    pub byte: u64,
    /// A communicator that carries only this transport's rounds, and returns errors.
    pub data: u64,
    /// Another of the same ranks, for control messages.
    pub control: u64,
}

/// Opens the transport. All ranks of the communicators do so at the same time.
///
/// `library` is a file that the process has loaded and that is, or is linked to, the MPI library.
///
/// # Safety
/// The handles are those of that library, which has been initialised for several threads
/// (`MPI_THREAD_MULTIPLE`), and is finalised only after the transport's last call.
///
/// # Errors
/// [`Fault::System`] if the library is none that can be used, [`Fault::Timeout`] if a rank does not
/// open its transport.
pub unsafe fn open(
    library: &Path,
    handles: &Handles,
    timeout: Duration,
) -> Result<Box<dyn Transport>, Fault> {
    if handles.status_bytes > size_of::<Status>() {
        let bytes = handles.status_bytes;
        return Err(Fault::System(format!("MPI: a status has {bytes} bytes, want at most 64")));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match handles.handle_bytes {
            4 => Ok(Box::new(Link::<i32>::open(library, handles, timeout)?)),
            8 => Ok(Box::new(Link::<usize>::open(library, handles, timeout)?)),
            other => Err(Fault::System(format!("MPI: a handle has {other} bytes, want 4 or 8"))),
        }
    }
}

//! One request at a time, with the memory that the library uses for it.
//!
//! Requests cannot be cancelled: the library may write a buffer long after everybody has given up
//! on the exchange. So it only ever gets buffers of lanes, which are leaked rather than freed while
//! a request is under way.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem;

use super::api::{Api, Handle, Status};
use crate::comm::Fault;

/// The communicators: control messages must not be taken for data.
#[derive(Clone, Copy)]
pub enum Channel {
    /// What rounds exchange.
    Data,
    /// Questions, answers and failures.
    Control,
}

/// What a lane can be asked to move.
#[derive(Clone, Copy)]
pub enum Transfer {
    /// Sends all it has been filled with to all, and receives as much of each.
    AllGather,
    /// Cuts what it has been filled with into a part for each rank, and receives as much of each.
    AllToAll,
    /// What the root's lane has been filled with reaches all lanes.
    Broadcast { bytes: usize, root: usize },
    /// Sends all it has been filled with.
    Send { to: usize, on: Channel },
    /// Receives at most this much, from a rank or from any.
    Receive { bytes: usize, from: Option<usize>, on: Channel },
}

/// A request, and its buffers.
pub struct Lane<H> {
    request: Option<H>,
    filled: usize,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl<H: Handle> Lane<H> {
    /// A lane without memory.
    pub fn new() -> Self {
        Lane { request: None, filled: 0, outgoing: Vec::new(), incoming: Vec::new() }
    }

    /// Where to write what the next request sends; the caller overwrites all of it.
    pub fn fill(&mut self, bytes: usize) -> &mut [u8] {
        assert!(self.request.is_none(), "the library still uses the buffers");
        grow(&mut self.outgoing, bytes);
        self.filled = bytes;
        &mut self.outgoing[..bytes]
    }

    /// What the last request has received, and maybe more behind it.
    pub fn received(&self) -> &[u8] {
        assert!(self.request.is_none(), "the library still uses the buffers");
        &self.incoming
    }

    /// Begins `transfer`.
    pub fn start(&mut self, api: &Api<H>, transfer: Transfer) -> Result<(), Fault> {
        assert!(self.request.is_none(), "the library still uses the buffers");
        match transfer {
            Transfer::AllGather => grow(&mut self.incoming, self.filled * api.size),
            Transfer::AllToAll => grow(&mut self.incoming, self.filled),
            Transfer::Broadcast { bytes, .. } => {
                grow(&mut self.outgoing, bytes);
                mem::swap(&mut self.outgoing, &mut self.incoming);
            }
            Transfer::Send { .. } => {}
            Transfer::Receive { bytes, .. } => grow(&mut self.incoming, bytes),
        }
        let mut request = H::BLANK;
        // SAFETY: the buffers are large enough, and neither move nor are freed before the request
        // is complete.
        let (call, code) = unsafe { self.call(api, transfer, &mut request) };
        api.check(call, code)?;
        self.request = Some(request);
        Ok(())
    }

    /// # Safety
    /// The buffers have room for `transfer`, and stay until the request is complete.
    unsafe fn call(
        &mut self,
        api: &Api<H>,
        transfer: Transfer,
        request: *mut H,
    ) -> (&'static str, c_int) {
        let (f, byte, data, sent) = (&api.functions, api.byte, api.data, count(self.filled));
        let (source, sink) = (self.outgoing.as_ptr().cast(), self.incoming.as_mut_ptr().cast());
        // SAFETY: guaranteed by the caller; the handles are the library's.
        unsafe {
            match transfer {
                Transfer::AllGather => (
                    "MPI_Iallgather",
                    (f.iallgather)(source, sent, byte, sink, sent, byte, data, request),
                ),
                Transfer::AllToAll => {
                    let part = sent / count(api.size);
                    let code = (f.ialltoall)(source, part, byte, sink, part, byte, data, request);
                    ("MPI_Ialltoall", code)
                }
                Transfer::Broadcast { bytes, root } => {
                    let code = (f.ibcast)(sink, count(bytes), byte, count(root), data, request);
                    ("MPI_Ibcast", code)
                }
                Transfer::Send { to, on } => {
                    let comm = api.communicator(on);
                    ("MPI_Isend", (f.isend)(source, sent, byte, count(to), 0, comm, request))
                }
                Transfer::Receive { bytes, from, on } => {
                    let (from, comm) = (from.map_or(api.any_source, count), api.communicator(on));
                    ("MPI_Irecv", (f.irecv)(sink, count(bytes), byte, from, 0, comm, request))
                }
            }
        }
    }

    /// Whether the request is complete, or there is none. Lets the library work on all requests.
    pub fn is_done(&mut self, api: &Api<H>) -> Result<bool, Fault> {
        let Some(request) = &mut self.request else { return Ok(true) };
        let (mut flag, mut status) = (0, Status::default());
        // SAFETY: the request is the library's, and its buffers are alive.
        let code = unsafe { (api.functions.test)(request, &mut flag, &mut status) };
        api.check("MPI_Test", code)?;
        if flag != 0 {
            self.request = None;
        }
        Ok(flag != 0)
    }
}

impl<H> Drop for Lane<H> {
    fn drop(&mut self) {
        if self.request.is_some() {
            mem::forget(mem::take(&mut self.outgoing));
            mem::forget(mem::take(&mut self.incoming));
        }
    }
}

/// Enlarges the buffer if it is too small. It never shrinks, so that it is zeroed only once.
fn grow(buffer: &mut Vec<u8>, bytes: usize) {
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
}

fn count(number: usize) -> c_int {
    c_int::try_from(number).expect("transfers are cut into pieces")
}

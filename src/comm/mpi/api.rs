//! The functions of the MPI library that the process has loaded, for either width of its handles.
//!
//! Implementations differ in the width of handles and in the value of every constant. Widths are a
//! type parameter, constants are the caller's [`Handles`]: nothing of one implementation is
//! compiled in. Only what the standard fixes is taken for granted (success is 0).
#![allow(unsafe_code)]

use std::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_NOW};

use super::Handles;
use super::lane::Channel;
use crate::comm::Fault;

/// A status of any implementation fits in here (they have 20 to 32 bytes).
pub type Status = [u64; 8];

/// A handle of the library: an integer, or a pointer (which is never followed here).
pub trait Handle: Copy + Send + 'static {
    /// What a request's handle is before the library writes it.
    const BLANK: Self;
    /// The handle whose value, extended to 64 bits, is `bits`.
    fn from_bits(bits: u64) -> Self;
}

impl Handle for i32 {
    const BLANK: Self = 0;
    fn from_bits(bits: u64) -> Self {
        bits as i32
    }
}

impl Handle for usize {
    const BLANK: Self = 0;
    fn from_bits(bits: u64) -> Self {
        bits as usize
    }
}

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The library's functions; all return an error code.
        #[allow(missing_docs)]
        pub struct Functions<H> {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int),*
        }

        impl<H: Handle> Functions<H> {
            /// # Safety
            /// The library is an MPI whose handles have the size of `H`, and stays open.
            unsafe fn load(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are the standard's.
                Ok(unsafe { Functions { $($name: *library.get(concat!($symbol, "\0"))?),* } })
            }
        }
    };
}

functions! {
    comm_rank = "MPI_Comm_rank"(H, *mut c_int);
    comm_size = "MPI_Comm_size"(H, *mut c_int);
    error_string = "MPI_Error_string"(c_int, *mut c_char, *mut c_int);
    iallgather = "MPI_Iallgather"(*const c_void, c_int, H, *mut c_void, c_int, H, H, *mut H);
    ialltoall = "MPI_Ialltoall"(*const c_void, c_int, H, *mut c_void, c_int, H, H, *mut H);
    ibcast = "MPI_Ibcast"(*mut c_void, c_int, H, c_int, H, *mut H);
    isend = "MPI_Isend"(*const c_void, c_int, H, c_int, c_int, H, *mut H);
    irecv = "MPI_Irecv"(*mut c_void, c_int, H, c_int, c_int, H, *mut H);
    iprobe = "MPI_Iprobe"(c_int, c_int, H, *mut c_int, *mut Status);
    test = "MPI_Test"(*mut H, *mut c_int, *mut Status);
}

/// The library's functions and the handles that they are called with.
pub struct Api<H> {
    pub(super) functions: Functions<H>,
    pub(super) byte: H,
    pub(super) data: H,
    control: H,
    pub(super) any_source: c_int,
    pub(super) rank: usize,
    pub(super) size: usize,
    error_string_bytes: usize,
}

impl<H: Handle> Api<H> {
    /// Looks the functions up in `library`, or in the libraries that it depends on.
    ///
    /// # Safety
    /// As for [`open`](super::open); handles have the size of `H`.
    ///
    /// # Errors
    /// [`Fault::System`] unless the process has loaded `library`, and if a function is missing.
    pub unsafe fn load(library: &Path, handles: &Handles) -> Result<Self, Fault> {
        let refused = |error| refused(library, &error);
        // SAFETY: what is already loaded runs no code now.
        let opened = unsafe { Library::open(Some(library), RTLD_NOW | libc::RTLD_NOLOAD) };
        // Never closed: the functions are called until the process exits.
        let file = Box::leak(Box::new(opened.map_err(refused)?));
        // SAFETY: guaranteed by the caller.
        let functions = unsafe { Functions::load(file) }.map_err(refused)?;
        let mut api = Api {
            functions,
            byte: H::from_bits(handles.byte),
            data: H::from_bits(handles.data),
            control: H::from_bits(handles.control),
            any_source: handles.any_source,
            rank: 0,
            size: 0,
            error_string_bytes: handles.error_string_bytes,
        };
        (api.rank, api.size) = api.place()?;
        Ok(api)
    }

    /// This process's rank, and the number of ranks.
    fn place(&self) -> Result<(usize, usize), Fault> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the handle is a communicator's, and the library writes the integers at once.
        let codes = unsafe {
            let rank = (self.functions.comm_rank)(self.data, &mut rank);
            (rank, (self.functions.comm_size)(self.data, &mut size))
        };
        self.check("MPI_Comm_rank", codes.0)?;
        self.check("MPI_Comm_size", codes.1)?;
        Ok((rank as usize, size as usize))
    }

    /// The communicator's handle.
    pub fn communicator(&self, channel: Channel) -> H {
        match channel {
            Channel::Data => self.data,
            Channel::Control => self.control,
        }
    }

    /// Whether a control message has arrived.
    pub fn has_control(&self) -> Result<bool, Fault> {
        let (mut flag, mut status) = (0, Status::default());
        let (source, comm) = (self.any_source, self.control);
        // SAFETY: the handle is a communicator's, and the library writes its answers at once.
        let code = unsafe { (self.functions.iprobe)(source, 0, comm, &mut flag, &mut status) };
        self.check("MPI_Iprobe", code)?;
        Ok(flag != 0)
    }

    /// Converts an error code, with the library's own words for it.
    pub fn check(&self, call: &str, code: c_int) -> Result<(), Fault> {
        if code == 0 { Ok(()) } else { Err(Fault::System(format!("{call}: {}", self.text(code)))) }
    }

    fn text(&self, code: c_int) -> String {
        let mut text = vec![0u8; self.error_string_bytes];
        let mut length = 0;
        // SAFETY: the buffer has as many bytes as the library's longest text.
        let failed = unsafe {
            (self.functions.error_string)(code, text.as_mut_ptr().cast(), &mut length) != 0
        };
        text.truncate(length as usize);
        if failed { format!("error {code}") } else { String::from_utf8_lossy(&text).into_owned() }
    }
}

fn refused(library: &Path, error: &libloading::Error) -> Fault {
    // The system's own words are in the source.
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Fault::System(format!("MPI: cannot use {}: {why}", library.display()))
}

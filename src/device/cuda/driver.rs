//! What is asked of CUDA's driver and compiler.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::convolution::Convolution;
use super::product::Product;
use crate::device::Stream;
use crate::error::Result;

/// The text of a kernel in CUDA C, without what the compiler for a GPU alone knows. Its one argument
/// is a structure named `Arguments`.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// What comes before the text of every kernel.
    pub prelude: &'a str,
    /// The kernel's own text.
    pub text: &'a str,
    /// Whether threads of a block wait for each other.
    pub has_barriers: bool,
}

/// A compiled kernel: never unloaded, so that it may be launched at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Function(pub usize);

/// How a kernel is launched: blocks and threads in one dimension each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The number of blocks.
    pub blocks: u32,
    /// The number of threads of a block.
    pub threads: u32,
    /// The stream that it is put on.
    pub stream: Stream,
}

/// Work that was captured, and can be put on a stream again by one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Captured(pub usize);

/// What libraries compute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Demand {
    /// A product of matrices.
    Product(Product),
    /// A convolution, or one of its gradients.
    Convolution(Convolution),
}

/// What a library computes, prepared for tensors of given layouts.
pub trait Call: Send + Sync {
    /// Bytes of scratch memory that it needs.
    fn scratch(&self) -> usize;

    /// What the tensors' addresses must be multiples of, in bytes.
    fn alignment(&self) -> u64 {
        1
    }

    /// Puts it on a stream, on tensors that begin at these addresses, and scratch memory.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the library refuses.
    ///
    /// # Safety
    /// The addresses are those of the tensors that it was prepared for, in order, and are valid
    /// until the stream has run it.
    unsafe fn put(&self, stream: Stream, tensors: &[u64], scratch: u64) -> Result<()>;
}

/// What a GPU is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Properties {
    /// What it is called.
    pub name: String,
    /// Its compute capability: major, minor.
    pub capability: (u32, u32),
    /// The number of its multiprocessors.
    pub processors: u32,
    /// The libraries that are used beside kernels of our own.
    pub libraries: Vec<&'static str>,
}

impl Properties {
    /// The architecture as compilers call it, such as `sm_90`.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }
}

/// One GPU, its driver and its compiler. Work that is put on a stream is done in order; copies
/// between host and GPU wait for it.
pub trait Driver: Send + Sync {
    /// Compiles a kernel, or finds it among those compiled before.
    ///
    /// # Errors
    /// [`crate::Error::Device`] with what the compiler says.
    fn compile(&self, code: Code) -> Result<Function>;

    /// Puts a kernel on a stream.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the driver refuses.
    ///
    /// # Safety
    /// `argument` is the structure that the kernel takes, and the addresses in it are valid until
    /// the stream has run it.
    unsafe fn launch(&self, function: Function, launch: Launch, argument: &[u64]) -> Result<()>;

    /// Prepares what a library computes; None where there is none that does.
    fn library(&self, demand: &Demand) -> Option<Arc<dyn Call>>;

    /// Captures what `work` puts on the stream that it is given, instead of running it. `work` asks
    /// nothing else of the driver, and its kernels have run before.
    ///
    /// # Errors
    /// Those of `work`; [`crate::Error::Device`] where the driver refuses.
    fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Captured>;

    /// Puts captured work on the stream of operations.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the driver refuses.
    ///
    /// # Safety
    /// The addresses that the work was captured with are valid until the stream has run it.
    unsafe fn replay(&self, captured: Captured) -> Result<()>;

    /// Forgets captured work.
    ///
    /// # Safety
    /// It came from [`Driver::capture`] and is not used again.
    unsafe fn release(&self, captured: Captured);

    /// Waits until a stream has done all its work.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where a kernel failed.
    fn wait(&self, stream: Stream) -> Result<()>;

    /// The stream that operations run on.
    fn stream(&self) -> Stream;

    /// What the GPU is.
    fn properties(&self) -> Properties;

    /// Allocates bytes, aligned to at least 256; None where they are refused.
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Frees memory once the streams no longer use it.
    ///
    /// # Safety
    /// `start` came from [`Driver::allocate`] and is not used again.
    unsafe fn free(&self, start: NonNull<u8>);

    /// Sets bytes of the GPU, in the order of the stream.
    ///
    /// # Safety
    /// They are writable memory of this GPU.
    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize);

    /// Copies to the host, after the stream's work so far.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where that work or the copy failed.
    ///
    /// # Safety
    /// `from` addresses as many bytes of this GPU.
    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()>;

    /// Copies from the host, after the stream's work so far.
    ///
    /// # Errors
    /// As [`Driver::download`].
    ///
    /// # Safety
    /// As [`Driver::download`].
    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()>;

    /// Reserves addresses without memory, a multiple of [`Driver::granule`]; None where refused.
    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Gives reserved addresses back, of which none is backed.
    ///
    /// # Safety
    /// They came from [`Driver::reserve`] and are not used again.
    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize);

    /// Backs one granule of reserved addresses; whether there was memory.
    ///
    /// # Safety
    /// It is reserved and not backed.
    unsafe fn map(&self, granule: NonNull<u8>) -> bool;

    /// Releases the memory of one granule.
    ///
    /// # Safety
    /// It is backed, and nobody uses it.
    unsafe fn unmap(&self, granule: NonNull<u8>);

    /// The size in which reserved addresses are backed.
    fn granule(&self) -> usize;

    /// The free and the total memory, in bytes.
    fn memory(&self) -> (usize, usize);
}

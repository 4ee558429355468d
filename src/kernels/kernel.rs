//! Prepared kernels, and the memory handed to them.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::Stream;
use crate::error::Result;

/// The most threads that a kernel uses, for which its scratch memory has room: fixed when it is
/// prepared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Width(pub usize);

/// Work of fewer units than this (bytes moved or arithmetic operations) stays on one thread.
const GRAIN: u64 = 64 << 10;

impl Width {
    /// One thread.
    pub const ONE: Width = Width(1);

    /// As many threads, up to `threads`, as can each get a worthwhile amount of work.
    pub fn of(cost: crate::ops::Cost, threads: usize) -> Width {
        let work = cost.bytes.max(cost.flops) / GRAIN;
        Width((work as usize).clamp(1, threads.max(1)))
    }

    /// How many threads share so many tasks: no more than there are, and at least one.
    pub fn seats(self, tasks: usize) -> usize {
        self.0.min(tasks).max(1)
    }
}

/// Code ready to run on tensors of given metas; immutable, and shared by equal operations.
pub trait Kernel: Send + Sync {
    /// Bytes of scratch memory needed during a run.
    fn scratch(&self) -> usize {
        0
    }

    /// The most threads that run it; [`usize::MAX`] stands for as many as it was prepared for.
    fn threads(&self) -> usize {
        usize::MAX
    }

    /// Bytes the kernel itself holds, as far as known (libraries do not report theirs).
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// Errors that depend on the data, such as a label out of range.
    fn run(&self, io: &Io) -> Result<()>;

    /// Validates only the inputs that [`crate::ops::Family::checked`] names.
    ///
    /// # Errors
    /// The same error that [`Kernel::run`] would return for these values.
    fn check(&self, _io: &Io) -> Result<()> {
        Ok(())
    }

    /// Whether [`Kernel::run`] waits for a device to check values.
    fn waits(&self) -> bool {
        false
    }

    /// Computes the outputs from inputs that [`Kernel::check`] accepts: a device's kernel is only
    /// put on the stream.
    ///
    /// # Errors
    /// As [`Kernel::run`], but for the values that are checked.
    fn put(&self, io: &Io) -> Result<()> {
        self.run(io)
    }
}

/// How a device captures work that is put on its stream.
pub trait Capturing: Send + Sync {
    /// Captures what `work` puts on the stream that it is given, instead of running it. Its kernels
    /// have run before, and none of them waits.
    ///
    /// # Errors
    /// Those of `work` and of the device.
    fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Box<dyn Captured>>;
}

/// Work that was captured; forgotten when it is dropped.
pub trait Captured: Send + Sync {
    /// Puts it on the stream of its device, by one call.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// # Safety
    /// The addresses that it was captured with are valid until the stream has run it.
    unsafe fn put(&self) -> Result<()>;
}

/// A kernel that first brings an input into a layout of its own, split in two: an input packed once
/// serves many runs.
pub struct Packing {
    /// The index of the input.
    pub input: usize,
    /// Size in bytes of the packed input.
    pub bytes: usize,
    /// Reads the input and writes its packed form.
    pub pack: Arc<dyn Kernel>,
    /// The kernel that takes the packed input instead of the original.
    pub rest: Arc<dyn Kernel>,
}

/// The memory of one kernel run, as addresses of the first elements, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct Io<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
    scratch: *mut u8,
    stream: Stream,
}

// SAFETY: an Io is addresses only; kernels that split work over threads write disjoint parts.
unsafe impl Send for Io<'_> {}
// SAFETY: as above.
unsafe impl Sync for Io<'_> {}

impl<'a> Io<'a> {
    /// Binds the addresses.
    ///
    /// # Safety
    /// For the lifetime of the value, each address is valid for the elements of the meta that the
    /// kernel was prepared with (inputs initialised), and `scratch` for the bytes the kernel
    /// requires, aligned to 64, or null if it requires none; outputs overlap nothing but inputs
    /// named by `in_place` or `state` pairs. If used only for [`Kernel::check`], addresses that the
    /// check does not read may be arbitrary.
    pub unsafe fn new(inputs: &'a [*const u8], outputs: &'a [*mut u8], scratch: *mut u8) -> Self {
        // An empty scratch has no address, but even an empty slice needs an aligned one.
        let scratch = if scratch.is_null() { NOWHERE } else { scratch };
        Io { inputs, outputs, scratch, stream: Stream::HOST }
    }

    /// The same memory for a run on a stream of its device.
    pub fn on(self, stream: Stream) -> Self {
        Io { stream, ..self }
    }

    /// The stream that the kernel submits its work to.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// The number of inputs.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Address of the first element of input `i`.
    pub fn input<T>(&self, i: usize) -> *const T {
        self.inputs[i].cast()
    }

    /// Address of the first element of output `i`.
    pub fn output<T>(&self, i: usize) -> *mut T {
        self.outputs[i].cast()
    }

    /// Address of the scratch memory, aligned to 64 bytes.
    pub fn scratch<T>(&self) -> *mut T {
        self.scratch.cast()
    }

    /// Input `i` as a slice.
    ///
    /// # Safety
    /// The input has `len` contiguous elements of type `T` from its first one on, and no output
    /// written in the meantime overlaps them.
    pub unsafe fn read<T>(&self, i: usize, len: usize) -> &'a [T] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.input(i), len) }
    }

    /// Output `i` as a slice.
    ///
    /// # Safety
    /// The output has `len` contiguous elements of type `T` from its first one on, and nothing else
    /// reads or writes them in the meantime. They may be uninitialised memory: `T` must be a plain
    /// number.
    pub unsafe fn write<T>(&self, i: usize, len: usize) -> &'a mut [T] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.output(i), len) }
    }
}

/// The address of an empty scratch.
const NOWHERE: *mut u8 = std::ptr::without_provenance_mut(64);

struct FnKernel<F> {
    scratch: usize,
    run: F,
}

impl<F: Fn(&Io) -> Result<()> + Send + Sync> Kernel for FnKernel<F> {
    fn scratch(&self) -> usize {
        self.scratch
    }

    fn run(&self, io: &Io) -> Result<()> {
        (self.run)(io)
    }
}

struct Checked<C> {
    check: C,
    kernel: Arc<dyn Kernel>,
}

impl<C: Fn(&Io) -> Result<()> + Send + Sync> Kernel for Checked<C> {
    fn scratch(&self) -> usize {
        self.kernel.scratch()
    }

    fn threads(&self) -> usize {
        self.kernel.threads()
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.kernel.bytes()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        self.kernel.run(io)
    }

    fn check(&self, io: &Io) -> Result<()> {
        (self.check)(io)
    }
}

/// A kernel that runs only if `check` passes; see [`Kernel::check`].
pub fn checked(
    check: impl Fn(&Io) -> Result<()> + Send + Sync + 'static,
    kernel: Arc<dyn Kernel>,
) -> Arc<dyn Kernel> {
    Arc::new(Checked { check, kernel })
}

/// A kernel made from a function that needs `scratch` bytes of scratch memory.
pub fn kernel(
    scratch: usize,
    run: impl Fn(&Io) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(FnKernel { scratch, run })
}

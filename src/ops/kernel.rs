//! Prepared kernels, and the memory that they are handed.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::error::Result;

/// How many threads a kernel uses: fixed when it is prepared, never by the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Width(pub usize);

/// Work below this many units (a byte moved or an arithmetic operation) stays on one thread.
const GRAIN: u64 = 64 << 10;

impl Width {
    /// One thread.
    pub const ONE: Width = Width(1);

    /// As many threads, up to `threads`, as each get a fair piece of work.
    pub fn of(cost: super::Cost, threads: usize) -> Width {
        let work = cost.bytes.max(cost.flops) / GRAIN;
        Width((work as usize).clamp(1, threads.max(1)))
    }
}

/// Code ready to run on tensors of given metas; immutable and shared by equal operations.
pub trait Kernel: Send + Sync {
    /// Work space in bytes that it needs while it runs.
    fn scratch(&self) -> usize {
        0
    }

    /// Bytes that it holds, as far as it can tell (libraries do not tell of their own).
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// Whatever only the data can show, such as a label out of range.
    fn run(&self, io: &Io) -> Result<()>;

    /// Looks only at the inputs that [`super::Family::checked`] names.
    ///
    /// # Errors
    /// The very one that [`Kernel::run`] would answer because of their values.
    fn check(&self, _io: &Io) -> Result<()> {
        Ok(())
    }
}

/// A kernel in two, where it brings an input into a layout of its own first: what is packed once
/// serves many runs.
pub struct Packing {
    /// The input.
    pub input: usize,
    /// Bytes of it in that layout.
    pub bytes: usize,
    /// Reads the input and writes it packed.
    pub pack: Arc<dyn Kernel>,
    /// The kernel with the packed input in the place of the other.
    pub rest: Arc<dyn Kernel>,
}

/// The memory of one run of a kernel: addresses of the first elements.
#[derive(Clone, Copy, Debug)]
pub struct Io<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
    scratch: *mut u8,
}

// SAFETY: an Io is addresses only; kernels that split work over threads write disjoint parts.
unsafe impl Send for Io<'_> {}
// SAFETY: as above.
unsafe impl Sync for Io<'_> {}

impl<'a> Io<'a> {
    /// Binds addresses.
    ///
    /// # Safety
    /// For as long as the value lives, each address is valid for the elements of the meta that
    /// the kernel was prepared with (inputs initialised), `scratch` for the bytes that it asked
    /// for, aligned to 64, or null where those are none; outputs overlap nothing but inputs that
    /// `in_place` or `state` pairs name. Where it is only for [`Kernel::check`], addresses that
    /// this does not look at may be any.
    pub unsafe fn new(inputs: &'a [*const u8], outputs: &'a [*mut u8], scratch: *mut u8) -> Self {
        // No bytes at all have no address, but even an empty slice has one that is aligned.
        let scratch = if scratch.is_null() { NOWHERE } else { scratch };
        Io { inputs, outputs, scratch }
    }

    /// How many inputs there are.
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

    /// Address of the work space, aligned to 64 bytes.
    pub fn scratch<T>(&self) -> *mut T {
        self.scratch.cast()
    }

    /// Input `i` as a slice.
    ///
    /// # Safety
    /// The input has `len` elements of type `T` from its first one on, without gaps, and no
    /// output that is written meanwhile shares them.
    pub unsafe fn read<T>(&self, i: usize, len: usize) -> &'a [T] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.input(i), len) }
    }

    /// Output `i` as a slice.
    ///
    /// # Safety
    /// The output has `len` elements of type `T` from its first one on, without gaps, and
    /// nothing else reads or writes them meanwhile. They may be uninitialised memory: `T` must be
    /// a plain number.
    pub unsafe fn write<T>(&self, i: usize, len: usize) -> &'a mut [T] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.output(i), len) }
    }
}

/// Where a work space of no bytes is.
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

/// A kernel that runs only where `check` finds nothing wrong; see [`Kernel::check`].
pub fn checked(
    check: impl Fn(&Io) -> Result<()> + Send + Sync + 'static,
    kernel: Arc<dyn Kernel>,
) -> Arc<dyn Kernel> {
    Arc::new(Checked { check, kernel })
}

/// A kernel from a function that needs `scratch` bytes of work space.
pub fn kernel(
    scratch: usize,
    run: impl Fn(&Io) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(FnKernel { scratch, run })
}

//! A device whose memory the host cannot access, as an accelerator's: its kernels are the CPU's, and
//! only they and the device's own copies unlock it.

use std::sync::{LazyLock, Mutex};

use super::*;
use crate::device::{Stream, pages};
use crate::error::finite::Statistics;
use crate::kernels::cpu::Cpu;
use crate::kernels::{self, Fusing, Io, Kernel, Packing, Target, Width};
use crate::ops::Meta;
use crate::ops::region::Region;

/// The addresses of all such devices of the process.
const ADDRESSES: usize = 1 << 30;
/// The memory of one device.
const BYTES: usize = 4 << 20;
/// The device's stream; any but the host's.
const STREAM: Stream = Stream(7);

/// Memory that is inaccessible unless somebody has unlocked it.
struct Memory {
    start: usize,
    state: Mutex<State>,
}

// SAFETY: addresses alone.
unsafe impl Send for State {}

#[derive(Default)]
struct State {
    /// How many of the first bytes have ever been given out.
    used: usize,
    /// Where bytes have been given back, with their number.
    free: Vec<(NonNull<u8>, usize)>,
    /// How many have unlocked it.
    open: usize,
}

static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
    let start = pages::reserve(ADDRESSES).unwrap().addr().get();
    Memory { start, state: Mutex::default() }
});

impl Memory {
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let mut state = self.state.lock().unwrap();
        if let Some(place) = state.free.iter().position(|(_, size)| *size == bytes) {
            return Some(state.free.swap_remove(place).0);
        }
        let at = state.used;
        state.used += bytes.next_multiple_of(pages::PAGE);
        assert!(state.used <= ADDRESSES, "no addresses are left");
        if state.open > 0 {
            self.protect(&state, libc::PROT_READ | libc::PROT_WRITE);
        }
        NonNull::new(std::ptr::with_exposed_provenance_mut(self.start + at))
    }

    fn give(&self, start: NonNull<u8>, bytes: usize) {
        self.state.lock().unwrap().free.push((start, bytes));
    }

    /// Unlocks the memory until the guard is dropped.
    fn open(&self) -> Open<'_> {
        let mut state = self.state.lock().unwrap();
        state.open += 1;
        if state.open == 1 {
            self.protect(&state, libc::PROT_READ | libc::PROT_WRITE);
        }
        Open(self)
    }

    fn protect(&self, state: &State, access: i32) {
        let start = std::ptr::with_exposed_provenance_mut(self.start);
        // SAFETY: the pages are reserved.
        assert_eq!(unsafe { libc::mprotect(start, state.used, access) }, 0);
    }
}

struct Open<'a>(&'a Memory);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap();
        state.open -= 1;
        if state.open == 0 {
            self.0.protect(&state, libc::PROT_NONE);
        }
    }
}

struct Sealed;

impl Backend for Sealed {
    fn is_host(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let start = MEMORY.take(bytes)?;
        // SAFETY: the memory is new.
        unsafe { self.fill(start, 0xa5, bytes) };
        Some(start)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize) {
        MEMORY.give(pointer, bytes);
    }

    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize) {
        let _open = MEMORY.open();
        // SAFETY: guaranteed by the caller.
        unsafe { start.write_bytes(value, bytes) };
    }

    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()> {
        let _open = MEMORY.open();
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from.as_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        let _open = MEMORY.open();
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>> {
        MEMORY.take(bytes)
    }

    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize) {
        MEMORY.give(start, bytes);
    }

    unsafe fn commit(&self, _start: NonNull<u8>, _bytes: usize) -> bool {
        true
    }

    unsafe fn decommit(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.fill(start, 0, bytes) };
    }

    fn available(&self, _wanted: usize) -> usize {
        BYTES
    }

    fn fillable(&self, _wanted: usize) -> usize {
        BYTES
    }

    fn addresses(&self) -> usize {
        2 * BYTES
    }

    fn total(&self) -> usize {
        BYTES
    }
}

/// A kernel that unlocks the memory while it runs.
struct Unlocked(Arc<dyn Kernel>);

impl Kernel for Unlocked {
    fn scratch(&self) -> usize {
        self.0.scratch()
    }

    fn run(&self, io: &Io) -> Result<()> {
        assert_eq!(io.stream(), STREAM);
        let _open = MEMORY.open();
        self.0.run(io)
    }

    fn check(&self, io: &Io) -> Result<()> {
        assert_eq!(io.stream(), STREAM);
        let _open = MEMORY.open();
        self.0.check(io)
    }
}

impl Target for Sealed {
    fn prepare(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Unlocked(Cpu.prepare(kind, io, width)?)))
    }

    fn packing(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
        let unlocked = |Packing { pack, rest, input, bytes }| Packing {
            pack: Arc::new(Unlocked(pack)),
            rest: Arc::new(Unlocked(rest)),
            input,
            bytes,
        };
        Ok(Cpu.packing(kind, io, width)?.map(unlocked))
    }

    fn is_producer(&self, kind: &Kind) -> bool {
        Cpu.is_producer(kind)
    }

    fn is_split(&self, kind: &Kind, io: &[&Meta]) -> bool {
        Cpu.is_split(kind, io)
    }

    fn is_blocked(&self, region: &Region, values: &[Meta]) -> bool {
        Cpu.is_blocked(region, values)
    }

    fn starts_sums(&self, region: &Region, values: &[Meta]) -> bool {
        Cpu.starts_sums(region, values)
    }

    fn gates(&self, region: &Region, values: &[Meta]) -> bool {
        Cpu.gates(region, values)
    }

    fn fusing(&self) -> Fusing {
        Cpu.fusing()
    }

    fn instructions(&self) -> &'static str {
        Cpu.instructions()
    }

    fn stream(&self) -> Stream {
        STREAM
    }

    fn computes_in(&self, dtype: DType) -> Result<bool> {
        Cpu.computes_in(dtype)
    }

    unsafe fn is_finite(&self, meta: &Meta, first: *const u8) -> bool {
        let _open = MEMORY.open();
        // SAFETY: guaranteed by the caller.
        unsafe { Cpu.is_finite(meta, first) }
    }

    unsafe fn statistics(&self, meta: &Meta, first: *const u8) -> Statistics {
        let _open = MEMORY.open();
        // SAFETY: guaranteed by the caller.
        unsafe { Cpu.statistics(meta, first) }
    }
}

/// An engine of such a device.
pub fn engine() -> Engine {
    let device = Device::new(0, "sealed", Box::new(Sealed), 1);
    kernels::register(&device, &Sealed);
    let engine = Engine::new(device);
    Engine { poisons: true, ..engine }
}

/// The lock itself: without it a test on such a device would show nothing.
#[test]
fn memory_is_accessible_only_while_it_is_unlocked() {
    let engine = engine();
    let view = tensor(&engine, &[2], &[1f32, 2.0]);
    assert_eq!(values::<f32>(&view), [1.0, 2.0]);
    let page = view.address(false).unwrap();
    let is_accessible = || {
        // SAFETY: a system call that reads the page, and fails if it may not.
        unsafe {
            let mut ends = [0; 2];
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let written = libc::write(ends[1], page.cast(), 1);
            ends.into_iter().for_each(|end| assert_eq!(libc::close(end), 0));
            written == 1
        }
    };
    assert!(!is_accessible());
    let open = MEMORY.open();
    assert!(is_accessible());
    drop(open);
    assert!(!is_accessible());
}

#[test]
fn the_threads_of_another_device_are_not_the_host_s() {
    let before = crate::device::team::size();
    let engine = engine();
    engine.set_threads(before + 1).unwrap();
    assert_eq!((engine.device().threads(), crate::device::team::size()), (before + 1, before));
}

#[test]
fn what_is_not_finite_is_found() {
    finds_what_is_not_finite(&engine());
}

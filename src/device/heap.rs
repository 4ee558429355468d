//! The C library's heap, from which small things come: prepared kernels, graphs, Python's objects.
//!
//! Rust ends the process where the heap gives nothing for a small thing. So some memory is held
//! back, and let go of when the heap has nothing else; from then on whoever begins something new is
//! refused ([`check`]), until all of it is held again. oneDNN's small things live on it, too.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use super::cpu;
use crate::error::Result;

/// The memory that is held back, in pieces, of which as many are let go of as are needed.
const PIECES: usize = 32;
const PIECE_BYTES: usize = 512 << 10;

static HELD: [AtomicPtr<c_void>; PIECES] = [const { AtomicPtr::new(null_mut()) }; PIECES];
/// How many are not held.
static MISSING: AtomicUsize = AtomicUsize::new(PIECES);

/// The heap of all that Rust allocates.
#[global_allocator]
static HEAP: Heap = Heap;

struct Heap;

// SAFETY: all memory is the system's; it is asked again where that may help.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's promise.
        let found = unsafe { System.alloc(layout) };
        // SAFETY: as above.
        if found.is_null() { again(|| unsafe { System.alloc(layout) }) } else { found }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's promise.
        let found = unsafe { System.alloc_zeroed(layout) };
        // SAFETY: as above.
        if found.is_null() { again(|| unsafe { System.alloc_zeroed(layout) }) } else { found }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: by the caller's promise; where it fails the memory stays as it is.
        let found = unsafe { System.realloc(pointer, layout, bytes) };
        match found.is_null() {
            // SAFETY: as above.
            true => again(|| unsafe { System.realloc(pointer, layout, bytes) }),
            false => found,
        }
    }
}

/// Asks again, each time with a piece less held back; null where that does not help.
#[cold]
fn again(ask: impl Fn() -> *mut u8) -> *mut u8 {
    while let_go() {
        let found = ask();
        if !found.is_null() {
            return found;
        }
    }
    null_mut()
}

/// Lets go of a piece; whether there was one.
pub fn let_go() -> bool {
    for piece in &HELD {
        let start = piece.swap(null_mut(), AcqRel);
        if !start.is_null() {
            MISSING.fetch_add(1, Relaxed);
            // SAFETY: the piece was mapped with this size, and nobody else knows it.
            unsafe { libc::munmap(start, PIECE_BYTES) };
            return true;
        }
    }
    false
}

/// Refuses to begin something new where the heap has run dry.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
#[inline]
pub fn check() -> Result<()> {
    if MISSING.load(Relaxed) == 0 { Ok(()) } else { hold() }
}

/// Holds pieces in the place of those that were let go of.
#[cold]
fn hold() -> Result<()> {
    for piece in &HELD {
        if !piece.load(Acquire).is_null() {
            continue;
        }
        let Some(start) = map(PIECE_BYTES) else {
            return Err(cpu::device().pool().out_of_memory("allocate", PIECE_BYTES));
        };
        match piece.compare_exchange(null_mut(), start, AcqRel, Relaxed) {
            Ok(_) => MISSING.fetch_sub(1, Relaxed),
            // SAFETY: the piece was mapped just now; another thread has put one in its place.
            Err(_) => unsafe { libc::munmap(start, PIECE_BYTES) as usize },
        };
    }
    Ok(())
}

/// Makes sure that something which needs so many bytes of the heap, more or less, will find them.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub fn expect(bytes: usize) -> Result<()> {
    check()?;
    let refusal = || cpu::device().pool().out_of_memory("allocate", bytes);
    if has(bytes) { Ok(()) } else { Err(refusal()) }
}

/// Whether so many bytes can be had from the system at this moment.
pub fn has(bytes: usize) -> bool {
    // SAFETY: the mapping was made here, and nobody else knows it.
    map(bytes.max(1)).is_some_and(|start| unsafe { libc::munmap(start, bytes.max(1)) } == 0)
}

/// Bytes that the heap has taken from the system and that nobody uses, as far as it can tell.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn unused() -> usize {
    /// glibc's account: ten numbers, of which the ninth is that of the free bytes.
    #[repr(C)]
    struct Account([usize; 10]);
    type Tell = unsafe extern "C" fn() -> Account;
    // SAFETY: since glibc 2.33 the function has this signature; before, there is none.
    unsafe {
        let tell = libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr());
        if tell.is_null() { 0 } else { std::mem::transmute::<*mut c_void, Tell>(tell)().0[8] }
    }
}

/// Other C libraries do not tell.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn unused() -> usize {
    0
}

/// Memory from the system, not touched.
fn map(bytes: usize) -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a mapping at an address of the system's choice.
    let start = unsafe { libc::mmap(null_mut(), bytes, access, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start)
}

/// Gives the heap's free pages back to the system. Preparing kernels takes and frees hundreds of
/// KiB, which a process of small models would keep for good. Takes about a millisecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn release() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries give pages back by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_of_is_held_again() {
        check().unwrap();
        assert!(let_go() && let_go());
        assert_eq!(MISSING.load(Relaxed), 2);
        check().unwrap();
        assert_eq!(MISSING.load(Relaxed), 0);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn the_heap_tells_what_it_has_to_give_again() {
        let held: Vec<Box<[u8; 4000]>> = (0..1000).map(|_| Box::new([1; 4000])).collect();
        let before = unused();
        let kept: Vec<_> = held.into_iter().skip(1).step_by(2).collect();
        assert!(unused() > before + 400 * 4000, "{} {before}", kept.len());
    }

    #[test]
    fn what_the_system_does_not_have_is_refused() {
        assert!(has(1 << 20) && !has(1 << 60));
        assert!(expect(1 << 20).is_ok() && expect(1 << 60).is_err());
    }

    #[test]
    fn nothing_is_null_where_even_the_last_piece_does_not_help() {
        check().unwrap();
        let asked = AtomicUsize::new(0);
        let found = again(|| {
            asked.fetch_add(1, Relaxed);
            null_mut()
        });
        assert!(found.is_null() && asked.into_inner() == PIECES);
        check().unwrap();
    }
}

//! The C library's heap, which serves small allocations: prepared kernels, graphs, Python objects.
//!
//! Rust aborts the process if a small allocation fails. So a reserve of memory is held back, and
//! released piece by piece when the heap runs dry; from then on new work is refused ([`check`])
//! until the reserve is complete again. oneDNN's small allocations rely on the reserve, too.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use super::{cpu, pages};
use crate::error::Result;

/// The reserve is split into pieces, of which only as many are released as are needed.
const PIECES: usize = 32;
const PIECE_BYTES: usize = 512 << 10;

static HELD: [AtomicPtr<u8>; PIECES] = [const { AtomicPtr::new(null_mut()) }; PIECES];
/// The number of pieces missing from the reserve.
static MISSING: AtomicUsize = AtomicUsize::new(PIECES);

/// The global allocator, used for everything that Rust allocates.
#[global_allocator]
static HEAP: Heap = Heap;

struct Heap;

// SAFETY: all memory comes from the system allocator; failed calls are retried with the same
// arguments.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { System.alloc(layout) };
        // SAFETY: as above.
        if found.is_null() { again(|| unsafe { System.alloc(layout) }) } else { found }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { System.alloc_zeroed(layout) };
        // SAFETY: as above.
        if found.is_null() { again(|| unsafe { System.alloc_zeroed(layout) }) } else { found }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; on failure the old memory is untouched.
        let found = unsafe { System.realloc(pointer, layout, bytes) };
        match found.is_null() {
            // SAFETY: as above.
            true => again(|| unsafe { System.realloc(pointer, layout, bytes) }),
            false => found,
        }
    }
}

/// Retries an allocation, releasing one piece of the reserve each time; null if that does not help.
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

/// Releases a piece of the reserve; returns whether there was one.
pub fn let_go() -> bool {
    for piece in &HELD {
        if let Some(start) = NonNull::new(piece.swap(null_mut(), AcqRel)) {
            MISSING.fetch_add(1, Relaxed);
            give_back(start);
            return true;
        }
    }
    false
}

fn give_back(piece: NonNull<u8>) {
    // SAFETY: the piece was mapped with this size, and nobody else has its address.
    unsafe { pages::unmap(piece, PIECE_BYTES) };
}

/// Refuses new work if the heap has run dry.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
#[inline]
pub fn check() -> Result<()> {
    if MISSING.load(Relaxed) == 0 { Ok(()) } else { hold() }
}

/// Refills the reserve.
#[cold]
fn hold() -> Result<()> {
    for piece in &HELD {
        if !piece.load(Acquire).is_null() {
            continue;
        }
        let Some(start) = pages::map_uncounted(PIECE_BYTES) else {
            return Err(cpu::device().pool().out_of_memory("allocate", PIECE_BYTES));
        };
        match piece.compare_exchange(null_mut(), start.as_ptr(), AcqRel, Relaxed) {
            Ok(_) => _ = MISSING.fetch_sub(1, Relaxed),
            Err(_) => give_back(start), // another thread has filled the slot
        }
    }
    Ok(())
}

/// Checks that about this many bytes of heap are available for what is about to be built.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub fn expect(bytes: usize) -> Result<()> {
    check()?;
    let refusal = || cpu::device().pool().out_of_memory("allocate", bytes);
    if has(bytes) { Ok(()) } else { Err(refusal()) }
}

/// Whether this many bytes can be mapped from the system right now.
pub fn has(bytes: usize) -> bool {
    let mapped = pages::map_uncounted(bytes.max(1));
    // SAFETY: the mapping was made here, and nobody else has its address.
    mapped.is_some_and(|start| unsafe { pages::unmap(start, bytes.max(1)) })
}

/// Free bytes that the heap has taken from the system, as far as the C library reports them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn unused() -> usize {
    /// glibc's `struct mallinfo2`: ten numbers, the ninth of which (`fordblks`) counts free bytes.
    #[repr(C)]
    struct Account([usize; 10]);
    type Tell = unsafe extern "C" fn() -> Account;
    // SAFETY: the function has this signature since glibc 2.33; earlier versions lack it.
    unsafe {
        let tell = libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr());
        if tell.is_null() { 0 } else { std::mem::transmute::<*mut libc::c_void, Tell>(tell)().0[8] }
    }
}

/// Other C libraries do not report this.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn unused() -> usize {
    0
}

/// Returns the heap's free pages to the system. Preparing kernels allocates and frees hundreds of
/// KiB, which a process with small models would otherwise keep. Takes about a millisecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn release() {
    // SAFETY: may be called at any time, from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries return pages by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release() {}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::error::locked;

    /// Held by tests that release the process's reserve.
    static RESERVE: Mutex<()> = Mutex::new(());

    #[test]
    fn what_is_let_go_of_is_held_again() {
        let _reserve = locked(&RESERVE);
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
        let _reserve = locked(&RESERVE);
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

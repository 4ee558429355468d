//! What C++ does if a small allocation fails. oneDNN does not handle failed allocations everywhere,
//! so it may use the heap's reserve.
#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

use crate::device::heap;

type Handler = Option<unsafe extern "C" fn()>;
type Set = unsafe extern "C" fn(Handler) -> Handler;

/// `std::set_new_handler` of the library's C++ runtime.
pub(super) struct Shortage {
    set: Set,
}

static IS_SET: AtomicBool = AtomicBool::new(false);
static SET: AtomicPtr<()> = AtomicPtr::new(null_mut());
/// The handler that was installed before.
static BEFORE: AtomicPtr<()> = AtomicPtr::new(null_mut());

impl Shortage {
    /// Looks up the function in a library that depends on the runtime.
    pub(super) fn load(library: &libloading::Library) -> Option<Self> {
        // SAFETY: the mangled name determines the signature.
        let set = unsafe { library.get::<Set>(c"_ZSt15set_new_handlerPFvvE") };
        Some(Shortage { set: *set.ok()? })
    }

    /// Installs a handler that releases the heap's reserve, as long as there is any.
    pub(super) fn expect(&self) {
        if !IS_SET.swap(true, AcqRel) {
            SET.store(self.set as *mut (), Release);
            // SAFETY: a plain setting of the runtime.
            let before = unsafe { (self.set)(Some(let_go)) };
            let is_ours =
                before.is_some_and(|before| before as usize == let_go as *const () as usize);
            if !is_ours {
                BEFORE.store(before.map_or(null_mut(), |before| before as *mut ()), Release);
            }
        }
    }
}

/// The handler, called whenever an allocation fails, after which C++ retries. When the reserve is
/// used up it restores the previous handler, or none, in which case C++ throws an exception.
unsafe extern "C" fn let_go() {
    if heap::let_go() {
        return;
    }
    IS_SET.store(false, Release);
    // SAFETY: both are what `expect` stored; a null handler means none.
    unsafe {
        let set = std::mem::transmute::<*mut (), Set>(SET.load(Acquire));
        set(std::mem::transmute::<*mut (), Handler>(BEFORE.load(Acquire)));
    }
}

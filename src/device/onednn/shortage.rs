//! What C++ does where the heap gives nothing for a small thing. oneDNN does not bear to be refused
//! in all places, so that it may have what our heap holds back.
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
/// What somebody else wants to be done.
static BEFORE: AtomicPtr<()> = AtomicPtr::new(null_mut());

impl Shortage {
    /// Looks it up in a library that depends on the runtime.
    pub(super) fn load(library: &libloading::Library) -> Option<Self> {
        // SAFETY: the name tells the type.
        let set = unsafe { library.get::<Set>(c"_ZSt15set_new_handlerPFvvE") };
        Some(Shortage { set: *set.ok()? })
    }

    /// Has the heap let go of what it holds back, as long as it holds something.
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

/// Called as often as the heap gives nothing; then C++ asks again. With no handler, or another
/// one, it is told by an exception, or by what that does.
unsafe extern "C" fn let_go() {
    if heap::let_go() {
        return;
    }
    IS_SET.store(false, Release);
    // SAFETY: both are what `expect` has stored, and null stands for no handler.
    unsafe {
        let set = std::mem::transmute::<*mut (), Set>(SET.load(Acquire));
        set(std::mem::transmute::<*mut (), Handler>(BEFORE.load(Acquire)));
    }
}

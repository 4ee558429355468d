//! How a thread rounds, and whether denormal numbers are zeros to it. Other libraries change this for
//! the threads that load or call them, and a region's results must not depend on who ran a chunk.
#![allow(unsafe_code)]

/// The settings of a thread's floating-point arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arithmetic(u64);

impl Arithmetic {
    /// Those of the calling thread.
    pub fn current() -> Self {
        Arithmetic(register::get())
    }

    /// Makes them those of the calling thread.
    pub fn adopt(self) {
        if self != Arithmetic::current() {
            register::set(self.0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    /// The bits that tell which exceptions have occurred.
    const STATUS: u32 = 0x3f;

    pub fn get() -> u64 {
        let mut register = 0u32;
        // SAFETY: this stores the register MXCSR into four bytes.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut register, options(nostack, preserves_flags)) };
        (register & !STATUS) as u64
    }

    pub fn set(settings: u64) {
        let register = settings as u32;
        // SAFETY: this loads what `get` has read from the register of another thread.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &register, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    pub fn get() -> u64 {
        let register: u64;
        // SAFETY: this reads the register FPCR.
        unsafe {
            asm!("mrs {}, fpcr", out(reg) register, options(nomem, nostack, preserves_flags))
        };
        register
    }

    pub fn set(settings: u64) {
        // SAFETY: this writes what `get` has read from the register of another thread.
        unsafe { asm!("msr fpcr, {}", in(reg) settings, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub fn get() -> u64 {
        0
    }

    pub fn set(_: u64) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::device::team::{parallel, set_size};

    /// The bits that make denormal numbers zeros.
    const FLUSH: u64 = if cfg!(target_arch = "x86_64") { 0x8040 } else { 1 << 24 };

    #[test]
    fn all_threads_of_a_region_compute_as_its_caller() {
        set_size(4);
        let own = Arithmetic::current();
        for settings in [own, Arithmetic(own.0 | FLUSH), own, Arithmetic(own.0 | FLUSH)] {
            settings.adopt();
            let alike = AtomicUsize::new(0);
            let outcome = parallel(400, &|_| {
                let half = std::hint::black_box(f32::MIN_POSITIVE) * std::hint::black_box(0.5);
                let is_flushed = half.to_bits() == 0;
                let is_alike = Arithmetic::current() == settings && is_flushed == (settings != own);
                alike.fetch_add(is_alike as usize, Relaxed);
                std::thread::yield_now();
            });
            own.adopt();
            outcome.unwrap();
            assert_eq!(alike.into_inner(), 400);
        }
    }
}

//! GPUs as a target, and what is worth doing there.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::elementwise::is_fusible;
use super::{Runner, program};
use crate::device::Stream;
use crate::device::cuda::{self, Driver};
use crate::dtype::DType;
use crate::error::finite::Statistics;
use crate::error::{Error, Result};
use crate::kernels::cpu::statistics;
use crate::kernels::{Captured, Capturing, Fusing, Kernel, Packing, Target, Width};
use crate::ops::region::Region;
use crate::ops::{Kind, Meta};

/// A GPU.
pub struct Cuda {
    driver: &'static dyn Driver,
}

impl Cuda {
    /// The GPU of a driver.
    pub fn new(driver: &'static dyn Driver) -> Cuda {
        Cuda { driver }
    }

    /// Copies all places of a tensor to the host, and calls `read` with that of the first element.
    ///
    /// # Safety
    /// As [`Target::is_finite`].
    unsafe fn copied<R>(
        &self,
        meta: &Meta,
        first: *const u8,
        read: impl FnOnce(*const u8) -> R,
    ) -> R {
        let (span, size) = (meta.span(), meta.dtype.size() as isize);
        // Of words, so that any element is aligned.
        // They are NaNs unless the copy succeeds; what failed is reported by the next operation.
        let mut words = vec![u64::MAX; (span.len() * meta.dtype.size()).div_ceil(8)];
        let start = first.wrapping_offset(span.start * size).cast_mut();
        if let Some(start) = NonNull::new(start).filter(|_| !span.is_empty()) {
            // SAFETY: the words are as many bytes; by the caller's promise the tensor has them.
            unsafe {
                let bytes = std::slice::from_raw_parts_mut(
                    words.as_mut_ptr().cast::<u8>(),
                    span.len() * meta.dtype.size(),
                );
                let copied = self.driver.download(start, bytes);
                copied.unwrap_or_else(|error| log::error!("{error}"));
            }
        }
        read(words.as_ptr().cast::<u8>().wrapping_offset(-span.start * size))
    }
}

/// Work of a GPU that was captured.
struct Replayed {
    driver: &'static dyn Driver,
    work: cuda::Captured,
}

impl Capturing for Cuda {
    fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Box<dyn Captured>> {
        let work = self.driver.capture(work)?;
        Ok(Box::new(Replayed { driver: self.driver, work }))
    }
}

impl Captured for Replayed {
    unsafe fn put(&self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.driver.replay(self.work) }
    }
}

impl Drop for Replayed {
    fn drop(&mut self) {
        // SAFETY: it is this one's alone.
        unsafe { self.driver.release(self.work) }
    }
}

impl Target for Cuda {
    fn prepare(&self, kind: &Kind, io: &[&Meta], _width: Width) -> Result<Arc<dyn Kernel>> {
        let lacking = || {
            Error::device(
                kind.family().name(),
                "this operation has no kernel for GPUs yet: run it on the CPU",
            )
        };
        let program = program(kind, io)?.ok_or_else(lacking)?;
        Ok(Arc::new(Runner::new(self.driver, program)?))
    }

    fn packing(&self, _kind: &Kind, _io: &[&Meta], _width: Width) -> Result<Option<Packing>> {
        Ok(None)
    }

    fn is_producer(&self, _kind: &Kind) -> bool {
        false
    }

    fn is_split(&self, _kind: &Kind, _io: &[&Meta]) -> bool {
        false
    }

    fn is_blocked(&self, region: &Region, values: &[Meta]) -> bool {
        is_fusible(region, values)
    }

    fn starts_sums(&self, _region: &Region, _values: &[Meta]) -> bool {
        false
    }

    fn gates(&self, _region: &Region, _values: &[Meta]) -> bool {
        false
    }

    fn fusing(&self) -> Fusing {
        // Each kernel that is saved saves a way to memory and back.
        Fusing::NONE
    }

    fn instructions(&self) -> &'static str {
        "cuda"
    }

    fn stream(&self) -> Stream {
        self.driver.stream()
    }

    fn wait(&self) -> Result<()> {
        self.driver.wait(self.driver.stream())
    }

    fn capturing(&self) -> Option<&dyn Capturing> {
        Some(self)
    }

    fn computes_in(&self, dtype: DType) -> Result<bool> {
        let (major, _) = self.driver.properties().capability;
        // The generations whose matrix units have these types.
        Ok(match dtype {
            DType::Float16 => major >= 7,
            DType::BFloat16 => major >= 8,
            _ => dtype.is_wide_float(),
        })
    }

    unsafe fn is_finite(&self, meta: &Meta, first: *const u8) -> bool {
        // SAFETY: by the caller's promise; the copy has the tensor's elements at its places.
        unsafe { self.copied(meta, first, |first| statistics::is_finite(meta, first)) }
    }

    unsafe fn statistics(&self, meta: &Meta, first: *const u8) -> Statistics {
        // SAFETY: as above.
        unsafe { self.copied(meta, first, |first| statistics::statistics(meta, first)) }
    }
}

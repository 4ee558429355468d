//! The CPU as a target, and what is worth doing there.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::Stream;
use crate::dtype::DType;
use crate::error::Result;
use crate::error::finite::Statistics;
use crate::kernels::cpu::simd::isa::Isa;
use crate::kernels::cpu::{dispatch, onednn, region, statistics};
use crate::kernels::{Fusing, Kernel, Packing, Target, Width};
use crate::ops::region::Region;
use crate::ops::{Kind, Meta};

/// The CPU.
pub struct Cpu;

/// Measured on processors with 32 to 48 KiB of first-level and 1 to 2 MiB of second-level cache.
const FUSING: Fusing =
    Fusing { short: 16 << 10, large_rows: 4 << 20, folded: 2 << 20, inputs: 8, links: 16 };

impl Target for Cpu {
    fn prepare(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        dispatch::prepare(kind, io, width)
    }

    fn packing(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
        dispatch::packing(kind, io, width)
    }

    fn is_producer(&self, kind: &Kind) -> bool {
        region::is_producer(kind)
    }

    fn is_split(&self, kind: &Kind, io: &[&Meta]) -> bool {
        region::is_split(kind, io)
    }

    fn is_blocked(&self, region: &Region, values: &[Meta]) -> bool {
        region::is_blocked(region, values)
    }

    fn starts_sums(&self, region: &Region, values: &[Meta]) -> bool {
        region::starts_sums(region, values)
    }

    fn gates(&self, region: &Region, values: &[Meta]) -> bool {
        region::gates(region, values)
    }

    fn fusing(&self) -> Fusing {
        FUSING
    }

    fn instructions(&self) -> &'static str {
        match Isa::active() {
            Isa::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Isa::Baseline => "baseline",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    fn stream(&self) -> Stream {
        Stream::HOST
    }

    fn computes_in(&self, dtype: DType) -> Result<bool> {
        onednn::matmul::computes_in(dtype)
    }

    unsafe fn is_finite(&self, meta: &Meta, first: *const u8) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { statistics::is_finite(meta, first) }
    }

    unsafe fn statistics(&self, meta: &Meta, first: *const u8) -> Statistics {
        // SAFETY: by the caller's promise.
        unsafe { statistics::statistics(meta, first) }
    }
}

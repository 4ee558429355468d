//! What is worth doing on a CPU.

use std::sync::Arc;

use super::chain::Space;
use super::{dispatch, epilogue};
use crate::error::Result;
use crate::kernels::{Fusing, Kernel, Packing, Target, Width};
use crate::ops::chain::Chain;
use crate::ops::epilogue::Epilogue;
use crate::ops::{Kind, Meta};

/// The CPU.
pub struct Cpu;

/// Measured on processors with 32 to 48 KiB of first-level and 1 to 2 MiB of second-level cache.
const FUSING: Fusing =
    Fusing { short: 16 << 10, large: 256 << 10, large_rows: 4 << 20, inputs: 8, links: 16 };

impl Target for Cpu {
    fn prepare(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        dispatch::prepare(kind, io, width)
    }

    fn packing(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
        dispatch::packing(kind, io, width)
    }

    fn is_split(&self, kind: &Kind, io: &[&Meta]) -> bool {
        epilogue::is_split(kind, io)
    }

    fn blocks_chain(&self, chain: &Chain, values: &[Meta]) -> bool {
        Space::of(chain, values).is_some()
    }

    fn blocks_epilogue(&self, epilogue: &Epilogue, inputs: &[&Meta]) -> bool {
        epilogue::is_blocked(epilogue, inputs).unwrap_or(false)
    }

    fn fusing(&self) -> Fusing {
        FUSING
    }
}

//! The two parts of a kernel that packs an input: once by itself, and for the rest.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernels::{Kernel, Packing, Width};
use crate::ops::packed::{Pack, Packed};
use crate::ops::{Family, Kind, Meta};

fn packing(op: &'static str, of: &Kind, io: &[&Meta], width: Width) -> Result<Packing> {
    let none = || Error::value(op, of.family().name(), "an operation that packs an input here");
    super::packing(of, io, width)?.ok_or_else(none)
}

/// Prepares packing the input.
///
/// # Errors
/// [`Error::Value`] where the operation does not pack that input, or into other bytes.
pub fn pack(op: &Pack) -> Result<Arc<dyn Kernel>> {
    let io: Vec<&Meta> = op.io.iter().collect();
    let packing = packing(op.name(), &op.of, &io, Width(op.width))?;
    let fits = (packing.input, packing.bytes) == (op.input, op.bytes);
    let got = || format!("input {} in {} bytes", op.input, op.bytes);
    let want = || format!("input {} in {} bytes", packing.input, packing.bytes);
    crate::ensure!(fits, Error::value(op.name(), got(), want()));
    Ok(packing.pack)
}

/// Prepares the operation on the packed input.
///
/// # Errors
/// As [`pack`].
pub fn rest(op: &Packed, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let packing = packing(op.name(), &op.of, &op.plain(io), width)?;
    let (got, want) = (io[op.input].bytes(), packing.bytes);
    let fits = packing.input == op.input && got == want;
    let error = || Error::value(op.name(), format!("{got} bytes"), format!("{want} bytes"));
    crate::ensure!(fits, error());
    Ok(packing.rest)
}

//! The matrix product.

use super::api::{arg, query};
use super::descriptor::Descriptor;
use super::library::Library;
use super::primitive::{Choice, PrimitiveDescriptor};
use crate::error::Result;

/// What is added to a product.
pub enum Addend {
    /// Nothing.
    Nothing,
    /// A row, which is broadcast: (1, ..., 1, N).
    Row(Descriptor),
    /// The previous contents of the result.
    Result,
}

/// Matrix products with batch dimensions that are equal or 1. The arguments are a (..., M, K), b
/// (..., K, N), a row if one is added, and y (..., M, N); b preferably of any layout. `None` if
/// oneDNN has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul<'a>(
    library: &'a Library,
    [a, b, y]: [Descriptor; 3],
    addend: Addend,
) -> Result<Option<Choice<'a>>> {
    let (is_sum, row) = match addend {
        Addend::Nothing => (false, None),
        Addend::Row(row) => (false, Some(row)),
        Addend::Result => (true, None),
    };
    let create = |raw, attributes| {
        let create = library.functions.matmul_primitive_desc_create;
        let bias = row.as_ref().map_or(std::ptr::null_mut(), Descriptor::raw);
        // SAFETY: all objects are live.
        unsafe { create(raw, library.engine(), a.raw(), b.raw(), bias, y.raw(), attributes) }
    };
    let call = "dnnl_matmul_primitive_desc_create";
    let described = match is_sum {
        true => PrimitiveDescriptor::adding(library, call, create)?,
        false => PrimitiveDescriptor::new(library, call, create)?,
    };
    let Some(described) = described else { return Ok(None) };
    let (own, weights) = (described.layout(query::WEIGHTS)?, described.layout(query::WEIGHTS)?);
    let factors = [(arg::SRC, a), (arg::WEIGHTS, own)].into_iter();
    let tensors = factors.chain(row.map(|row| (arg::BIAS, row))).chain([(arg::DST, y)]).collect();
    Ok(Some(Choice { described, tensors, weights }))
}

//! The matrix product.

use super::api::{arg, query};
use super::descriptor::Descriptor;
use super::library::Library;
use super::primitive::{Plan, Primitive};
use crate::error::Result;

/// Matrix products over batch dimensions that are equal or 1: arguments a (..., M, K),
/// b (..., K, N), y (..., M, N), b best of any layout; and the layout that it wants b in. `None`
/// where oneDNN has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(
    library: &Library,
    [a, b, y]: [Descriptor; 3],
    width: usize,
) -> Result<Option<(Primitive, Descriptor)>> {
    let plan =
        Plan::new(library, width, "dnnl_matmul_primitive_desc_create", |raw, attributes| {
            let create = library.functions.matmul_primitive_desc_create;
            let (engine, no_bias) = (library.engine(), std::ptr::null_mut());
            // SAFETY: all objects are live.
            unsafe { create(raw, engine, a.raw(), b.raw(), no_bias, y.raw(), attributes) }
        })?;
    let Some(plan) = plan else { return Ok(None) };
    let (own, wanted) = (plan.layout(query::WEIGHTS)?, plan.layout(query::WEIGHTS)?);
    let tensors = vec![(arg::SRC, a), (arg::WEIGHTS, own), (arg::DST, y)];
    Ok(Some((plan.build(tensors)?, wanted)))
}

//! Convolution and its two gradients.

use std::ffi::c_int;

use smallvec::SmallVec;

use super::api::{self, Raw, arg, query};
use super::descriptor::Descriptor;
use super::library::Library;
use super::primitive::{Choice, Gate, PrimitiveDescriptor};
use crate::error::Result;

/// Which of the three is computed, which also determines the order of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Propagation {
    /// x, w, the bias if there is one, then y.
    Forward,
    /// dy, w, then dx.
    GradInput,
    /// dy, x, then dw.
    GradWeight,
}

impl Propagation {
    /// What belongs to x, w, the bias and y, in the order of the arguments.
    pub fn order<T>(self, x: T, w: T, bias: Option<T>, y: T) -> SmallVec<[T; 4]> {
        match self {
            Propagation::Forward => [x, w].into_iter().chain(bias).chain([y]).collect(),
            Propagation::GradInput => [y, w, x].into_iter().collect(),
            Propagation::GradWeight => [y, x, w].into_iter().collect(),
        }
    }
}

/// A number for each spatial axis.
pub type Axes = SmallVec<[i64; 3]>;

/// The geometry of the sliding window, with as many spatial axes as the tensors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Strides.
    pub stride: Axes,
    /// Elements skipped between two taps (dilation minus one).
    pub gap: Axes,
    /// Zero padding before each axis.
    pub before: Axes,
    /// Zero padding after each axis.
    pub after: Axes,
}

/// Descriptors of a convolution's tensors or of their gradients.
pub struct Tensors {
    /// x or dx.
    pub x: Descriptor,
    /// w or dw; of any layout ([`Descriptor::any`]), or as such a choice wants it.
    pub w: Descriptor,
    /// Only in [`Propagation::Forward`].
    pub bias: Option<Descriptor>,
    /// y or dy.
    pub y: Descriptor,
}

/// A convolution, whose result may be multiplied by a function of it; `None` if oneDNN has no fast
/// implementation for the given layouts.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn convolution<'a>(
    library: &'a Library,
    pass: Propagation,
    window: &Window,
    tensors: Tensors,
    gate: Option<Gate>,
) -> Result<Option<Choice<'a>>> {
    let create = |raw, attributes| {
        // SAFETY: all objects and arrays are live.
        unsafe { create(library, pass, window, &tensors, raw, attributes) }
    };
    let described = match gate {
        None => PrimitiveDescriptor::new(library, call(pass), create)?,
        Some(gate) => PrimitiveDescriptor::gated(library, gate, call(pass), create)?,
    };
    let Some(described) = described else { return Ok(None) };
    let asked = if pass == Propagation::GradWeight { query::DIFF_WEIGHTS } else { query::WEIGHTS };
    let (own, weights) = (described.layout(asked)?, described.layout(asked)?);
    Ok(Some(Choice { described, tensors: arguments(pass, tensors, own), weights }))
}

fn call(pass: Propagation) -> &'static str {
    match pass {
        Propagation::Forward => "dnnl_convolution_forward_primitive_desc_create",
        Propagation::GradInput => "dnnl_convolution_backward_data_primitive_desc_create",
        Propagation::GradWeight => "dnnl_convolution_backward_weights_primitive_desc_create",
    }
}

/// # Safety
/// The tensors are live, and `raw` is valid for writing the new object.
unsafe fn create(
    library: &Library,
    pass: Propagation,
    window: &Window,
    tensors: &Tensors,
    raw: *mut Raw,
    attributes: Raw,
) -> api::Status {
    let (f, engine, direct) = (&library.functions, library.engine(), api::CONVOLUTION_DIRECT);
    let none = std::ptr::null_mut();
    let (x, w, y) = (tensors.x.raw(), tensors.w.raw(), tensors.y.raw());
    let bias = tensors.bias.as_ref().map_or(none, Descriptor::raw);
    let stride = window.stride.as_ptr();
    let gap = window.gap.as_ptr();
    let (before, after) = (window.before.as_ptr(), window.after.as_ptr());
    // SAFETY: guaranteed by the caller; gradients need no hint from the forward pass.
    unsafe {
        match pass {
            Propagation::Forward => (f.convolution_forward_primitive_desc_create)(
                raw,
                engine,
                api::FORWARD_INFERENCE,
                direct,
                x,
                w,
                bias,
                y,
                stride,
                gap,
                before,
                after,
                attributes,
            ),
            Propagation::GradInput => (f.convolution_backward_data_primitive_desc_create)(
                raw, engine, direct, x, w, y, stride, gap, before, after, none, attributes,
            ),
            Propagation::GradWeight => (f.convolution_backward_weights_primitive_desc_create)(
                raw, engine, direct, x, w, none, y, stride, gap, before, after, none, attributes,
            ),
        }
    }
}

fn arguments(pass: Propagation, tensors: Tensors, w: Descriptor) -> Vec<(c_int, Descriptor)> {
    let [x, weights, y] = match pass {
        Propagation::Forward => [arg::SRC, arg::WEIGHTS, arg::DST],
        Propagation::GradInput => [arg::DIFF_SRC, arg::WEIGHTS, arg::DIFF_DST],
        Propagation::GradWeight => [arg::SRC, arg::DIFF_WEIGHTS, arg::DIFF_DST],
    };
    let bias = tensors.bias.map(|bias| (arg::BIAS, bias));
    pass.order((x, tensors.x), (weights, w), bias, (y, tensors.y)).into_vec()
}

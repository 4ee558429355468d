//! Convolution without a library: what each position sees is copied into a matrix (im2col), block
//! by block, and multiplied by the weight. Blocks depend on the sizes alone and each sum is
//! computed by one thread, so the number of threads does not change a bit of the result.

mod apply;
mod images;
mod sweep;
#[cfg(test)]
mod tests;
mod weight;

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::cpu::copy;
use crate::kernels::cpu::volume::{self, volume};
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::copy::Fill;
use crate::ops::geometry::Geometry;
use crate::ops::{Meta, Scalar};
use apply::{Apply, Weight};
use images::Images;
use sweep::{Extents, Slide, Sweep};
use weight::WeightGradient;

/// Scratch memory per thread: roughly an L2 cache.
const BYTES: usize = 2 << 20;
/// The maximum number of positions computed at once.
const ROWS: usize = 512;

fn extents(image: &Meta, weight: &Meta, output: &Meta) -> Extents {
    let [image, window, output] = [image, weight, output].map(volume::extents);
    Extents { image, window, output }
}

/// The geometry over three spatial axes.
fn slide(geometry: &Geometry) -> Slide {
    Slide {
        stride: volume(&geometry.stride, 1),
        before: volume(&geometry.padding[..geometry.rank()], 0),
        dilation: volume(&geometry.dilation, 1),
    }
}

/// The strides of a weight's window.
fn window(weight: &Meta) -> [isize; 3] {
    let [_, _, window @ ..] = volume::strides(weight);
    window
}

fn not_float(dtype: DType) -> Result<Arc<dyn Kernel>> {
    Err(Error::dtype("conv", [dtype], "a float dtype"))
}

fn nothing() -> Result<Arc<dyn Kernel>> {
    Ok(kernel(0, |_| Ok(())))
}

/// The kernel of a convolution: `io` = x (N, I, spatial...), w (O, I/groups, window...), optionally
/// b (O,), y. Any strides and any float type; float16 and bfloat16 are accumulated in float32.
///
/// # Errors
/// [`Error::DType`] for other types.
pub fn forward(geometry: &Geometry, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (x, w, y) = (io[0], io[1], io[io.len() - 1]);
    if y.numel() == 0 {
        return nothing();
    }
    let groups = geometry.groups;
    let result = Images::new(y, groups);
    let apply = Apply {
        images: x.shape[0],
        groups,
        sweeps: vec![Sweep::of_output(&slide(geometry), extents(x, w, y))],
        source: Images::new(x, groups),
        result,
        weight: Weight {
            group: result.channels as isize * w.strides[0],
            source: w.strides[1],
            result: w.strides[0],
            window: window(w),
        },
        bias: (io.len() == 4).then(|| io[2].strides[0]),
    };
    crate::dispatch!(float x.dtype, T => Ok(apply::prepare::<T>(apply, width)),
        else => not_float(x.dtype))
}

/// The kernel of a convolution's gradient with respect to its image: `io` = dy, w, dx.
///
/// # Errors
/// As [`forward`].
pub fn grad_input(geometry: &Geometry, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let [dy, w, dx] = [io[0], io[1], io[2]];
    if dx.numel() == 0 {
        return nothing();
    }
    let groups = geometry.groups;
    let source = Images::new(dy, groups);
    let extents = extents(dx, w, dy);
    let sweeps = Sweep::of_image(&slide(geometry), extents);
    let is_all = Sweep::are_all(&sweeps, extents);
    let apply = Apply {
        images: dx.shape[0],
        groups,
        sweeps,
        source,
        result: Images::new(dx, groups),
        weight: Weight {
            group: source.channels as isize * w.strides[0],
            source: w.strides[0],
            result: w.strides[1],
            window: window(w),
        },
        bias: None,
    };
    let apply = crate::dispatch!(float dy.dtype, T => apply::prepare::<T>(apply, width),
        else => return not_float(dy.dtype));
    if is_all {
        return Ok(apply);
    }
    let fill = Fill { value: Scalar::Int(0), shape: dx.shape.clone(), dtype: dx.dtype };
    let fill = copy::fill(&fill, dx, width)?;
    Ok(kernel(apply.scratch(), move |io| {
        fill.run(io)?;
        apply.run(io)
    }))
}

/// The kernel of a convolution's gradient with respect to its weight: `io` = dy, x, dw.
///
/// # Errors
/// As [`forward`].
pub fn grad_weight(geometry: &Geometry, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let [dy, x, dw] = [io[0], io[1], io[2]];
    if dw.numel() == 0 {
        return nothing();
    }
    let gradient = WeightGradient {
        images: x.shape[0],
        groups: geometry.groups,
        sweep: Sweep::of_output(&slide(geometry), extents(x, dw, dy)),
        dy: Images::new(dy, geometry.groups),
        x: Images::new(x, geometry.groups),
        strides: volume::strides(dw),
    };
    crate::dispatch!(float dy.dtype, T => Ok(weight::prepare::<T>(gradient, width)),
        else => not_float(dy.dtype))
}

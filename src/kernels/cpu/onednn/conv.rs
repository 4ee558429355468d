//! Convolutions by oneDNN: images channels-last, weights packed as the primitive prefers.

mod builder;
mod cut;

use super::layout::{Layout, Location, Tensor, compute_types, is_disjoint, is_same, settled};
use super::steps::Steps;
use crate::device::onednn::{self, Axes, Gate, Library, Propagation, Window};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Width;
use crate::ops::Meta;
use crate::ops::geometry::Geometry;
use cut::{Convolution, channels_last};

/// A convolution's tensors and their places.
struct Problem {
    pass: Propagation,
    window: Window,
    x: Tensor,
    /// With groups as a leading dimension of its own.
    w: Tensor,
    bias: Option<Tensor>,
    y: Tensor,
    gate: Option<Gate>,
}

/// The convolution of `io`: x, w, optionally b, y; or dy, w, dx; or dy, x, dw. No tensor is empty. With
/// a `gate`, the result of a forward pass is multiplied by that function of it. By the team, or by the
/// calling thread alone if `width` is `None`. `None` where oneDNN is missing or has no fast
/// implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn prepare(
    gate: Option<Gate>,
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    width: Option<Width>,
) -> Result<Option<Steps>> {
    let Some(library) = onednn::library() else { return Ok(None) };
    let (geometry, io) = without_unit_axes(pass, geometry, io);
    let Some(window) = window(&geometry) else { return Ok(None) };
    if pass == Propagation::GradWeight && has_known_fault(&geometry, &io) {
        return Ok(None);
    }
    let problem = Problem { gate, ..Problem::new(pass, window, geometry.groups, &io) };
    for &compute in compute_types(io[0].dtype) {
        for attempt in [AS_THEY_ARE, COPIED, UNFOLDED] {
            let steps = problem.steps(library, compute, attempt, width)?;
            if steps.is_some() {
                return Ok(steps);
            }
        }
    }
    Ok(None)
}

/// How images that are not channels-last are passed.
#[derive(Clone, Copy)]
struct Attempt {
    /// As copies that are.
    copies: bool,
    /// Even if oneDNN unfolds them into matrices, which takes up to five times as long as copies.
    unfolds: bool,
}

const AS_THEY_ARE: Attempt = Attempt { copies: false, unfolds: false };
const COPIED: Attempt = Attempt { copies: true, unfolds: true };
const UNFOLDED: Attempt = Attempt { copies: false, unfolds: true };

impl Problem {
    fn new(pass: Propagation, window: Window, groups: usize, io: &[Meta]) -> Self {
        let last = io.len() - 1;
        let tensor = |i: usize| {
            let place = if i == last { Location::Output(0) } else { Location::Input(i) };
            Tensor { place, meta: io[i].clone() }
        };
        let [x, w, y] = roles(pass, io.len());
        let bias = (pass == Propagation::Forward && last == 3).then(|| tensor(2));
        let mut w = tensor(w);
        w.meta = grouped(&w.meta, groups);
        Problem { pass, window, x: tensor(x), w, bias, y: tensor(y), gate: None }
    }

    fn steps(
        &self,
        library: &'static Library,
        compute: DType,
        attempt: Attempt,
        width: Option<Width>,
    ) -> Result<Option<Steps>> {
        let [x, y] = [&self.x, &self.y].map(|t| image(&t.meta, compute, attempt.copies));
        let bias = self.bias.as_ref().map(|b| Meta::new(compute, b.meta.shape.clone()));
        let convolution = Convolution {
            library,
            pass: self.pass,
            window: self.window.clone(),
            w: self.w.meta.shape.iter().map(|&extent| extent as i64).collect(),
            bias: bias.clone(),
            gate: self.gate,
            x: x.clone(),
            y: y.clone(),
        };
        let Some(whole) = convolution.choice(None)? else { return Ok(None) };
        if whole.unfolds() && !attempt.unfolds {
            return Ok(None);
        }
        // bfloat16 weight gradients multiply uninitialised scratch memory by zero, which gives NaN
        // if it contains one.
        let reads_garbage = self.pass == Propagation::GradWeight && compute != DType::Float32;
        let (packed, pieces) = convolution.pieces(whole, width)?;
        let pieces = pieces.clearing(reads_garbage);
        let x = (&self.x, Layout::Strided(x));
        let y = (&self.y, Layout::Strided(y));
        let w = (&self.w, Layout::Packed(packed, compute));
        let bias = self.bias.as_ref().zip(bias.map(Layout::Strided));
        let tensors = self.pass.order(x, w, bias, y);
        Steps::new(library, pieces, &tensors, width.unwrap_or(Width::ONE))
    }
}

/// The places of x, w and y among this many tensors.
fn roles(pass: Propagation, count: usize) -> [usize; 3] {
    match pass {
        Propagation::Forward => [0, 1, count - 1],
        Propagation::GradInput => [2, 1, 0],
        Propagation::GradWeight => [1, 2, 0],
    }
}

/// The same convolution without the spatial axes along which nothing extends. oneDNN works on
/// several places of the last axis at a time: without this, images of width 1 take three times as
/// long.
fn without_unit_axes(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
) -> (Geometry, Vec<Meta>) {
    let images = roles(pass, io.len());
    let (mut geometry, mut io) = (geometry.clone(), Vec::from_iter(io.iter().map(|&m| m.clone())));
    for d in (0..geometry.rank()).rev() {
        let is_unit = images.iter().all(|&i| io[i].shape[2 + d] == 1);
        let pads = geometry.padding[d] + geometry.padding[d + geometry.rank()] > 0;
        if is_unit && !pads && geometry.rank() > 1 {
            images.iter().for_each(|&i| io[i] = io[i].without(2 + d));
            geometry = geometry.without(d);
        }
    }
    (geometry, io)
}

/// Weight gradients that oneDNN 3.2 computes wrongly; all cases are rare and small.
fn has_known_fault(geometry: &Geometry, io: &[Meta]) -> bool {
    let [dy, x, dw] = [0, 1, 2].map(|i| &io[i].shape);
    // bfloat16 kernels leave taps that only ever see padding unwritten.
    let is_idle = |d: usize, tap: usize| {
        let (stride, dilation) = (geometry.stride[d], geometry.dilation[d]);
        let place = |i: usize| (i * stride + tap * dilation).checked_sub(geometry.padding[d]);
        !(0..dy[2 + d]).any(|i| place(i).is_some_and(|place| place < x[2 + d]))
    };
    let idle = (0..geometry.rank()).any(|d| (0..dw[2 + d]).any(|tap| is_idle(d, tap)));
    // Strided 1x1 kernels write past their scratch memory if the channels do not fill a vector:
    // https://github.com/uxlfoundation/oneDNN/issues/6035.
    let is_one = |numbers: &[usize]| numbers.iter().all(|&n| n == 1);
    let strided = is_one(&dw[2..]) && !is_one(&geometry.stride);
    // Padded volumes in whose depth no window fits make the kernels read and write other memory.
    let window = geometry.dilation[0] * (dw[2] - 1);
    let fits =
        |begin: usize| begin >= geometry.padding[0] && begin + window < geometry.padding[0] + x[2];
    let pads = geometry.padding[0] + geometry.padding[geometry.rank()] > 0;
    let deep = geometry.rank() == 3 && pads && !(0..dy[2]).any(|i| fits(i * geometry.stride[0]));
    idle || deep || strided && dw[1] < 16
}

/// `None` where a number does not fit oneDNN's integers.
fn window(geometry: &Geometry) -> Option<Window> {
    let narrow = |numbers: &[usize], less: usize| -> Option<Axes> {
        numbers.iter().map(|&n| Some(i32::try_from(n - less).ok()?.into())).collect()
    };
    let (before, after) = geometry.padding.split_at(geometry.rank());
    Some(Window {
        stride: narrow(&geometry.stride, 0)?,
        gap: narrow(&geometry.dilation, 1)?,
        before: narrow(before, 0)?,
        after: narrow(after, 0)?,
    })
}

/// Weights (O, I, window...) as (groups, O / groups, I, window...) if there are groups.
fn grouped(w: &Meta, groups: usize) -> Meta {
    if groups == 1 {
        return w.clone();
    }
    let each = w.shape[0] / groups;
    let shape = [groups, each].into_iter().chain(w.shape[1..].iter().copied()).collect();
    let outer = w.strides[0] * each as isize;
    let strides = std::iter::once(outer).chain(w.strides.iter().copied()).collect();
    Meta { dtype: w.dtype, shape, strides }
}

/// The layout in which images are passed: channels-last, or their own unless `copy` is set.
fn image(meta: &Meta, compute: DType, copy: bool) -> Meta {
    let last = channels_last(&Meta { dtype: compute, ..meta.clone() });
    let usable = !copy && meta.dtype == compute && is_disjoint(meta);
    if usable && !is_same(meta, &last) { settled(meta) } else { last }
}

//! Convolution over one to three spatial axes, and its gradients. Images are (N, C, spatial...);
//! results are channels-last in memory.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::geometry::{Axes, Geometry, by_rank, spatial};
use super::{Cost, Family, Meta, Metas, check_dtypes, exactly, product, two_or_three};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// `y[n, o, i...] = b[o] + sum over c, k... of x[n, c, ...] * w[o, c, k...]` (ONNX Conv): inputs x
/// (N, I, spatial...), w (O, I / groups, window...) and optionally b (O,), all of one float type.
/// Half types are accumulated in float32.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
}

/// The gradient of [`Conv`] with respect to its image: inputs dy and w, output dx.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ConvGradInput {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// The spatial extents of the image.
    pub size: Axes,
}

/// The gradient of [`Conv`] with respect to its weight: inputs dy and x, output dw.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ConvGradWeight {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// The extents of the window.
    pub kernel: Axes,
}

catalog!(
    Conv => "conv1d" "conv2d" "conv3d",
    ConvGradInput => "conv1d_grad_input" "conv2d_grad_input" "conv3d_grad_input",
    ConvGradWeight => "conv1d_grad_weight" "conv2d_grad_weight" "conv3d_grad_weight"
);

impl Family for Conv {
    fn name(&self) -> &'static str {
        by_rank(["conv1d", "conv2d", "conv3d"], self.geometry.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let (x, w, bias) = two_or_three(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, [x, w], &self.geometry, ["images", "weights"])?;
        let output = self.geometry.output(name, spatial(&x.shape), spatial(&w.shape))?;
        check_channels(name, [x, w], &self.geometry, x.shape[1])?;
        if let Some(bias) = bias {
            let want = || format!("a bias of shape ({},)", w.shape[0]);
            crate::ensure!(
                bias.shape[..] == [w.shape[0]],
                Error::shape(name, [&x.shape, &w.shape, &bias.shape], want())
            );
        }
        channels_last(name, x.dtype, [x.shape[0], w.shape[0]], &output)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[io.len() - 1], io[1])
    }
}

impl Family for ConvGradInput {
    fn name(&self) -> &'static str {
        let names = ["conv1d_grad_input", "conv2d_grad_input", "conv3d_grad_input"];
        by_rank(names, self.geometry.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let [dy, w] = exactly(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, [dy, w], &self.geometry, ["gradients", "weights"])?;
        let result = self.geometry.output(name, &self.size, spatial(&w.shape))?;
        check_result(name, [dy, w], w.shape[0], &result)?;
        let channels = w.shape[1].checked_mul(self.geometry.groups);
        let too_many = || Error::shape(name, [&dy.shape, &w.shape], "fewer channels");
        let channels = channels.ok_or_else(too_many)?;
        check_channels(name, [dy, w], &self.geometry, channels)?;
        channels_last(name, dy.dtype, [dy.shape[0], channels], &self.size)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[0], io[1])
    }
}

impl Family for ConvGradWeight {
    fn name(&self) -> &'static str {
        let names = ["conv1d_grad_weight", "conv2d_grad_weight", "conv3d_grad_weight"];
        by_rank(names, self.geometry.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let [dy, x] = exactly(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, [dy, x], &self.geometry, ["gradients", "images"])?;
        let result = self.geometry.output(name, spatial(&x.shape), &self.kernel)?;
        check_result(name, [dy, x], dy.shape[1], &result)?;
        let (groups, channels) = (self.geometry.groups, x.shape[1]);
        let fits = dy.shape[0] == x.shape[0]
            && channels.is_multiple_of(groups)
            && dy.shape[1].is_multiple_of(groups);
        let want = || format!("equal batches and channels divisible by {groups} groups");
        crate::ensure!(fits, Error::shape(name, [&dy.shape, &x.shape], want()));
        let shape = joined([dy.shape[1], channels / groups], &self.kernel);
        shape.checked_numel(name)?;
        Ok(smallvec::smallvec![Meta::new(dy.dtype, shape)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[0], io[2])
    }
}

fn check_types(op: &'static str, inputs: &[&Meta]) -> Result<()> {
    check_dtypes(op, inputs, DType::is_float, "one float type")
}

fn check_ranks(
    op: &'static str,
    io: [&Meta; 2],
    geometry: &Geometry,
    what: [&str; 2],
) -> Result<()> {
    let rank = geometry.rank();
    let fits = io.iter().all(|meta| meta.shape.rank() == rank + 2);
    let describe = |what: &str| match what {
        "weights" => format!("weights (O, C / groups, {})", by_rank(WINDOWS, rank)),
        what => format!("{what} (N, C, {})", by_rank(EXTENTS, rank)),
    };
    let want = || what.map(describe).join(" and ");
    crate::ensure!(fits, Error::shape(op, io.map(|meta| &meta.shape), want()));
    Ok(())
}

/// The names of the spatial axes, of images and of windows.
const EXTENTS: [&str; 3] = ["L", "H, W", "D, H, W"];
const WINDOWS: [&str; 3] = ["k", "kh, kw", "kd, kh, kw"];

/// Checks that the image's channels are `w.shape[1]` times the groups.
fn check_channels(
    op: &'static str,
    [image, w]: [&Meta; 2],
    geometry: &Geometry,
    channels: usize,
) -> Result<()> {
    let groups = geometry.groups;
    let fits = w.shape[0].is_multiple_of(groups)
        && channels.is_multiple_of(groups)
        && channels / groups == w.shape[1];
    let want = || {
        let window = by_rank(WINDOWS, geometry.rank());
        format!("weights (O, C / {groups}, {window}) for C image channels, O divisible by {groups}")
    };
    crate::ensure!(fits, Error::shape(op, [&image.shape, &w.shape], want()));
    Ok(())
}

/// Checks that `io[0]` is the gradient of a result with these channels and spatial extents.
fn check_result(
    op: &'static str,
    io: [&Meta; 2],
    channels: usize,
    extents: &[usize],
) -> Result<()> {
    let got = &io[0].shape;
    let fits = got[1] == channels && got[2..] == *extents;
    let numbers = || [channels].iter().chain(extents).map(usize::to_string).collect::<Vec<_>>();
    let want = || format!("a gradient of shape (N, {})", numbers().join(", "));
    crate::ensure!(fits, Error::shape(op, io.map(|m| &m.shape), want()));
    Ok(())
}

/// Two leading extents and the spatial ones.
fn joined(leading: [usize; 2], extents: &[usize]) -> Shape {
    leading.into_iter().chain(extents.iter().copied()).collect()
}

/// A result of this shape with the channels innermost in memory.
fn channels_last(
    op: &'static str,
    dtype: DType,
    leading: [usize; 2],
    extents: &[usize],
) -> Result<Metas> {
    let shape = joined(leading, extents);
    shape.checked_numel(op)?;
    let strides = shape.dense_like(&channels_innermost(shape.rank()));
    Ok(smallvec::smallvec![Meta { dtype, shape, strides }])
}

/// Strides in whose order the channels are innermost: N, spatial axes, C.
pub fn channels_innermost(rank: usize) -> SmallVec<[isize; 5]> {
    let last = rank as isize - 1;
    (0..=last).map(|d| if d == 1 { 0 } else { last - (d - 1).max(0) }).collect()
}

/// Each element of the result `y` is a sum over the weights of one output channel.
fn cost(io: &[&Meta], y: &Meta, w: &Meta) -> Cost {
    Cost::of(io, product(&w.shape[1..]).saturating_mul(product(&[2, y.numel()])))
}

//! Two-dimensional convolution and its gradients. Images are (N, C, H, W); results are
//! channels-last in memory.

use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use super::{Cost, Family, Meta, Metas, exactly, two_or_three};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// `y[n, o, i, j] = b[o] + sum over c, u, v of x[n, c, ...] * w[o, c, u, v]` (ONNX Conv): inputs x
/// (N, I, H, W), w (O, I / groups, kh, kw) and optionally b (O,), all of one float type. Half types
/// are accumulated in float32.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv2d {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
}

/// The gradient of [`Conv2d`] with respect to its image: inputs dy (N, O, H', W') and w, output dx.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv2dGradInput {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// Height and width of the image.
    pub size: [usize; 2],
}

/// The gradient of [`Conv2d`] with respect to its weight: inputs dy (N, O, H', W') and x, output
/// dw.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv2dGradWeight {
    /// How the window slides.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// Height and width of the window.
    pub kernel: [usize; 2],
}

catalog!(
    Conv2d => "conv2d",
    Conv2dGradInput => "conv2d_grad_input",
    Conv2dGradWeight => "conv2d_grad_weight"
);

impl Family for Conv2d {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let (x, w, bias) = two_or_three(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, x, w, "images (N, C, H, W) and weights (O, C / groups, kh, kw)")?;
        let [image, window] = [plane(x), plane(w)];
        let [height, width] = self.geometry.output(name, image, window)?;
        check_channels(name, [x, w], &self.geometry, x.shape[1])?;
        if let Some(bias) = bias {
            let want = format!("a bias of shape ({},)", w.shape[0]);
            crate::ensure!(
                bias.shape[..] == [w.shape[0]],
                Error::shape(name, [&x.shape, &w.shape, &bias.shape], want)
            );
        }
        channels_last(name, x.dtype, [x.shape[0], w.shape[0], height, width])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[io.len() - 1], io[1])
    }
}

impl Family for Conv2dGradInput {
    fn name(&self) -> &'static str {
        "conv2d_grad_input"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let [dy, w] = exactly(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, dy, w, "gradients (N, O, H, W) and weights (O, C / groups, kh, kw)")?;
        let result = self.geometry.output(name, self.size, plane(w))?;
        check_result(name, [dy, w], [w.shape[0], result[0], result[1]])?;
        let channels = w.shape[1].checked_mul(self.geometry.groups);
        let too_many = || Error::shape(name, [&dy.shape, &w.shape], "fewer channels");
        let channels = channels.ok_or_else(too_many)?;
        check_channels(name, [dy, w], &self.geometry, channels)?;
        channels_last(name, dy.dtype, [dy.shape[0], channels, self.size[0], self.size[1]])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[0], io[1])
    }
}

impl Family for Conv2dGradWeight {
    fn name(&self) -> &'static str {
        "conv2d_grad_weight"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let [dy, x] = exactly(name, inputs)?;
        check_types(name, inputs)?;
        check_ranks(name, dy, x, "gradients (N, O, H, W) and images (N, C, H, W)")?;
        let result = self.geometry.output(name, plane(x), self.kernel)?;
        check_result(name, [dy, x], [dy.shape[1], result[0], result[1]])?;
        let (groups, channels) = (self.geometry.groups, x.shape[1]);
        let fits = dy.shape[0] == x.shape[0]
            && channels.is_multiple_of(groups)
            && dy.shape[1].is_multiple_of(groups);
        let want = || format!("equal batches and channels divisible by {groups} groups");
        crate::ensure!(fits, Error::shape(name, [&dy.shape, &x.shape], want()));
        let shape = [dy.shape[1], channels / groups, self.kernel[0], self.kernel[1]];
        let dw = Meta::new(dy.dtype, shape);
        dw.shape.checked_numel(name)?;
        Ok(smallvec::smallvec![dw])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[0], io[2])
    }
}

fn plane(meta: &Meta) -> [usize; 2] {
    [meta.shape[2], meta.shape[3]]
}

fn check_types(op: &'static str, inputs: &[&Meta]) -> Result<()> {
    let types = inputs.iter().map(|m| m.dtype);
    let dtype = inputs[0].dtype;
    let fits = dtype.is_float() && types.clone().all(|t| t == dtype);
    crate::ensure!(fits, Error::dtype(op, types, "one float type"));
    Ok(())
}

fn check_ranks(op: &'static str, a: &Meta, b: &Meta, want: &str) -> Result<()> {
    let fits = a.shape.rank() == 4 && b.shape.rank() == 4;
    crate::ensure!(fits, Error::shape(op, [&a.shape, &b.shape], want));
    Ok(())
}

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
        format!("weights (O, C / {groups}, kh, kw) for C image channels, O divisible by {groups}")
    };
    crate::ensure!(fits, Error::shape(op, [&image.shape, &w.shape], want()));
    Ok(())
}

/// Checks that `io[0]` is the gradient of a result with these channels, rows and columns.
fn check_result(op: &'static str, io: [&Meta; 2], want: [usize; 3]) -> Result<()> {
    let [channels, height, width] = want;
    crate::ensure!(
        io[0].shape[1..] == want,
        Error::shape(
            op,
            io.map(|m| &m.shape),
            format!("a gradient of shape (N, {channels}, {height}, {width})")
        )
    );
    Ok(())
}

/// A result of this shape with the channels innermost in memory.
fn channels_last(op: &'static str, dtype: DType, shape: [usize; 4]) -> Result<Metas> {
    let shape = Shape::from(shape);
    shape.checked_numel(op)?;
    let strides = shape.dense_like(&[3, 0, 2, 1]);
    Ok(smallvec::smallvec![Meta { dtype, shape, strides }])
}

/// Each element of the result `y` is a sum over the weights of one output channel.
fn cost(io: &[&Meta], y: &Meta, w: &Meta) -> Cost {
    let taps: u64 = w.shape[1..].iter().map(|&e| e as u64).product();
    let bytes = io.iter().map(|m| m.bytes() as u64).sum();
    Cost { flops: 2 * y.numel() as u64 * taps, behind: 0, bytes }
}

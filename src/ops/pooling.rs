//! Pooling over windows of images (ONNX MaxPool and AveragePool), with one to three spatial axes.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::geometry::{Axes, Geometry, Last, MOST_AXES, by_rank, spatial};
use super::{Cost, Family, Meta, Metas, check_meta, exactly, product};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// How windows slide over the spatial axes of an image.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Extents of the window.
    pub kernel: Axes,
    /// Steps of the window along each axis.
    pub stride: Axes,
    /// Padding before each axis, then after each. Less than the window.
    pub padding: SmallVec<[usize; 2 * MOST_AXES]>,
    /// Distance between the window's taps along each axis; empty if all are 1.
    #[serde(default, skip_serializing_if = "SmallVec::is_empty")]
    pub dilation: Axes,
    /// Whether windows that only start within the image, or the padding before it, count too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceil_mode: bool,
}

impl Window {
    /// A window whose taps are adjacent and that stays within the padded image.
    pub fn new(kernel: &[usize], stride: &[usize], padding: &[usize]) -> Window {
        Window {
            kernel: kernel.into(),
            stride: stride.into(),
            padding: padding.into(),
            dilation: Axes::new(),
            ceil_mode: false,
        }
    }

    /// The number of spatial axes.
    pub fn rank(&self) -> usize {
        self.stride.len()
    }

    /// The number of windows along each axis over images of these extents, after validation.
    ///
    /// # Errors
    /// [`Error::Value`] for padding that a window could lie in, and for windows that do not fit.
    pub fn over(&self, op: &'static str, image: &[usize]) -> Result<Axes> {
        let (kernel, padding) = (&self.kernel, &self.padding);
        let last = if self.ceil_mode { Last::Started } else { Last::Whole };
        let output = self.geometry().places(op, image, kernel, last)?;
        let full = |d: usize| padding[d] < self.reach(d % self.rank());
        crate::ensure!(
            (0..padding.len()).all(full),
            Error::value(op, format!("padding {padding:?}"), format!("less than {kernel:?}"))
        );
        let taps = kernel.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
        let fits = image.iter().all(|&n| n > 0) && taps.is_some_and(|n| n < 1 << 31);
        let got = || format!("window {kernel:?} on image {image:?}");
        let want = "an image of at least one place and a window of less than 2^31";
        crate::ensure!(fits, Error::value(op, got(), want));
        self.check_taps(op, image, &output)?;
        Ok(output)
    }

    fn geometry(&self) -> Geometry {
        let ones = smallvec::smallvec![1; self.rank()];
        let dilation = if self.dilation.is_empty() { ones } else { self.dilation.clone() };
        let (stride, padding) = (self.stride.clone(), self.padding.clone());
        Geometry { stride, padding, dilation, groups: 1 }
    }

    /// Distance between the window's taps along axis `d`.
    pub fn dilation(&self, d: usize) -> usize {
        self.dilation.get(d).copied().unwrap_or(1)
    }

    /// The extent of the window along axis `d`, with the gaps between its taps.
    fn reach(&self, d: usize) -> usize {
        self.dilation(d) * (self.kernel[d] - 1) + 1
    }

    /// Checks that each window has a tap within the image, which may lie between two taps. Windows
    /// that start within the image have; of those whose first `tap + 1` taps lie before it, the last
    /// is the one whose next tap is the furthest from the image's start.
    fn check_taps(&self, op: &'static str, image: &[usize], output: &[usize]) -> Result<()> {
        for d in (0..self.rank()).filter(|&d| self.dilation(d) > image[d]) {
            let (step, before) = (self.dilation(d), self.padding[d]);
            let sees = |tap: usize| {
                let last = (before - tap * step - 1) / self.stride[d];
                let outside = before - last.min(output[d] - 1) * self.stride[d];
                outside.next_multiple_of(step) - outside < image[d]
            };
            let got = || format!("{self:?} on image {image:?}");
            let want = "each window with an element of the image under one of its taps";
            let all = output[d] == 0 || (0..before.div_ceil(step)).all(sees);
            crate::ensure!(all, Error::value(op, got(), want));
        }
        Ok(())
    }

    /// The number of taps.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// The type that stores a position within the window.
    fn index(&self) -> DType {
        if self.taps() <= 256 { DType::UInt8 } else { DType::Int32 }
    }

    fn cost(&self, io: &[&Meta], windows: &Meta) -> Cost {
        Cost::of(io, product(&[2, self.taps(), windows.numel()]))
    }
}

/// Checks that a tensor is (N, C, spatial...) and has a supported dtype.
fn check_images(op: &'static str, x: &Meta, rank: usize, integers: bool) -> Result<()> {
    let is_allowed = x.dtype.is_float() || integers && x.dtype.is_int();
    let want = if integers { "a float or integer dtype" } else { "a float dtype" };
    crate::ensure!(is_allowed, Error::dtype(op, [x.dtype], want));
    let want = || by_rank(["(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"], rank);
    crate::ensure!(x.shape.rank() == rank + 2, Error::shape(op, [&x.shape], want()));
    Ok(())
}

/// The meta of images of other extents in the memory order of `x`.
fn resized(x: &Meta, extents: &[usize]) -> Meta {
    let mut shape = x.shape.clone();
    extents.iter().enumerate().for_each(|(d, &extent)| shape[d + 2] = extent);
    Meta { dtype: x.dtype, strides: shape.dense_like(&x.strides), shape }
}

/// Checks that dy has an element for each of these windows.
fn check_windows(op: &'static str, windows: &[usize], dy: &Meta) -> Result<()> {
    let want = || resized(dy, windows).shape.to_string();
    crate::ensure!(spatial(&dy.shape) == windows, Error::shape(op, [&dy.shape], want()));
    Ok(())
}

/// The greatest element of each window and its position within the window: input x (N, C,
/// spatial...), outputs y and index, both in the memory order of x. NaN compares greater than
/// everything, the first of equal elements wins, and padding never does. The index is uint8, or
/// int32 where the window has more than 256 positions. Integers are allowed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MaxPool {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
}

/// The gradient of [`MaxPool`]: inputs dy and index, output dx.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MaxPoolGrad {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// The spatial extents of the image.
    pub size: Axes,
}

/// How the sum of a window becomes its mean.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Mean {
    /// Whether padding counts as zeros; otherwise the mean is over real elements.
    pub count_include_pad: bool,
    /// What the sums are divided by, instead of the number of elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divisor: Option<usize>,
}

/// The mean of each window: input x (N, C, spatial...), output y in the memory order of x. Floats
/// only; float16 and bfloat16 are accumulated in float32.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AvgPool {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// What is divided by.
    #[serde(flatten)]
    pub mean: Mean,
}

/// The gradient of [`AvgPool`]: input dy, output dx.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AvgPoolGrad {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// What is divided by.
    #[serde(flatten)]
    pub mean: Mean,
    /// The spatial extents of the image.
    pub size: Axes,
}

catalog!(
    MaxPool => "max_pool1d" "max_pool2d" "max_pool3d",
    MaxPoolGrad => "max_pool1d_grad" "max_pool2d_grad" "max_pool3d_grad",
    AvgPool => "avg_pool1d" "avg_pool2d" "avg_pool3d",
    AvgPoolGrad => "avg_pool1d_grad" "avg_pool2d_grad" "avg_pool3d_grad"
);

impl Family for MaxPool {
    fn name(&self) -> &'static str {
        by_rank(["max_pool1d", "max_pool2d", "max_pool3d"], self.window.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        check_images(self.name(), x, self.window.rank(), true)?;
        let y = resized(x, &self.window.over(self.name(), spatial(&x.shape))?);
        let index = Meta { dtype: self.window.index(), ..y.clone() };
        Ok(smallvec::smallvec![y, index])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[1])
    }
}

impl Family for MaxPoolGrad {
    fn name(&self) -> &'static str {
        by_rank(["max_pool1d_grad", "max_pool2d_grad", "max_pool3d_grad"], self.window.rank())
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    /// The index is one that [`MaxPool`] made.
    fn may_fail(&self) -> bool {
        false
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, index] = exactly(self.name(), inputs)?;
        check_images(self.name(), dy, self.window.rank(), false)?;
        check_windows(self.name(), &self.window.over(self.name(), &self.size)?, dy)?;
        check_meta(self.name(), "an index", index, self.window.index(), &dy.shape)?;
        Ok(smallvec::smallvec![resized(dy, &self.size)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[0])
    }
}

/// Rejects division by nothing.
fn check_divisor(op: &'static str, mean: &Mean) -> Result<()> {
    crate::ensure!(mean.divisor != Some(0), Error::value(op, "divisor 0", "at least 1"));
    Ok(())
}

impl Family for AvgPool {
    fn name(&self) -> &'static str {
        by_rank(["avg_pool1d", "avg_pool2d", "avg_pool3d"], self.window.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        check_images(self.name(), x, self.window.rank(), false)?;
        check_divisor(self.name(), &self.mean)?;
        Ok(smallvec::smallvec![resized(x, &self.window.over(self.name(), spatial(&x.shape))?)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[1])
    }
}

impl Family for AvgPoolGrad {
    fn name(&self) -> &'static str {
        by_rank(["avg_pool1d_grad", "avg_pool2d_grad", "avg_pool3d_grad"], self.window.rank())
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy] = exactly(self.name(), inputs)?;
        check_images(self.name(), dy, self.window.rank(), false)?;
        check_divisor(self.name(), &self.mean)?;
        check_windows(self.name(), &self.window.over(self.name(), &self.size)?, dy)?;
        Ok(smallvec::smallvec![resized(dy, &self.size)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[0])
    }
}

//! Pooling over windows of images (ONNX MaxPool and AveragePool).

use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use super::{Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// How windows slide over an image.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Steps of the window, vertical and horizontal.
    pub stride: [usize; 2],
    /// Padding around the image: top, left, bottom, right. Less than the window.
    pub padding: [usize; 4],
}

impl Window {
    /// The number of windows in each direction over images of this size, after validation.
    ///
    /// # Errors
    /// [`Error::Value`] for padding that a window could lie in, and for windows that do not fit.
    pub fn over(&self, op: &'static str, image: [usize; 2]) -> Result<[usize; 2]> {
        let (kernel, stride, padding) = (self.kernel, self.stride, self.padding);
        let geometry = Geometry { stride, padding, dilation: [1; 2], groups: 1 };
        let output = geometry.output(op, image, kernel)?;
        let full = |d: usize| padding[d] < kernel[d % 2];
        crate::ensure!(
            (0..4).all(full),
            Error::value(op, format!("padding {padding:?}"), format!("less than {kernel:?}"))
        );
        let fits = image.iter().all(|&n| n > 0) && kernel[0].saturating_mul(kernel[1]) < 1 << 31;
        let got = || format!("window {kernel:?} on image {image:?}");
        let want = "an image of at least one place and a window of less than 2^31";
        crate::ensure!(fits, Error::value(op, got(), want));
        Ok(output)
    }

    /// The type that stores a position within the window.
    fn index(&self) -> DType {
        if self.kernel[0] * self.kernel[1] <= 256 { DType::UInt8 } else { DType::Int32 }
    }

    fn cost(&self, io: &[&Meta], windows: &Meta) -> Cost {
        let taps = (self.kernel[0] * self.kernel[1]) as u64;
        let bytes = io.iter().map(|m| m.bytes() as u64).sum();
        Cost { flops: 2 * taps * windows.numel() as u64, behind: 0, bytes }
    }
}

/// Checks that a tensor is (N, C, H, W) and has a supported dtype.
fn images(op: &'static str, x: &Meta, integers: bool) -> Result<[usize; 4]> {
    let is_allowed = x.dtype.is_float() || integers && x.dtype.is_int();
    let want = if integers { "a float or integer dtype" } else { "a float dtype" };
    crate::ensure!(is_allowed, Error::dtype(op, [x.dtype], want));
    let shape = <[usize; 4]>::try_from(&*x.shape);
    shape.map_err(|_| Error::shape(op, [&x.shape], "(N, C, H, W)"))
}

/// The meta of images of another size in the memory order of `x`.
fn resized(x: &Meta, [h, w]: [usize; 2]) -> Meta {
    let shape = x.shape.with(2, h).with(3, w);
    Meta { dtype: x.dtype, strides: shape.dense_like(&x.strides), shape }
}

/// Checks that dy has an element for each of these windows.
fn check_windows(op: &'static str, [h, w]: [usize; 2], dy: &Meta) -> Result<()> {
    let want: Shape = dy.shape.with(2, h).with(3, w);
    crate::ensure!(dy.shape == want, Error::shape(op, [&dy.shape], format!("{want}")));
    Ok(())
}

/// The greatest element of each window and its position within the window: input x (N, C, H, W),
/// outputs y and index (N, C, H', W'), both in the memory order of x. NaN compares greater than
/// everything, the first of equal elements wins, and padding never does. The index is uint8, or
/// int32 where the window has more than 256 positions. Integers are allowed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MaxPool2d {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
}

/// The gradient of [`MaxPool2d`]: inputs dy and index, output dx (N, C, h, w).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MaxPool2dGrad {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// Height and width of the image.
    pub size: [usize; 2],
}

/// The mean of each window: input x (N, C, H, W), output y (N, C, H', W') in the memory order of x.
/// Floats only; float16 and bfloat16 are accumulated in float32.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AvgPool2d {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// Whether padding counts as zeros; otherwise the mean is over real elements.
    pub count_include_pad: bool,
}

/// The gradient of [`AvgPool2d`]: input dy, output dx (N, C, h, w).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AvgPool2dGrad {
    /// How the windows slide.
    #[serde(flatten)]
    pub window: Window,
    /// Whether padding counts as zeros.
    pub count_include_pad: bool,
    /// Height and width of the image.
    pub size: [usize; 2],
}

catalog!(
    MaxPool2d => "max_pool2d", MaxPool2dGrad => "max_pool2d_grad",
    AvgPool2d => "avg_pool2d", AvgPool2dGrad => "avg_pool2d_grad"
);

impl Family for MaxPool2d {
    fn name(&self) -> &'static str {
        "max_pool2d"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        let [_, _, h, w] = images(self.name(), x, true)?;
        let y = resized(x, self.window.over(self.name(), [h, w])?);
        let index = Meta { dtype: self.window.index(), ..y.clone() };
        Ok(smallvec::smallvec![y, index])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[1])
    }
}

impl Family for MaxPool2dGrad {
    fn name(&self) -> &'static str {
        "max_pool2d_grad"
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, index] = exactly(self.name(), inputs)?;
        images(self.name(), dy, false)?;
        check_windows(self.name(), self.window.over(self.name(), self.size)?, dy)?;
        let want = || format!("an index of shape {}", dy.shape);
        crate::ensure!(index.shape == dy.shape, Error::shape(self.name(), [&index.shape], want()));
        let want = self.window.index();
        crate::ensure!(
            index.dtype == want,
            Error::dtype(self.name(), [index.dtype], format!("an index of dtype {want}"))
        );
        Ok(smallvec::smallvec![resized(dy, self.size)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[0])
    }
}

impl Family for AvgPool2d {
    fn name(&self) -> &'static str {
        "avg_pool2d"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        let [_, _, h, w] = images(self.name(), x, false)?;
        Ok(smallvec::smallvec![resized(x, self.window.over(self.name(), [h, w])?)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[1])
    }
}

impl Family for AvgPool2dGrad {
    fn name(&self) -> &'static str {
        "avg_pool2d_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy] = exactly(self.name(), inputs)?;
        images(self.name(), dy, false)?;
        check_windows(self.name(), self.window.over(self.name(), self.size)?, dy)?;
        Ok(smallvec::smallvec![resized(dy, self.size)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.window.cost(io, io[0])
    }
}

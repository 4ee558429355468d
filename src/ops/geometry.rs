//! How a window slides over an image: shared by convolution and pooling.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::shape::Shape;

/// The greatest number of spatial axes.
pub const MOST_AXES: usize = 3;

/// A number for each spatial axis.
pub type Axes = SmallVec<[usize; MOST_AXES]>;

/// How a convolution's window slides over the spatial axes, of which there are one to three.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Geometry {
    /// Steps of the window along each axis.
    pub stride: Axes,
    /// Zeros added before each axis, then after each (ONNX's order of `pads`).
    pub padding: SmallVec<[usize; 2 * MOST_AXES]>,
    /// Distance between the window's taps along each axis.
    pub dilation: Axes,
    /// The channels are split into this many independent groups.
    pub groups: usize,
}

/// Which windows count at the end of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// Those that lie within the padded image.
    Whole,
    /// Those that start within the image or the padding before it, too.
    Started,
}

impl Geometry {
    /// A geometry; the number of strides is the number of spatial axes.
    pub fn new(stride: &[usize], padding: &[usize], dilation: &[usize], groups: usize) -> Self {
        Geometry {
            stride: stride.into(),
            padding: padding.into(),
            dilation: dilation.into(),
            groups,
        }
    }

    /// The number of spatial axes.
    pub fn rank(&self) -> usize {
        self.stride.len()
    }

    /// The same without spatial axis `d`.
    pub fn without(&self, d: usize) -> Geometry {
        let mut left = self.clone();
        left.padding.remove(d + self.rank());
        left.padding.remove(d);
        left.stride.remove(d);
        left.dilation.remove(d);
        left
    }

    /// The extents of the result for an image and a window of these extents.
    ///
    /// # Errors
    /// [`Error::Value`] for other numbers of axes, for zero strides, dilations, groups or windows,
    /// and where the window is larger than the padded image.
    pub fn output(&self, op: &'static str, image: &[usize], window: &[usize]) -> Result<Axes> {
        self.places(op, image, window, Last::Whole)
    }

    /// The same, with `last` saying which windows count at the end.
    ///
    /// # Errors
    /// As [`Geometry::output`].
    pub fn places(
        &self,
        op: &'static str,
        image: &[usize],
        window: &[usize],
        last: Last,
    ) -> Result<Axes> {
        self.check(op, image, window)?;
        let places = (0..self.rank()).map(|d| self.along(d, image[d], window[d], last));
        places.collect::<Option<Axes>>().ok_or_else(|| {
            let want = format!("a window within the padded image {image:?}");
            Error::value(op, format!("window {window:?} with {self:?}"), want)
        })
    }

    fn check(&self, op: &'static str, image: &[usize], window: &[usize]) -> Result<()> {
        let rank = self.rank();
        let got = || format!("window {window:?} on image {image:?} with {self:?}");
        let fits = (1..=MOST_AXES).contains(&rank)
            && [self.dilation.len(), window.len(), image.len()] == [rank; 3]
            && self.padding.len() == 2 * rank;
        let want = "one to three axes with an extent, a window, a stride, a dilation and two \
                    paddings each";
        crate::ensure!(fits, Error::value(op, got(), want));
        let positive = |v: &[usize]| v.iter().all(|&n| n > 0);
        let fits = positive(&self.stride) && positive(&self.dilation) && positive(window);
        let got = || format!("window {window:?} with {self:?}");
        crate::ensure!(
            fits && self.groups > 0,
            Error::value(op, got(), "positive sizes and steps")
        );
        Ok(())
    }

    /// The number of windows along axis `d`.
    fn along(&self, d: usize, image: usize, window: usize, last: Last) -> Option<usize> {
        let [before, after] = [self.padding[d], self.padding[d + self.rank()]];
        let from = image.checked_add(before)?;
        let reach = self.dilation[d].checked_mul(window - 1)?.checked_add(1)?;
        let (padded, stride) = (from.checked_add(after)?, self.stride[d]);
        if last == Last::Whole {
            return padded.checked_sub(reach).map(|room| room / stride + 1);
        }
        let count = padded.checked_add(stride - 1)?.checked_sub(reach)? / stride + 1;
        Some(if (count - 1) * stride < from { count } else { count - 1 })
    }
}

/// The one of three names that is for this number of spatial axes.
pub fn by_rank(names: [&'static str; MOST_AXES], rank: usize) -> &'static str {
    names[rank.clamp(1, MOST_AXES) - 1]
}

/// The spatial extents of a tensor (N, C, spatial...).
pub fn spatial(shape: &Shape) -> &[usize] {
    &shape[shape.rank().min(2)..]
}

//! How a window slides over an image: shared by convolution and pooling.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How a convolution's window slides.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Geometry {
    /// Steps of the window, vertical and horizontal.
    pub stride: [usize; 2],
    /// Zeros added around the image: top, left, bottom, right (ONNX's order of `pads`).
    pub padding: [usize; 4],
    /// Distance between the window's taps, vertical and horizontal.
    pub dilation: [usize; 2],
    /// The channels are split into this many independent groups.
    pub groups: usize,
}

impl Geometry {
    /// Height and width of the result for an image and a window of the given sizes.
    ///
    /// # Errors
    /// [`Error::Value`] for zero strides, dilations, groups or windows, and where the window is
    /// larger than the padded image.
    pub fn output(
        &self,
        op: &'static str,
        image: [usize; 2],
        window: [usize; 2],
    ) -> Result<[usize; 2]> {
        let positive = |v: &[usize; 2]| v.iter().all(|&n| n > 0);
        crate::ensure!(
            positive(&self.stride)
                && positive(&self.dilation)
                && positive(&window)
                && self.groups > 0,
            Error::value(
                op,
                format!("window {window:?} with {self:?}"),
                "positive sizes and steps"
            )
        );
        let extent = |d: usize| {
            let padded = image[d].checked_add(self.padding[d])?.checked_add(self.padding[d + 2])?;
            let reach = self.dilation[d].checked_mul(window[d] - 1)?.checked_add(1)?;
            padded.checked_sub(reach).map(|room| room / self.stride[d] + 1)
        };
        extent(0).zip(extent(1)).map(|(h, w)| [h, w]).ok_or_else(|| {
            let want = format!("a window within the padded image {image:?}");
            Error::value(op, format!("window {window:?} with {self:?}"), want)
        })
    }
}

//! Windows that slide over images, as kernels take them: with three spatial axes.

use super::source::Source;
use crate::ops::Meta;
use crate::ops::geometry::MOST_AXES;

/// The text of windows and images.
pub const TEMPLATES: &str = include_str!("c/window.cu");

/// The extents of a window, and how it slides; axes that are not there have one place.
pub struct Window<'a> {
    /// The extents.
    pub kernel: &'a [usize],
    /// The steps from window to window.
    pub stride: &'a [usize],
    /// What is added before each axis, then after each.
    pub padding: &'a [usize],
    /// The steps from tap to tap; empty for steps of 1.
    pub dilation: &'a [usize],
}

impl Window<'_> {
    /// Adds it to the arguments; its name.
    pub fn argument(&self, source: &mut Source) -> String {
        let rank = self.stride.len();
        let (before, after) = self.padding.split_at(rank);
        let parts = [
            padded(self.kernel, 1),
            padded(self.stride, 1),
            padded(before, 0),
            padded(after, 0),
            padded(self.dilation, 1),
        ];
        source.record("Window", parts.into_iter().flatten())
    }
}

/// Numbers of all axes, the last ones being those that are there.
fn padded(given: &[usize], rest: i64) -> [i64; MOST_AXES] {
    let first = MOST_AXES - given.len();
    std::array::from_fn(|d| if d < first { rest } else { given[d - first] as i64 })
}

/// Adds images (N, C, spatial...) to the arguments; their name.
pub fn images(source: &mut Source, meta: &Meta) -> String {
    let extents: Vec<i64> = meta.shape.iter().map(|&extent| extent as i64).collect();
    let strides: Vec<i64> = meta.strides.iter().map(|&stride| stride as i64).collect();
    let spread = |of: &[i64], rest: i64| {
        let missing = vec![rest; MOST_AXES + 2 - of.len()];
        [&of[..2], &missing, &of[2..]].concat()
    };
    source.record("Images", [spread(&extents, 1), spread(&strides, 0)].concat())
}

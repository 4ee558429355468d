//! Pooling: windows that slide over images, computed row by row. Every row of a result is computed
//! by one thread, so the number of threads does not change a bit of it.

mod average;
mod max;
mod rows;
#[cfg(test)]
mod tests;

pub use average::{average, average_grad};
pub use max::{max, max_grad};

use std::ops::Range;

use crate::device::team;
use crate::kernels::Width;
use crate::ops::Meta;
use rows::{Rows, Windows};

/// How the rows of a result are distributed.
#[derive(Clone, Debug)]
struct Plan {
    windows: Windows,
    /// Whether rows span all channels.
    all_channels: bool,
    from: Rows,
    to: Rows,
    /// The number of rows of a plane of the result, and of all planes.
    height: usize,
    rows: usize,
    parts: usize,
}

impl Plan {
    fn new(windows: Windows, from: &Meta, to: &Meta, width: Width) -> Plan {
        let all_channels = Rows::prefer_channels(from);
        let (from, rows) = (Rows::new(from, all_channels), Rows::new(to, all_channels));
        let height = to.shape[2];
        let count = if rows.len() == 0 { 0 } else { rows.planes(to.shape[0]) * height };
        let parts = width.0.min(count).max(1);
        Plan { windows, all_channels, from, to: rows, height, rows: count, parts }
    }

    /// The rows of a part, as (plane, row in the plane).
    fn rows(&self, part: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let height = self.height.max(1);
        let range: Range<usize> = team::share(self.rows, 1, self.parts, part);
        range.map(move |row| (row / height, row % height))
    }

    /// The row of the image that tap `tap` of a row of windows reads.
    fn image_row(&self, window: usize, tap: usize) -> usize {
        window * self.windows.stride[0] + tap - self.windows.padding[0]
    }
}

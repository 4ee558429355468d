//! Which positions of the source each position of a result is computed from.

use std::ops::Range;

use crate::ops::geometry::Geometry;

/// What a position sees of the source through one entry of the window.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    /// The entry, as row and column of the window.
    pub entry: [usize; 2],
    /// What the first position of a sweep sees.
    offset: [isize; 2],
}

/// Positions of a result, on a regular grid, that see the source through the same taps.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The first position of the result, and the distance between positions.
    start: [usize; 2],
    step: [usize; 2],
    /// The number of positions.
    count: [usize; 2],
    /// How far the source position moves from one position of the result to the next.
    source_step: [isize; 2],
    /// Height and width of the source.
    source: [usize; 2],
    /// The taps, in row-major order of the window.
    pub taps: Vec<Tap>,
}

/// One position of a sweep: the image, and the steps down and right.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    image: usize,
    steps: [usize; 2],
}

/// The sizes that define a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    pub image: [usize; 2],
    pub window: [usize; 2],
    pub output: [usize; 2],
}

impl Sweep {
    /// The output of a convolution, which sees the image through every tap.
    pub fn of_output(g: &Geometry, extents: Extents) -> Sweep {
        let offset = |d: usize, k: usize| (k * g.dilation[d]) as isize - g.padding[d] as isize;
        let axis = |d: usize| (0..extents.window[d]).map(|k| (k, offset(d, k))).collect();
        Sweep {
            start: [0; 2],
            step: [1; 2],
            count: extents.output,
            source_step: g.stride.map(|s| s as isize),
            source: extents.image,
            taps: pairs(axis(0), axis(1)),
        }
    }

    /// The image that a convolution read, seen from its output. Positions a stride apart see it
    /// through the same taps, so each such class is a sweep; each tap belongs to one of them.
    pub fn of_image(g: &Geometry, extents: Extents) -> Vec<Sweep> {
        let starts = |d: usize| 0..g.stride[d].min(extents.image[d]);
        let class = |start| Sweep::of_class(g, extents, start);
        starts(0).flat_map(|y| starts(1).map(move |x| [y, x])).map(class).collect()
    }

    fn of_class(g: &Geometry, extents: Extents, start: [usize; 2]) -> Sweep {
        let axis = |d: usize| {
            let stride = g.stride[d] as isize;
            let reach =
                |k: usize| (start[d] + g.padding[d]) as isize - (k * g.dilation[d]) as isize;
            let aligned = (0..extents.window[d]).filter(|&k| reach(k) % stride == 0);
            aligned.map(|k| (k, reach(k) / stride)).collect()
        };
        Sweep {
            start,
            step: g.stride,
            count: [0, 1].map(|d| (extents.image[d] - start[d]).div_ceil(g.stride[d])),
            source_step: [1; 2],
            source: extents.output,
            taps: pairs(axis(0), axis(1)),
        }
    }

    /// The number of positions in each image.
    pub fn places(&self) -> usize {
        self.count[0] * self.count[1]
    }

    /// The positions `range`, counted over all images.
    pub fn rows(&self, range: Range<usize>) -> impl Iterator<Item = Row> + use<> {
        let (width, places) = (self.count[1].max(1), self.places().max(1));
        range.map(move |row| {
            let place = row % places;
            Row { image: row / places, steps: [place / width, place % width] }
        })
    }

    /// Image, row and column of a position in the result.
    pub fn result(&self, row: Row) -> [usize; 3] {
        let at = |d: usize| self.start[d] + self.step[d] * row.steps[d];
        [row.image, at(0), at(1)]
    }

    /// Image, row and column of the source that a position sees through a tap, unless it is in the
    /// padding.
    #[inline(always)]
    pub fn source(&self, row: Row, tap: &Tap) -> Option<[usize; 3]> {
        let at = |d: usize| row.steps[d] as isize * self.source_step[d] + tap.offset[d];
        // A negative number becomes a very large unsigned one.
        let (y, x) = (at(0) as usize, at(1) as usize);
        (y < self.source[0] && x < self.source[1]).then_some([row.image, y, x])
    }
}

fn pairs(down: Vec<(usize, isize)>, right: Vec<(usize, isize)>) -> Vec<Tap> {
    let tap =
        |(a, b): ((usize, isize), (usize, isize))| Tap { entry: [a.0, b.0], offset: [a.1, b.1] };
    down.into_iter().flat_map(|a| right.iter().map(move |&b| tap((a, b)))).collect()
}

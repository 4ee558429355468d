//! Which positions of the source each position of a result is computed from.

use std::ops::Range;

/// What a position sees of the source through one entry of the window.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    /// The entry, along each axis of the window.
    entry: [usize; 3],
    /// What the first position of a sweep sees.
    offset: [isize; 3],
}

impl Tap {
    /// The offset of the entry in a window with these strides.
    pub fn offset_in(&self, strides: [isize; 3]) -> isize {
        self.entry.iter().zip(strides).map(|(&i, stride)| i as isize * stride).sum()
    }
}

/// Positions of a result, on a regular grid, that see the source through the same taps.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The first position of the result, and the distance between positions.
    start: [usize; 3],
    step: [usize; 3],
    /// The number of positions.
    count: [usize; 3],
    /// How far the source position moves from one position of the result to the next.
    source_step: [isize; 3],
    /// The extents of the source.
    source: [usize; 3],
    /// The taps, in row-major order of the window.
    pub taps: Vec<Tap>,
}

/// One position of a sweep: the image, and the steps along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    image: usize,
    steps: [usize; 3],
}

/// How a window slides.
#[derive(Clone, Copy, Debug)]
pub struct Slide {
    pub stride: [usize; 3],
    /// Padding before each axis.
    pub before: [usize; 3],
    pub dilation: [usize; 3],
}

/// The sizes that define a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    pub image: [usize; 3],
    pub window: [usize; 3],
    pub output: [usize; 3],
}

impl Sweep {
    /// The output of a convolution, which sees the image through every tap.
    pub fn of_output(g: &Slide, extents: Extents) -> Sweep {
        let offset = |d: usize, k: usize| (k * g.dilation[d]) as isize - g.before[d] as isize;
        let axis = |d: usize| (0..extents.window[d]).map(|k| (k, offset(d, k))).collect();
        Sweep {
            start: [0; 3],
            step: [1; 3],
            count: extents.output,
            source_step: g.stride.map(|s| s as isize),
            source: extents.image,
            taps: taps([0, 1, 2].map(axis)),
        }
    }

    /// The image that a convolution read, seen from its output. Positions a stride apart see it
    /// through the same taps, so each such class is a sweep; each tap belongs to one of them. Those
    /// of no tap, of which a large stride makes many, are left out.
    pub fn of_image(g: &Slide, extents: Extents) -> Vec<Sweep> {
        let starts = [0, 1, 2].map(|d| starts(g, extents, d));
        let [inward, down, right] = &starts;
        let planes = inward.iter().flat_map(|&z| down.iter().map(move |&y| [z, y]));
        let all = planes.flat_map(|[z, y]| right.iter().map(move |&x| [z, y, x]));
        all.map(|start| Sweep::of_class(g, extents, start)).collect()
    }

    /// Whether each position of the image is in one of these sweeps.
    pub fn are_all(sweeps: &[Sweep], extents: Extents) -> bool {
        sweeps.iter().map(Sweep::places).sum::<usize>() == extents.image.iter().product::<usize>()
    }

    fn of_class(g: &Slide, extents: Extents, start: [usize; 3]) -> Sweep {
        let axis = |d: usize| {
            let stride = g.stride[d] as isize;
            let reach = |k: usize| (start[d] + g.before[d]) as isize - (k * g.dilation[d]) as isize;
            let aligned = (0..extents.window[d]).filter(|&k| reach(k) % stride == 0);
            aligned.map(|k| (k, reach(k) / stride)).collect()
        };
        Sweep {
            start,
            step: g.stride,
            count: [0, 1, 2].map(|d| (extents.image[d] - start[d]).div_ceil(g.stride[d])),
            source_step: [1; 3],
            source: extents.output,
            taps: taps([0, 1, 2].map(axis)),
        }
    }

    /// The number of positions in each image.
    pub fn places(&self) -> usize {
        self.count.iter().product()
    }

    /// The positions `range`, counted over all images.
    pub fn rows(&self, range: Range<usize>) -> impl Iterator<Item = Row> + use<> {
        let ([_, height, width], places) = (self.count.map(|n| n.max(1)), self.places().max(1));
        range.map(move |row| {
            let (place, image) = (row % places, row / places);
            let (line, column) = (place / width, place % width);
            Row { image, steps: [line / height, line % height, column] }
        })
    }

    /// Image, layer, row and column of a position in the result.
    pub fn result(&self, row: Row) -> [usize; 4] {
        let at = |d: usize| self.start[d] + self.step[d] * row.steps[d];
        [row.image, at(0), at(1), at(2)]
    }

    /// Image, layer, row and column of the source that a position sees through a tap, unless it is
    /// in the padding.
    #[inline(always)]
    pub fn source(&self, row: Row, tap: &Tap) -> Option<[usize; 4]> {
        // A negative number becomes a very large unsigned one.
        let at = |d: usize| (row.steps[d] as isize * self.source_step[d] + tap.offset[d]) as usize;
        let [z, y, x] = [at(0), at(1), at(2)];
        let [depth, height, width] = self.source;
        (z < depth && y < height && x < width).then_some([row.image, z, y, x])
    }
}

/// The first positions along an axis of the image that see the output through a tap, in order.
fn starts(g: &Slide, extents: Extents, d: usize) -> Vec<usize> {
    let first = |k: usize| (k * g.dilation[d]) as isize - g.before[d] as isize;
    let classes =
        (0..extents.window[d]).map(|k| first(k).rem_euclid(g.stride[d] as isize) as usize);
    let mut starts: Vec<usize> = classes.filter(|&start| start < extents.image[d]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The taps of a window, from the entries and offsets along each axis.
fn taps([inward, down, right]: [Vec<(usize, isize)>; 3]) -> Vec<Tap> {
    let lines = inward.iter().flat_map(|a| down.iter().map(move |b| (a, b)));
    let tap = |(a, b), c: &(usize, isize)| {
        let along: [(usize, isize); 3] = [a, b, *c];
        Tap { entry: along.map(|(entry, _)| entry), offset: along.map(|(_, offset)| offset) }
    };
    lines.flat_map(|(&a, &b)| right.iter().map(move |c| tap((a, b), c))).collect()
}

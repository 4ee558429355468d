//! Convolutions for tests, and the naive loops they are compared with.

use crate::kernels::testing::Random;
use crate::ops::geometry::{Axes, Geometry};

/// Sizes of a convolution: N, I, O, image, window.
#[allow(missing_docs)]
pub struct Case {
    pub geometry: Geometry,
    pub n: usize,
    pub channels: [usize; 2],
    pub image: Axes,
    pub window: Axes,
    pub output: Axes,
}

impl Case {
    /// Random valid sizes, with one to three spatial axes.
    pub fn random(random: &mut Random) -> Case {
        loop {
            let rank = 1 + random.below(3);
            let largest = [12, 9, 5][rank - 1];
            let mut some = |count: usize, low: usize, n: usize| -> Vec<usize> {
                (0..count).map(|_| low + random.below(n)).collect()
            };
            let (stride, dilation, padding) =
                (some(rank, 1, 3), some(rank, 1, 2), some(2 * rank, 0, 3));
            let (window, image) = (some(rank, 1, 4), some(rank, 1, largest));
            let groups = 1 + random.below(3);
            let channels = [(); 2].map(|()| groups * (1 + random.below(4)));
            let geometry = Geometry::new(&stride, &padding, &dilation, groups);
            if let Some(case) = Case::of(geometry, random.below(4), channels, &image, &window) {
                return case;
            }
        }
    }

    /// The case of these sizes; None if the window does not fit.
    pub fn of(
        geometry: Geometry,
        n: usize,
        channels: [usize; 2],
        image: &[usize],
        window: &[usize],
    ) -> Option<Case> {
        let output = geometry.output("", image, window).ok()?;
        Some(Case { geometry, n, channels, image: image.into(), window: window.into(), output })
    }

    /// The shapes of x, w and y.
    pub fn shapes(&self) -> [Vec<usize>; 3] {
        let [i, o] = self.channels;
        let of = |leading: [usize; 2], extents: &Axes| [&leading[..], extents].concat();
        [
            of([self.n, i], &self.image),
            of([o, i / self.geometry.groups], &self.window),
            of([self.n, o], &self.output),
        ]
    }

    /// Calls `visit` for every product with the row-major positions of its elements in x, w and y.
    pub fn products(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [x, w, y] = self.shapes();
        let g = &self.geometry;
        let each = y[1] / g.groups;
        for to in all(&y) {
            for tap in all(&[&[1], &w[1..]].concat()) {
                let place = |d: usize| {
                    let place = to[2 + d] * g.stride[d] + tap[2 + d] * g.dilation[d];
                    place.checked_sub(g.padding[d]).filter(|&place| place < x[2 + d])
                };
                let places: Option<Vec<usize>> = (0..g.rank()).map(place).collect();
                if let Some(places) = places {
                    let from = [&[to[0], to[1] / each * w[1] + tap[1]], &places[..]].concat();
                    let entry = [&[to[1]], &tap[1..]].concat();
                    visit(flat(&x, &from), flat(&w, &entry), flat(&y, &to));
                }
            }
        }
    }
}

/// The row-major position of an element.
fn flat(shape: &[usize], at: &[usize]) -> usize {
    shape.iter().zip(at).fold(0, |place, (extent, i)| place * extent + i)
}

/// The indices of all elements, in row-major order.
pub fn all(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product::<usize>()).map(move |mut place| {
        let mut at = vec![0; shape.len()];
        for (i, extent) in at.iter_mut().zip(shape).rev() {
            (*i, place) = (place % extent, place / extent);
        }
        at
    })
}

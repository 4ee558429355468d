//! Convolutions for tests, and the naive loops they are compared with.

use crate::kernels::testing::Random;
use crate::ops::geometry::Geometry;

/// Sizes of a convolution: N, I, O, image, window.
#[allow(missing_docs)]
pub struct Case {
    pub geometry: Geometry,
    pub n: usize,
    pub channels: [usize; 2],
    pub image: [usize; 2],
    pub window: [usize; 2],
    pub output: [usize; 2],
}

impl Case {
    /// Random valid sizes.
    pub fn random(random: &mut Random) -> Case {
        loop {
            let mut pair = |low: usize, n: usize| [low + random.below(n), low + random.below(n)];
            let (stride, dilation, window, image) =
                (pair(1, 3), pair(1, 2), pair(1, 4), pair(1, 9));
            let (before, after) = (pair(0, 3), pair(0, 3));
            let padding = [before[0], before[1], after[0], after[1]];
            let groups = 1 + random.below(3);
            let channels = [(); 2].map(|()| groups * (1 + random.below(4)));
            let geometry = Geometry { stride, padding, dilation, groups };
            let n = random.below(4);
            if let Ok(output) = geometry.output("", image, window) {
                return Case { geometry, n, channels, image, window, output };
            }
        }
    }

    /// The shapes of x, w and y.
    pub fn shapes(&self) -> [[usize; 4]; 3] {
        let ([i, o], [h, w], [kh, kw]) = (self.channels, self.image, self.window);
        let [oh, ow] = self.output;
        [[self.n, i, h, w], [o, i / self.geometry.groups, kh, kw], [self.n, o, oh, ow]]
    }

    /// Calls `visit` for every product with the row-major positions of its elements in x, w and y.
    pub fn products(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [x, w, y] = self.shapes();
        let g = &self.geometry;
        let flat = |shape: [usize; 4], at: [usize; 4]| (0..4).fold(0, |p, d| p * shape[d] + at[d]);
        let all = |shape: [usize; 4]| {
            (0..shape.iter().product::<usize>()).map(move |mut p| {
                let mut at = [0; 4];
                for d in (0..4).rev() {
                    (at[d], p) = (p % shape[d], p / shape[d]);
                }
                at
            })
        };
        for [n, o, oh, ow] in all(y) {
            for [_, c, kh, kw] in all([1, w[1], w[2], w[3]]) {
                let h = (oh * g.stride[0] + kh * g.dilation[0]).wrapping_sub(g.padding[0]);
                let v = (ow * g.stride[1] + kw * g.dilation[1]).wrapping_sub(g.padding[1]);
                if h < x[2] && v < x[3] {
                    let channel = o / (y[1] / g.groups) * w[1] + c;
                    let places = (flat(x, [n, channel, h, v]), flat(w, [o, c, kh, kw]));
                    visit(places.0, places.1, flat(y, [n, o, oh, ow]));
                }
            }
        }
    }
}

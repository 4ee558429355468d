//! Convolutions as libraries describe them: of dense tensors in one of two layouts.

use crate::dtype::DType;
#[cfg(any(test, feature = "emulate"))]
use crate::dtype::Element;

/// What is computed of a convolution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// The result `y`, perhaps with a bias.
    Forward,
    /// The gradient of the images `x`.
    GradInput,
    /// The gradient of the weights `w`.
    GradWeight,
}

impl Pass {
    /// The operands and the result, as indices into `x`, `w`, `y`.
    pub fn order(self) -> [usize; 3] {
        match self {
            Pass::Forward => [0, 1, 2],
            Pass::GradInput => [1, 2, 0],
            Pass::GradWeight => [0, 2, 1],
        }
    }
}

/// How all tensors of a convolution lie in memory, without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// Row-major: (N, C, spatial...).
    ChannelsFirst,
    /// With the channels innermost: (N, spatial..., C).
    ChannelsLast,
}

impl Layout {
    /// The strides of a tensor of these extents (N, C, spatial...).
    pub fn strides(self, extents: &[usize]) -> Vec<usize> {
        let spatial = 2..extents.len();
        let outwards: Vec<usize> = match self {
            Layout::ChannelsFirst => spatial.rev().chain([1, 0]).collect(),
            Layout::ChannelsLast => [1].into_iter().chain(spatial.rev()).chain([0]).collect(),
        };
        let mut strides = vec![1; extents.len()];
        let mut step = 1;
        for d in outwards {
            strides[d] = step;
            step *= extents[d];
        }
        strides
    }
}

/// A convolution or one of its gradients. A call's tensors are `x`, `w`, `y`, and the bias if there
/// is one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Convolution {
    /// Which of the three is computed from the others.
    pub pass: Pass,
    /// The type of all elements; those of 16 bits are summed in float32.
    pub dtype: DType,
    /// How `x`, `w` and `y` lie in memory.
    pub layout: Layout,
    /// The extents of `x` and `y` (N, C, spatial...) and of `w` (O, C / groups, window...), with at
    /// least two spatial axes.
    pub extents: [Vec<usize>; 3],
    /// The window's steps, the zeros on both sides, and the distance of taps, along each axis.
    pub slides: [Vec<usize>; 3],
    /// The channels are split into this many groups.
    pub groups: usize,
    /// Whether a bias is added to the result.
    pub has_bias: bool,
}

#[cfg(any(test, feature = "emulate"))]
#[allow(unsafe_code)]
impl Convolution {
    /// Computes it on the host, with sums of doubles.
    ///
    /// # Safety
    /// The addresses are those of a call's tensors, which the host reaches.
    pub(super) unsafe fn computed(&self, tensors: &[u64]) {
        // SAFETY: by the caller's promise.
        unsafe {
            match self.dtype {
                DType::Float64 => self.summed::<f64>(tensors),
                DType::Float16 => self.summed::<half::f16>(tensors),
                DType::BFloat16 => self.summed::<half::bf16>(tensors),
                _ => self.summed::<f32>(tensors),
            }
        }
    }

    /// # Safety
    /// As [`Convolution::computed`], for elements of this type.
    unsafe fn summed<T: Element>(&self, tensors: &[u64]) {
        let at = |t: usize| std::ptr::with_exposed_provenance_mut::<T>(tensors[t] as usize);
        let [a, b, to] = self.pass.order();
        let count = self.extents[to].iter().product();
        let mut sums = vec![0.0; count];
        if self.has_bias {
            let step = self.layout.strides(&self.extents[2])[1];
            // SAFETY: the bias has an element for each channel.
            let bias = |i: usize| unsafe { *at(3).add(i / step % self.extents[2][1]) }.to_f64();
            sums.iter_mut().enumerate().for_each(|(i, sum)| *sum = bias(i));
        }
        // SAFETY: the places are elements of the tensors.
        self.each(|places| unsafe {
            let product = (*at(a).add(places[a])).to_f64() * (*at(b).add(places[b])).to_f64();
            sums[places[to]] += product;
        });
        // SAFETY: the result has as many elements.
        sums.into_iter()
            .enumerate()
            .for_each(|(i, sum)| unsafe { *at(to).add(i) = T::from_f64(sum) });
    }

    /// Calls `f` with the places in `x`, `w` and `y` of all that are multiplied and summed up.
    fn each(&self, mut f: impl FnMut([usize; 3])) {
        let [x, w, y] = &self.extents;
        let [stride, padding, dilation] = &self.slides;
        let strides = self.extents.each_ref().map(|extents| self.layout.strides(extents));
        let of = |t: usize, at: &[usize]| -> usize {
            at.iter().zip(&strides[t]).map(|(at, stride)| at * stride).sum()
        };
        for at_y in every(y) {
            for at_w in every(&w[1..]) {
                let group = at_y[1] / (w[0] / self.groups);
                let seen = |d: usize| {
                    let tap = at_y[d + 2] * stride[d] + at_w[d + 1] * dilation[d];
                    tap.checked_sub(padding[d]).filter(|&tap| tap < x[d + 2])
                };
                let Some(site) = (0..stride.len()).map(seen).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let at_x = [&[at_y[0], group * w[1] + at_w[0]], &site[..]].concat();
                let tap = [&[at_y[1]], &at_w[..]].concat();
                f([of(0, &at_x), of(1, &tap), of(2, &at_y)]);
            }
        }
    }
}

/// All indices of these extents.
#[cfg(any(test, feature = "emulate"))]
fn every(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let index = |mut i: usize| {
        let mut at = vec![0; extents.len()];
        for d in (0..extents.len()).rev() {
            (at[d], i) = (i % extents[d], i / extents[d]);
        }
        at
    };
    (0..extents.iter().product()).map(index)
}

//! Pseudo-random numbers, layouts and tensors, reproducible from a seed.

use super::Tensor;
use crate::dtype::DType;
use crate::ops::Meta;
use crate::shape::Strides;

/// Pseudo-random numbers (xorshift).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 20) as usize % n
    }

    /// A layout of this shape: axes in any order, with gaps, in either direction.
    pub fn layout(&mut self, dtype: DType, shape: &[usize]) -> Meta {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        (1..order.len()).for_each(|i| order.swap(i, self.below(i + 1)));
        let mut strides: Strides = smallvec::smallvec![0; shape.len()];
        let mut step = 1;
        for d in order {
            step *= [1, 1, 1, 2][self.below(4)];
            strides[d] = if self.below(5) == 0 { -step } else { step };
            step *= shape[d].max(1) as isize;
        }
        Meta { strides, ..Meta::new(dtype, shape) }
    }

    /// A tensor of random values: integers for integer dtypes, in -1..1 for floats.
    pub fn tensor(&mut self, meta: Meta) -> Tensor {
        let scale = if meta.dtype.is_float() { 8.0 } else { 1.0 };
        let values: Vec<f64> =
            (0..meta.numel()).map(|_| (self.below(129) as f64 - 64.0) / 8.0 / scale).collect();
        Tensor::new(meta, &values)
    }
}

/// `n` values between -1 and 1.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| (random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0).collect()
}

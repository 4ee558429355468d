//! The distributions.

use super::unit::Unit;
use super::{MOST, Sampler};
use crate::dtype::{Bool, DType, Element};
use crate::kernels::cpu::random::philox::{BLOCKS, Words};
use crate::kernels::cpu::simd::isa::Level;

/// Uniform in [low, high), for a dtype that computes in `A`.
#[derive(Clone, Copy, Debug)]
pub struct Uniform<A> {
    low: A,
    high: A,
    /// The largest value of the dtype below `high`.
    most: A,
}

impl<A: Unit> Uniform<A> {
    /// From `low` to just below `high`, or `low` itself where they are equal.
    pub fn new(dtype: DType, low: f64, high: f64) -> Self {
        Uniform { low: A::of(low), high: A::of(high), most: A::of(below(dtype, high)) }
    }
}

impl<A: Unit> Sampler for Uniform<A> {
    type Value = A;
    const PER_BLOCK: usize = 4 / A::WORDS;

    #[inline(always)]
    fn sample<L: Level>(&self, words: &Words) -> [A; MOST] {
        let mut made = A::uniform(words);
        for value in &mut made {
            let inside = self.low * (A::of(1.0) - *value) + self.high * *value;
            // Rounding must not reach the upper bound, nor fall below the lower one.
            let below = if inside < self.most { inside } else { self.most };
            *value = if below < self.low { self.low } else { below };
        }
        made
    }
}

/// The largest value of a float dtype that is less than `bound`.
fn below(dtype: DType, bound: f64) -> f64 {
    let nearest = crate::dispatch!(dtype, T => T::from_f64(bound).to_f64());
    if nearest < bound {
        return nearest;
    }
    let half_down = |bits: u16| match bits {
        0 => 0x8001,
        0x8000.. => bits + 1,
        _ => bits - 1,
    };
    match dtype {
        DType::Float16 => {
            half::f16::from_bits(half_down(half::f16::from_f64(nearest).to_bits())).to_f64()
        }
        DType::BFloat16 => {
            half::bf16::from_bits(half_down(half::bf16::from_f64(nearest).to_bits())).to_f64()
        }
        DType::Float32 => (nearest as f32).next_down() as f64,
        _ => nearest.next_down(),
    }
}

/// Normal, by the Box-Muller method.
#[derive(Clone, Copy, Debug)]
pub struct Normal<A> {
    /// The mean.
    pub mean: A,
    /// The standard deviation.
    pub std: A,
}

impl<A: Unit> Sampler for Normal<A> {
    type Value = A;
    const PER_BLOCK: usize = 4 / A::WORDS;

    #[inline(always)]
    fn sample<L: Level>(&self, words: &Words) -> [A; MOST] {
        let mut made = A::normal::<L>(words);
        for value in &mut made {
            *value = self.mean + self.std * *value;
        }
        made
    }
}

/// True with a probability that is a multiple of 2^-32.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    /// The largest word that yields true, if any does.
    last: Option<u32>,
}

impl Bernoulli {
    /// True with probability `p`, from 0 to 1.
    pub fn new(p: f64) -> Self {
        let words = (p * 2f64.powi(32)).round() as u64;
        Bernoulli { last: words.checked_sub(1).map(|last| last as u32) }
    }
}

impl Sampler for Bernoulli {
    type Value = Bool;

    #[inline(always)]
    fn sample<L: Level>(&self, words: &Words) -> [Bool; MOST] {
        let (some, last) = (self.last.is_some(), self.last.unwrap_or(0));
        let mut made = [Bool(0); MOST];
        for b in 0..BLOCKS {
            for w in 0..4 {
                made[4 * b + w] = Bool((some & (words[w][b] <= last)) as u8);
            }
        }
        made
    }
}

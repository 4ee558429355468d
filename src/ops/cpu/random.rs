//! Filling memory with random numbers.
//!
//! The place of an element in the output's memory decides its number: an operation's block `b`
//! gives places `b*k .. b*k + k` in order, where k is 4, or 2 for float64 numbers that need two
//! words each. So neither the threads nor the vectors' length can be seen in the result.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::math;
use super::philox::{BLOCKS, State, Words};
use super::wide::Wide;
use crate::device::team;
use crate::dtype::{Bool, DType, Element};
use crate::ops::{Kernel, Width, kernel};

/// The most elements that [`BLOCKS`] blocks give.
pub const MOST: usize = 4 * BLOCKS;
/// Groups of blocks that a thread takes at least.
const GRAIN: usize = 16;

/// Turns random words into numbers.
pub trait Sampler: Copy + Send + Sync + 'static {
    /// What is made, before it is rounded to the output's dtype.
    type Value: Element;
    /// How many numbers a block gives: 4 or 2.
    const PER_BLOCK: usize = 4;

    /// The numbers of a group of blocks, in order.
    fn sample<L: Level>(&self, words: &Words) -> [Self::Value; MOST];
}

/// Makes a group of numbers; all that is compiled for each instruction set.
struct Group<S> {
    state: State,
    group: usize,
    sampler: S,
}

impl<S: Sampler> Body for Group<S> {
    type Output = [S::Value; MOST];

    #[inline(always)]
    fn run<L: Level>(self) -> Self::Output {
        self.sampler.sample::<L>(&self.state.blocks(self.group))
    }
}

/// The numbers of group `group` of blocks, counted from the state's position.
pub fn sample<S: Sampler>(sampler: S, state: State, group: usize) -> [S::Value; MOST] {
    isa::run(Isa::active(), Group { state, group, sampler })
}

/// Prepares filling `len` elements in a row, output 0, from the generator that is input 0;
/// `round` turns numbers into as many elements.
pub fn prepare<T: Element, S: Sampler>(
    len: usize,
    sampler: S,
    round: fn(&[S::Value], &mut [T]),
    width: Width,
) -> Arc<dyn Kernel> {
    let per_group = S::PER_BLOCK * BLOCKS;
    kernel(0, move |io| {
        let state = State::read(io, 0);
        team::parallel(width.0, &|part| {
            let range = team::share(len, per_group * GRAIN, width.0, part);
            let first = range.start / per_group;
            // SAFETY: the output has `len` elements, of which this thread has these.
            let out = unsafe {
                std::slice::from_raw_parts_mut(io.output::<T>(0).add(range.start), range.len())
            };
            for (i, out) in out.chunks_mut(per_group).enumerate() {
                round(&sample(sampler, state, first + i)[..out.len()], out);
            }
        })
    })
}

/// How random words become float32 or float64.
pub trait Unit: Wide {
    /// Words that one number takes.
    const WORDS: usize;
    /// Numbers in [0, 1), one of every [`Unit::WORDS`] words of a block.
    fn uniform(words: [u32; 4]) -> [Self; 4];
    /// Numbers of the standard normal distribution, one of every [`Unit::WORDS`] words of a block.
    fn normal<L: Level>(words: [u32; 4]) -> [Self; 4];
}

impl Unit for f32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn uniform(words: [u32; 4]) -> [f32; 4] {
        words.map(|w| (w >> 8) as i32 as f32 * 2f32.powi(-24))
    }

    #[inline(always)]
    fn normal<L: Level>([a, b, c, d]: [u32; 4]) -> [f32; 4] {
        let pair = |radius: u32, angle: u32| {
            // In (0, 1]: the logarithm is finite, and the tails reach 6.6 deviations.
            let u = (radius as f32 + 1.0) * 2f32.powi(-32);
            let r = (-2.0 * math::log_f32::<L>(u)).sqrt();
            let turns = (angle >> 8) as i32 as f32 * 2f32.powi(-24);
            let (sine, cosine) = math::sin_cos_of_turns_f32::<L>(turns);
            (r * cosine, r * sine)
        };
        let ((w, x), (y, z)) = (pair(a, b), pair(c, d));
        [w, x, y, z]
    }
}

impl Unit for f64 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn uniform([a, b, c, d]: [u32; 4]) -> [f64; 4] {
        let unit = |high, low| bits_53(high, low) as f64 * 2f64.powi(-53);
        [unit(a, b), unit(c, d), 0.0, 0.0]
    }

    #[inline(always)]
    fn normal<L: Level>([a, b, c, d]: [u32; 4]) -> [f64; 4] {
        let u = (bits_53(a, b) + 1) as f64 * 2f64.powi(-53);
        let r = (-2.0 * u.ln()).sqrt();
        let turns = bits_53(c, d) as f64 * 2f64.powi(-53);
        let (sine, cosine) = (turns * std::f64::consts::TAU).sin_cos();
        [r * cosine, r * sine, 0.0, 0.0]
    }
}

#[inline(always)]
fn bits_53(high: u32, low: u32) -> i64 {
    (((high as u64) << 32 | low as u64) >> 11) as i64
}

/// Numbers of a group of blocks in order; `of` makes those of one block.
#[inline(always)]
fn collect<A: Unit>(words: &Words, of: impl Fn([u32; 4]) -> [A; 4]) -> [A; MOST] {
    let per_block = 4 / A::WORDS;
    let mut made = [[A::default(); BLOCKS]; 4];
    for b in 0..BLOCKS {
        let block = of(words.map(|w| w[b]));
        (0..4).for_each(|i| made[i][b] = block[i]);
    }
    let mut flat = [A::default(); MOST];
    for b in 0..BLOCKS {
        (0..per_block).for_each(|i| flat[b * per_block + i] = made[i][b]);
    }
    flat
}

/// Uniform in [low, high), for a dtype whose arithmetic is in `A`.
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
        collect(words, |block| {
            A::uniform(block).map(|u| {
                let value = self.low * (A::of(1.0) - u) + self.high * u;
                // Rounding must not reach the upper bound, nor cross the lower one.
                let value = if value < self.most { value } else { self.most };
                if value < self.low { self.low } else { value }
            })
        })
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

/// Normal, by the method of Box and Muller.
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
        collect(words, |block| A::normal::<L>(block).map(|z| self.mean + self.std * z))
    }
}

/// True with a probability that is a multiple of 2^-32.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    /// The largest word that is true, if any is.
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
        std::array::from_fn(|i| (some & (words[i % 4][i / 4] <= last)).into())
    }
}

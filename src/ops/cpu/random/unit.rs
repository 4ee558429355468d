//! From random words to uniform and normal numbers.

use super::MOST;
use crate::ops::cpu::isa::Level;
use crate::ops::cpu::math;
use crate::ops::cpu::philox::{BLOCKS, Words};
use crate::ops::cpu::wide::Wide;

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
pub(super) fn collect<A: Unit>(words: &Words, of: impl Fn([u32; 4]) -> [A; 4]) -> [A; MOST] {
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

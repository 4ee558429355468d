//! Conversion of random words to uniform and normal numbers, by plain loops over the blocks of a
//! group, so that they vectorise.

use super::MOST;
use crate::kernels::cpu::random::philox::{BLOCKS, Words};
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::math;
use crate::kernels::cpu::simd::wide::Wide;

/// The two types that random numbers are generated in.
pub trait Unit: Wide {
    /// The number of words per number.
    const WORDS: usize;
    /// Numbers in [0, 1).
    fn uniform(words: &Words) -> [Self; MOST];
    /// Numbers of the standard normal distribution.
    fn normal<L: Level>(words: &Words) -> [Self; MOST];
}

impl Unit for f32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn uniform(words: &Words) -> [f32; MOST] {
        let mut made = [0.0; MOST];
        for b in 0..BLOCKS {
            for w in 0..4 {
                made[4 * b + w] = unit_24(words[w][b]);
            }
        }
        made
    }

    #[inline(always)]
    fn normal<L: Level>(words: &Words) -> [f32; MOST] {
        let mut made = [[0.0; BLOCKS]; 4];
        for pair in [0, 2] {
            for b in 0..BLOCKS {
                // In (0, 1], so that the logarithm is finite; the tails reach 6.6 standard
                // deviations.
                let u = (words[pair][b] as f32 + 1.0) * 2f32.powi(-32);
                let radius = (-2.0 * math::log_f32::<L>(u)).sqrt();
                let turns = unit_24(words[pair + 1][b]);
                let (sine, cosine) = math::sin_cos_of_turns_f32::<L>(turns);
                made[pair][b] = radius * cosine;
                made[pair + 1][b] = radius * sine;
            }
        }
        let mut flat = [0.0; MOST];
        for b in 0..BLOCKS {
            for w in 0..4 {
                flat[4 * b + w] = made[w][b];
            }
        }
        flat
    }
}

impl Unit for f64 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn uniform(words: &Words) -> [f64; MOST] {
        let mut made = [0.0; MOST];
        for b in 0..BLOCKS {
            made[2 * b] = bits_53(words[0][b], words[1][b]) as f64 * 2f64.powi(-53);
            made[2 * b + 1] = bits_53(words[2][b], words[3][b]) as f64 * 2f64.powi(-53);
        }
        made
    }

    #[inline(always)]
    fn normal<L: Level>(words: &Words) -> [f64; MOST] {
        let mut made = [0.0; MOST];
        for b in 0..BLOCKS {
            let u = (bits_53(words[0][b], words[1][b]) + 1) as f64 * 2f64.powi(-53);
            let radius = (-2.0 * u.ln()).sqrt();
            let turns = bits_53(words[2][b], words[3][b]) as f64 * 2f64.powi(-53);
            let (sine, cosine) = (turns * std::f64::consts::TAU).sin_cos();
            made[2 * b] = radius * cosine;
            made[2 * b + 1] = radius * sine;
        }
        made
    }
}

/// The upper 24 bits, scaled to [0, 1).
#[inline(always)]
fn unit_24(word: u32) -> f32 {
    (word >> 8) as i32 as f32 * 2f32.powi(-24)
}

#[inline(always)]
fn bits_53(high: u32, low: u32) -> i64 {
    (((high as u64) << 32 | low as u64) >> 11) as i64
}

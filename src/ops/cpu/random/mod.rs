//! Filling memory with random numbers.
//!
//! The place of an element in the output's memory decides its number: an operation's block `b`
//! gives places `b*k .. b*k + k` in order, where k is 4, or 2 for float64 numbers that need two
//! words each. So neither the threads nor the vectors' length can be seen in the result.
#![allow(unsafe_code)]

mod distribution;
mod unit;

use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::philox::{BLOCKS, State, Words};
use crate::device::team;
use crate::dtype::Element;
use crate::ops::{Kernel, Width, kernel};
pub use distribution::{Bernoulli, Normal, Uniform};
pub use unit::Unit;

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

/// Prepares filling `len` elements in a row, output 0, from block `offset` on of the generator
/// that is input 0; `round` turns numbers into as many elements.
pub fn prepare<T: Element, S: Sampler>(
    len: usize,
    offset: u64,
    sampler: S,
    round: fn(&[S::Value], &mut [T]),
    width: Width,
) -> Arc<dyn Kernel> {
    let per_group = S::PER_BLOCK * BLOCKS;
    kernel(0, move |io| {
        let state = State::read(io, 0, offset);
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

//! Filling memory with random numbers.
//!
//! An element's position in the output's memory determines its number: an operation's block `b`
//! yields positions `b*k .. b*k + k` in order, where k is 4, or 2 for float64 numbers that need two
//! words each. So the result depends neither on the threads nor on the vector length.
#![allow(unsafe_code)]

mod distribution;
mod draw;
pub mod dropout;
pub mod philox;
mod unit;

use std::sync::Arc;

use crate::device::team;
use crate::dtype::Element;
use crate::kernels::cpu::random::philox::{BLOCKS, State, Words};
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};
use crate::kernels::{Kernel, Width, kernel};
pub use distribution::Bernoulli;
use distribution::{Normal, Uniform};
pub use draw::{advance, draw};
use unit::Unit;

/// The maximum number of elements that [`BLOCKS`] blocks yield.
pub const MOST: usize = 4 * BLOCKS;
/// The minimum number of groups of blocks per thread.
const GRAIN: usize = 16;

/// Turns random words into numbers.
pub trait Sampler: Copy + Send + Sync + 'static {
    /// The numbers before rounding to the output's dtype.
    type Value: Element;
    /// The numbers that a block yields: 4 or 2.
    const PER_BLOCK: usize = 4;

    /// The numbers of a group of blocks, in order.
    fn sample<L: Level>(&self, words: &Words) -> [Self::Value; MOST];
}

/// Generates a group of numbers; the only code compiled for each instruction set.
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

/// Prepares filling `len` contiguous elements, output 0, from block `offset` of the generator in
/// input 0 on; `round` converts numbers to as many elements.
fn prepare<T: Element, S: Sampler>(
    len: usize,
    offset: u64,
    sampler: S,
    round: fn(&[S::Value], &mut [T]),
    width: Width,
) -> Arc<dyn Kernel> {
    let per_group = S::PER_BLOCK * BLOCKS;
    kernel(0, move |io| {
        let state = State::read(io, 0, offset);
        team::ranges(len, per_group * GRAIN, width.0, &|range, _| {
            let first = range.start / per_group;
            // SAFETY: the output has `len` elements, and these belong to this thread.
            let out = unsafe {
                std::slice::from_raw_parts_mut(io.output::<T>(0).add(range.start), range.len())
            };
            for (i, out) in out.chunks_mut(per_group).enumerate() {
                round(&sample(sampler, state, first + i)[..out.len()], out);
            }
        })
    })
}

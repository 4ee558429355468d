//! Which weights are dropped: drawn in the forward pass, and again in the backward pass.
#![allow(unsafe_code)]

use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::random::philox::State;
use crate::kernels::cpu::random::{Bernoulli, MOST, sample};
use crate::kernels::cpu::simd::wide::Wide;
use crate::ops::attention::{DRAWN_TOGETHER, Rule};

const _: () = assert!(DRAWN_TOGETHER == MOST, "weights are drawn by groups of blocks");

/// The pattern of an operation.
#[derive(Clone, Copy)]
pub struct Dropping<W> {
    input: usize,
    offset: u64,
    keep: Bernoulli,
    /// What the weights that are kept are multiplied by.
    pub factor: W,
    /// The groups of weights in a row.
    groups: usize,
}

impl<W: Wide + Sum> Dropping<W> {
    /// The pattern of a rule with so many keys, drawn from block `offset` of the state in an input.
    pub fn new(rule: &Rule, keys: usize, input: usize, offset: u64) -> Self {
        let rest = 1.0 - rule.dropout.0;
        let (keep, factor) = (Bernoulli::new(rest), W::of(1.0 / rest));
        Dropping { input, offset, keep, factor, groups: keys.div_ceil(MOST) }
    }

    /// The state that the pattern is drawn from.
    pub fn state(&self, io: &Io) -> State {
        State::read(io, self.input, self.offset)
    }

    /// Calls `visit` with a key's place in the block and what its weight is multiplied by; `row` is
    /// the number of the query among those of all heads. The block starts at a multiple of
    /// [`MOST`].
    #[inline(always)]
    fn each(&self, state: State, row: usize, keys: [usize; 2], mut visit: impl FnMut(usize, W)) {
        let [first, count] = keys;
        for start in (0..count).step_by(MOST) {
            let group = row * self.groups + (first + start) / MOST;
            let keep = sample(self.keep, state, group);
            for (i, keep) in keep[..MOST.min(count - start)].iter().enumerate() {
                visit(start + i, if keep.get() { self.factor } else { W::ZERO });
            }
        }
    }

    /// Multiplies the weights of a query for a block of keys.
    pub fn apply(&self, state: State, row: usize, first: usize, weights: &mut [W]) {
        let keys = [first, weights.len()];
        self.each(state, row, keys, |i, factor| weights[i] = weights[i] * factor);
    }

    /// The factors of a block, keys x queries.
    pub fn factors(
        &self,
        state: State,
        rows: std::ops::Range<usize>,
        keys: [usize; 2],
        to: &mut [W],
    ) {
        let columns = rows.len();
        for (i, row) in rows.enumerate() {
            self.each(state, row, keys, |j, factor| to[j * columns + i] = factor);
        }
    }
}

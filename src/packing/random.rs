//! Pseudorandom numbers, the same for the same seed.

/// A xorshift generator (Marsaglia, 2003).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Mixes the seed, so that close seeds give unrelated numbers.
    pub(super) fn new(seed: u64) -> Random {
        let mut random = Random((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (0..8).for_each(|_| _ = random.next());
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 11) % end as u64) as usize
    }

    /// A number from 0 (included) to 1 (excluded).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3;
//! 2011): a function from a key and a counter to 128 random bits.

/// How many blocks are generated together, so that the rounds vectorise.
pub const BLOCKS: usize = 16;

/// Random words of [`BLOCKS`] consecutive blocks: word `w` of block `b` is `[w][b]`.
pub type Words = [[u32; BLOCKS]; 4];

const ROUNDS: u32 = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// A generator's state tensor: int64 key, and position in blocks.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Selects the sequence.
    pub key: u64,
    /// The next block.
    pub position: u64,
}

impl State {
    /// Reads the state tensor from input `i`, advanced by `offset` blocks.
    pub fn read(io: &crate::kernels::Io, i: usize, offset: u64) -> State {
        // SAFETY: `infer` checked that there are two contiguous int64.
        #[allow(unsafe_code)]
        let state = unsafe { io.read::<i64>(i, 2) };
        // Wraps as the generator's advance does.
        State { key: state[0] as u64, position: (state[1] as u64).wrapping_add(offset) }
    }

    /// [`BLOCKS`] blocks from `group * BLOCKS` on, counted from the position.
    #[inline(always)]
    pub fn blocks(self, group: usize) -> Words {
        let first = self.position as u128 + group as u128 * BLOCKS as u128;
        let mut counter = [[0; BLOCKS]; 4];
        for b in 0..BLOCKS {
            let block = first + b as u128;
            for (w, word) in counter.iter_mut().enumerate() {
                word[b] = (block >> (32 * w)) as u32;
            }
        }
        rounds(counter, [self.key as u32, (self.key >> 32) as u32])
    }
}

/// The words between rounds: in the lower halves, where a vector unit multiplies them without
/// moving them; the upper halves are leftovers without meaning.
type Halves = [[u64; BLOCKS]; 4];

#[inline(always)]
fn rounds(words: Words, mut key: [u32; 2]) -> Words {
    let mut halves: Halves = [[0; BLOCKS]; 4];
    for w in 0..4 {
        for b in 0..BLOCKS {
            halves[w][b] = words[w][b] as u64;
        }
    }
    for _ in 0..ROUNDS {
        halves = round(halves, key);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    let mut words = words;
    for w in 0..4 {
        for b in 0..BLOCKS {
            words[w][b] = halves[w][b] as u32;
        }
    }
    words
}

#[inline(always)]
fn round(words: Halves, key: [u32; 2]) -> Halves {
    const LOWER: u64 = u32::MAX as u64;
    let mut next = words;
    for b in 0..BLOCKS {
        let p0 = (words[0][b] & LOWER) * MULTIPLIERS[0] as u64;
        let p1 = (words[2][b] & LOWER) * MULTIPLIERS[1] as u64;
        next[0][b] = (p1 >> 32) ^ words[1][b] ^ key[0] as u64;
        next[1][b] = p1;
        next[2][b] = (p0 >> 32) ^ words[3][b] ^ key[1] as u64;
        next[3][b] = p0;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers distributed with Random123 (kat_vectors, philox4x32 10).
    #[test]
    fn known_answers() {
        let answer =
            |counter: [u32; 4], key| rounds(counter.map(|c| [c; BLOCKS]), key).map(|w| w[7]);
        assert_eq!(answer([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        let ones = u32::MAX;
        assert_eq!(answer([ones; 4], [ones; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        let key = [0xa4093822, 0x299f31d0];
        assert_eq!(answer(pi, key), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn the_position_carries_into_the_upper_words() {
        let state = State { key: 5, position: u64::MAX };
        let words = state.blocks(0).map(|w| w[1]);
        assert_eq!(
            words,
            rounds([[0; BLOCKS], [0; BLOCKS], [1; BLOCKS], [0; BLOCKS]], [5, 0]).map(|w| w[0])
        );
    }
}

//! Random sequences of operations, and what they give.

use super::*;

/// The numbers of xorshift64*.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        numbers.next();
        numbers
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }
}

/// The bytes that a rank gives to an operation.
pub fn given(seed: u64, rank: usize, bytes: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed ^ (rank as u64 + 1) << 48);
    let words = (0..bytes.div_ceil(8)).flat_map(|_| numbers.next().to_le_bytes());
    words.take(bytes).collect()
}

/// What ranks do together, with `bytes` of each, or for each of them.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Gather,
    Exchange,
    Broadcast { root: usize },
    Pair { from: usize, to: usize },
}

#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub kind: Kind,
    pub bytes: usize,
    pub seed: u64,
}

impl Operation {
    /// The operation of an index in a random sequence; large ones are rare.
    pub fn random(seed: u64, index: usize, size: usize) -> Self {
        let mut numbers = Numbers::new(seed << 32 ^ index as u64);
        let (root, more) = (numbers.below(size), 1 + numbers.below(size.max(2) - 1));
        let kind = match numbers.below(4) {
            0 => Kind::Gather,
            1 => Kind::Exchange,
            2 if size > 1 => Kind::Pair { from: root, to: (root + more) % size },
            _ => Kind::Broadcast { root },
        };
        let bytes = match numbers.below(200) {
            0 => numbers.below(3 << 20),
            1..6 => CHUNK / [1, size][numbers.below(2)] + numbers.below(3) - 1,
            6..20 => numbers.below(100_000),
            20..50 => 0,
            _ => numbers.below(300),
        };
        Operation { kind, bytes, seed: numbers.next() }
    }

    /// Does a rank's part and compares what it gets with the model.
    pub fn run(&self, host: &mut Host) -> Result<(), Fault> {
        let (me, size) = (host.rank(), host.size());
        let what = format!("{self:?}");
        let (round, bytes) = (round(&what), self.bytes);
        let given = |rank, bytes| given(self.seed, rank, bytes);
        let (got, want) = match self.kind {
            Kind::Gather => {
                let mut all = vec![0; bytes * size];
                host.all_gather(&round, &given(me, bytes), &mut all)?;
                (all, (0..size).flat_map(|rank| given(rank, bytes)).collect())
            }
            Kind::Exchange => {
                let mut received = vec![0; bytes * size];
                host.all_to_all(&round, &given(me, bytes * size), &mut received)?;
                let part = |from| given(from, bytes * size)[me * bytes..][..bytes].to_vec();
                (received, (0..size).flat_map(part).collect())
            }
            Kind::Broadcast { root } => {
                let mut all = given(me, bytes);
                host.broadcast(&round, &mut all, root)?;
                (all, given(root, bytes))
            }
            Kind::Pair { from, to } if to == me => {
                let mut received = vec![0; bytes];
                host.receive(&round, &mut received, from)?;
                (received, given(from, bytes))
            }
            Kind::Pair { from, to } if from == me => {
                host.send(&round, &given(me, bytes), to)?;
                return Ok(());
            }
            Kind::Pair { .. } => return Ok(()),
        };
        assert!(got == want, "rank {me} of {size}: {self:?} gives other bytes");
        Ok(())
    }
}

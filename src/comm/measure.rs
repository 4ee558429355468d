//! How long exchanges take, for the choice of what is exchanged together.

use std::time::{Duration, Instant};

use super::{Exchange, Fold, Group, Request, Wire};
use crate::dtype::DType;
use crate::error::Result;

/// The slot of these exchanges, which no call or recording uses.
const SLOT: u32 = u32::MAX;
/// Bytes of a sum that takes little more than the latency, and of one that takes far more: both
/// travel in the same rounds.
const SIZES: [usize; 2] = [16 << 10, 2 << 20];
/// How often each is timed, after a first time that fills buffers.
const TIMES: usize = 5;

/// Seconds of a sum over all ranks: those that it takes whatever its size, and those of each byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Whatever its size.
    pub latency: f64,
    /// For each byte.
    pub byte: f64,
}

impl Cost {
    /// The straight line through the times of the sizes; none of its numbers is below 0.
    fn through([small, large]: [f64; 2]) -> Self {
        let [least, most] = SIZES.map(|bytes| bytes as f64);
        let byte = ((large - small) / (most - least)).max(0.0);
        Cost { latency: (small - byte * least).max(0.0), byte }
    }
}

impl Group {
    /// Times some sums, which all ranks call together; what rank 0 has found.
    ///
    /// # Errors
    /// As [`Group::finish`].
    pub fn measure(&self) -> Result<Cost> {
        let mut times = [0.0; 2];
        for (time, bytes) in times.iter_mut().zip(SIZES) {
            *time = self.least_time(bytes)?.as_secs_f64();
        }
        let Cost { latency, byte } = Cost::through(times);
        let mut shared = [latency, byte].map(f64::to_ne_bytes).concat();
        let given = shared.clone();
        self.exchange(Exchange::Broadcast { root: 0 }, &given, |got| shared.copy_from_slice(got))?;
        let number =
            |at: usize| f64::from_ne_bytes(shared[at..at + 8].try_into().expect("8 bytes"));
        Ok(Cost { latency: number(0), byte: number(8) })
    }

    fn least_time(&self, bytes: usize) -> Result<Duration> {
        let given = vec![0; bytes];
        let sum = || Exchange::AllReduce { fold: Fold::Sum, wire: Wire::Dense };
        self.exchange(sum(), &given, |_| ())?;
        let mut least = Duration::MAX;
        for _ in 0..TIMES {
            let begun = Instant::now();
            self.exchange(sum(), &given, |_| ())?;
            least = least.min(begun.elapsed());
        }
        Ok(least)
    }

    fn exchange(&self, exchange: Exchange, given: &[u8], take: impl FnOnce(&[u8])) -> Result<()> {
        let (dtype, count) = (DType::UInt8, given.len());
        let request = Request { exchange: exchange.clone(), dtype, count, bytes: vec![given] };
        self.begin(SLOT, request)?;
        self.finish(SLOT, &exchange, given.len(), take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_two_times() {
        let [least, most] = SIZES.map(|bytes| bytes as f64);
        let cost = Cost::through([1e-5 + 1e-9 * least, 1e-5 + 1e-9 * most]);
        assert!((cost.latency - 1e-5).abs() < 1e-12 && (cost.byte - 1e-9).abs() < 1e-16);
        assert_eq!(Cost::through([2.0, 1.0]), Cost { latency: 2.0, byte: 0.0 });
        assert_eq!(Cost::through([0.0, 1.0]).latency, 0.0);
    }
}

//! Running an exchange on a transport.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::buffers::Buffers;
use super::number::{fold, narrowed, widen};
use super::{Exchange, Fault, Fold, Request, Round, Signature, Transport, Wire, signature, sparse};
use crate::dtype::DType;

/// Reductions of fewer bytes gather everything on each rank, in one round instead of two.
const SMALL: usize = 4 << 10;
/// Shares of a reduction are multiples of this many bytes, which all element sizes divide.
const GRAIN: usize = 64;

/// A transport with what one exchange needs beside it.
pub struct Runner<'a> {
    /// How bytes get from rank to rank.
    pub transport: &'a mut dyn Transport,
    /// Where buffers come from.
    pub buffers: &'a Buffers,
}

impl Runner<'_> {
    /// Runs an exchange, with which a recorded step may begin; returns this rank's result.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn run(&mut self, request: Request, step: Option<&Signature>) -> Result<Vec<u8>, Fault> {
        self.check(&request.exchange)?;
        let what = request.exchange.describe(request.count, request.dtype);
        let mut hasher = FxHasher::default();
        what.hash(&mut hasher);
        let is_pair = request.exchange.is_pair();
        let step_code = step.map_or(0, Signature::code);
        let round = Round { what: &what, hash: hasher.finish(), step: step_code };
        let result = self.exchange(&round, request)?;
        if !is_pair && signature::any_differ(self.transport.steps()) {
            self.compare_steps(step.map(Signature::text).unwrap_or_default())?;
        }
        Ok(result)
    }

    /// Tells in what the recorded steps differ with which ranks have come to an exchange.
    fn compare_steps(&mut self, mine: String) -> Result<(), Fault> {
        let what = "comparing recorded steps";
        let round = &Round { what, hash: u64::MAX, step: 0 };
        let all = self.gather_unequal(round, mine.into_bytes())?;
        let texts: Vec<_> = all.iter().map(|text| String::from_utf8_lossy(text)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let unknown = || Fault::System("recorded steps differ".into());
        Err(signature::difference(&texts, self.transport.rank()).unwrap_or_else(unknown))
    }

    /// The bytes of all ranks, which may give different numbers of them.
    fn gather_unequal(&mut self, round: &Round, mut mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        let sizes = self.sizes(round, mine.len())?;
        let (ranks, largest) = (sizes.len(), sizes.iter().copied().max().unwrap_or(0));
        mine.resize(largest, 0);
        let all = self.all_gather(round, mine, largest * ranks)?;
        let parts = parts(&all, ranks).into_iter().zip(sizes);
        Ok(parts.map(|(part, size)| part[..size].to_vec()).collect())
    }

    /// The sizes of what the ranks are going to give.
    fn sizes(&mut self, round: &Round, mine: usize) -> Result<Vec<usize>, Fault> {
        let ranks = self.transport.size();
        let mut sizes = vec![0; size_of::<u64>() * ranks];
        self.transport.all_gather(round, &(mine as u64).to_ne_bytes(), &mut sizes)?;
        let size = |part: &[u8]| u64::from_ne_bytes(part.try_into().expect("8 bytes")) as usize;
        Ok(parts(&sizes, ranks).into_iter().map(size).collect())
    }

    fn exchange(&mut self, round: &Round, request: Request) -> Result<Vec<u8>, Fault> {
        let Request { exchange, dtype, count, bytes: mine } = request;
        let received = exchange.received(count * dtype.size(), self.transport.size());
        match exchange {
            Exchange::AllReduce { fold, wire } => self.all_reduce(round, (fold, wire), dtype, mine),
            Exchange::ReduceScatter { fold } => self.reduce_scatter(round, fold, dtype, mine),
            Exchange::AllGather { .. } | Exchange::Barrier => {
                self.all_gather(round, mine, received)
            }
            Exchange::AllToAll => {
                let mut all = self.buffers.take(received);
                self.transport.all_to_all(round, &mine, &mut all)?;
                self.done(mine, all)
            }
            Exchange::Broadcast { root } => {
                let mut mine = mine;
                self.transport.broadcast(round, &mut mine, root).map(|()| mine)
            }
            Exchange::Send { to } => {
                self.transport.send(round, &mine, to)?;
                self.done(mine, Vec::new())
            }
            Exchange::Receive { from } => {
                let mut bytes = self.buffers.take(received);
                self.transport.receive(round, &mut bytes, from).map(|()| bytes)
            }
        }
    }

    /// Checks that the rank that an exchange names is one that it can be made with.
    fn check(&self, exchange: &Exchange) -> Result<(), Fault> {
        let (me, size) = (self.transport.rank(), self.transport.size());
        let fits = match *exchange {
            Exchange::Send { to: other } | Exchange::Receive { from: other } => {
                other < size && other != me
            }
            Exchange::Broadcast { root } => root < size,
            _ => true,
        };
        let wrong = || format!("{exchange:?} on rank {me} of {size}: there is no such other rank");
        if fits { Ok(()) } else { Err(Fault::System(wrong())) }
    }

    /// Keeps a buffer that is no longer needed, and returns the result.
    fn done(&self, spare: Vec<u8>, result: Vec<u8>) -> Result<Vec<u8>, Fault> {
        self.buffers.give_back(spare);
        Ok(result)
    }

    fn all_gather(&mut self, round: &Round, mine: Vec<u8>, bytes: usize) -> Result<Vec<u8>, Fault> {
        let mut all = self.buffers.take(bytes);
        self.transport.all_gather(round, &mine, &mut all)?;
        self.done(mine, all)
    }

    fn all_reduce(
        &mut self,
        round: &Round,
        (how, wire): (Fold, Wire),
        dtype: DType,
        mut mine: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let short = match wire {
            Wire::Dense => return self.dense(round, how, dtype, mine),
            Wire::Sparse => return self.gather_sparse(round, how, mine),
            Wire::Float16 => DType::Float16,
            Wire::Bfloat16 => DType::BFloat16,
        };
        let sent = narrowed(short, &mine);
        let sum = self.dense(round, how, short, sent)?;
        widen(short, &sum, &mut mine);
        self.done(sum, mine)
    }

    /// Small ones: everything on each rank. Larger ones: each rank reduces its share, and gathers
    /// those of the others; as with a ring, each element travels twice.
    fn dense(
        &mut self,
        round: &Round,
        how: Fold,
        dtype: DType,
        mut mine: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let (bytes, ranks) = (mine.len(), self.transport.size());
        if bytes <= SMALL {
            let mut all = self.buffers.take(bytes * ranks);
            self.transport.all_gather(round, &mine, &mut all)?;
            fold(dtype, how, &parts(&all, ranks), &mut mine);
            return self.done(all, mine);
        }
        mine.resize(bytes.div_ceil(ranks).next_multiple_of(GRAIN) * ranks, 0);
        let padded = mine.len();
        let share = self.reduce_scatter(round, how, dtype, mine)?;
        let mut all = self.all_gather(round, share, padded)?;
        all.truncate(bytes);
        Ok(all)
    }

    fn reduce_scatter(
        &mut self,
        round: &Round,
        how: Fold,
        dtype: DType,
        mine: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let (mut all, ranks) = (self.buffers.take(mine.len()), self.transport.size());
        self.transport.all_to_all(round, &mine, &mut all)?;
        let mut share = mine;
        share.truncate(all.len() / ranks);
        fold(dtype, how, &parts(&all, ranks), &mut share);
        self.done(all, share)
    }

    /// Elements most of which are zero: each rank gathers the others', and adds them up. Dense where
    /// one of the ranks would send no less.
    fn gather_sparse(
        &mut self,
        round: &Round,
        how: Fold,
        mut mine: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        let (ranks, mut sent) = (self.transport.size(), sparse::encode(&mine));
        let sizes = self.sizes(round, sent.len())?;
        let largest = sizes.iter().copied().max().unwrap_or(0);
        if largest * ranks >= 2 * mine.len() {
            return self.dense(round, how, DType::Float32, mine);
        }
        sent.resize(largest, 0);
        let all = self.all_gather(round, sent, largest * ranks)?;
        mine.fill(0);
        for (part, size) in parts(&all, ranks).into_iter().zip(sizes) {
            let added = sparse::add(&part[..size], &mut mine);
            added.ok_or_else(|| Fault::System("sparse elements arrived damaged".into()))?;
        }
        if how == Fold::Mean {
            divide(&mut mine, ranks);
        }
        self.done(all, mine)
    }
}

/// Divides float32 sums by the number of ranks.
fn divide(sums: &mut [u8], ranks: usize) {
    for place in sums.chunks_exact_mut(size_of::<f32>()) {
        let place: &mut [u8; 4] = place.try_into().expect("an element's bytes");
        *place = (f32::from_ne_bytes(*place) / ranks as f32).to_ne_bytes();
    }
}

/// As many equal parts as there are ranks.
fn parts(all: &[u8], ranks: usize) -> Vec<&[u8]> {
    let size = all.len() / ranks;
    (0..ranks).map(|rank| &all[rank * size..(rank + 1) * size]).collect()
}

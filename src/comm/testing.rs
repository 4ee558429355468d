//! A transport between threads of one process, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::{Fault, Round, Transport};

/// The step of a round, and bytes.
type Sent = (u64, Vec<u8>);

/// A transport between threads: a channel for each pair of ranks.
pub struct Channels {
    rank: usize,
    to: Vec<Sender<Sent>>,
    from: Vec<Receiver<Sent>>,
    steps: Vec<u64>,
    /// What rank 1 has failed with.
    pub hurts: Option<&'static str>,
}

impl Channels {
    /// The ends of all ranks.
    pub fn group(size: usize) -> Vec<Channels> {
        let pairs = || (0..size).map(|_| channel()).unzip();
        let rows: Vec<(Vec<Sender<_>>, Vec<Receiver<_>>)> = (0..size).map(|_| pairs()).collect();
        let (senders, mut receivers): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let mut columns: Vec<Vec<Receiver<_>>> = (0..size).map(|_| Vec::new()).collect();
        receivers.iter_mut().for_each(|row| {
            columns.iter_mut().zip(row.drain(..)).for_each(|(column, one)| column.push(one));
        });
        let ends = senders.into_iter().zip(columns).enumerate();
        ends.map(|(rank, (to, from))| Channels { rank, to, from, steps: Vec::new(), hurts: None })
            .collect()
    }

    fn swap(
        &mut self,
        round: &Round,
        give: impl Fn(usize) -> Vec<u8>,
        take: &mut [u8],
    ) -> Result<(), Fault> {
        if let Some(text) = self.hurts {
            return Err(Fault::Failed { rank: 1, text: text.into() });
        }
        (0..self.size()).for_each(|rank| self.to[rank].send((round.step, give(rank))).unwrap());
        let size = take.len() / self.size();
        self.steps.clear();
        for (rank, from) in self.from.iter().enumerate() {
            let (step, bytes) = from.recv().unwrap();
            take[rank * size..(rank + 1) * size].copy_from_slice(&bytes);
            self.steps.push(step);
        }
        Ok(())
    }
}

impl Transport for Channels {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&mut self, round: &Round, mine: &[u8], all: &mut [u8]) -> Result<(), Fault> {
        self.swap(round, |_| mine.to_vec(), all)
    }

    fn all_to_all(&mut self, round: &Round, send: &[u8], received: &mut [u8]) -> Result<(), Fault> {
        let size = send.len() / self.size();
        self.swap(round, |rank| send[rank * size..(rank + 1) * size].to_vec(), received)
    }

    fn broadcast(&mut self, round: &Round, bytes: &mut [u8], root: usize) -> Result<(), Fault> {
        let mut all = vec![0; bytes.len() * self.size()];
        self.all_gather(round, bytes, &mut all)?;
        bytes.copy_from_slice(&all[root * bytes.len()..(root + 1) * bytes.len()]);
        Ok(())
    }

    fn send(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault> {
        self.to[to]
            .send((round.step, bytes.to_vec()))
            .map_err(|error| Fault::System(error.to_string()))
    }

    fn receive(&mut self, _: &Round, bytes: &mut [u8], from: usize) -> Result<(), Fault> {
        bytes.copy_from_slice(&self.from[from].recv().unwrap().1);
        Ok(())
    }

    fn steps(&self) -> Vec<u64> {
        self.steps.clone()
    }

    fn fail(&mut self, _: &str) {}

    fn set_timeout(&mut self, _: Duration) {}
}

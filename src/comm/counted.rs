//! A transport that counts the bytes which it gives to other ranks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{Fault, Round, Transport};

/// Counts what goes through another transport: each byte once for each rank that receives it, of
/// calls that have succeeded. What transports add, such as headers, is not counted.
pub struct Counted {
    transport: Box<dyn Transport>,
    sent: Arc<AtomicU64>,
}

impl Counted {
    /// Adds to `sent` what a transport gives to other ranks.
    pub fn new(transport: Box<dyn Transport>, sent: Arc<AtomicU64>) -> Self {
        Counted { transport, sent }
    }

    fn count(&self, bytes: usize, receivers: usize) {
        self.sent.fetch_add((bytes * receivers) as u64, Relaxed);
    }

    fn others(&self) -> usize {
        self.transport.size() - 1
    }
}

impl Transport for Counted {
    fn rank(&self) -> usize {
        self.transport.rank()
    }

    fn size(&self) -> usize {
        self.transport.size()
    }

    fn all_gather(&mut self, round: &Round, mine: &[u8], all: &mut [u8]) -> Result<(), Fault> {
        self.transport.all_gather(round, mine, all)?;
        self.count(mine.len(), self.others());
        Ok(())
    }

    fn all_to_all(&mut self, round: &Round, send: &[u8], received: &mut [u8]) -> Result<(), Fault> {
        self.transport.all_to_all(round, send, received)?;
        self.count(send.len() / self.size(), self.others());
        Ok(())
    }

    fn broadcast(&mut self, round: &Round, bytes: &mut [u8], root: usize) -> Result<(), Fault> {
        self.transport.broadcast(round, bytes, root)?;
        self.count(bytes.len(), if root == self.rank() { self.others() } else { 0 });
        Ok(())
    }

    fn send(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault> {
        self.transport.send(round, bytes, to)?;
        self.count(bytes.len(), 1);
        Ok(())
    }

    fn receive(&mut self, round: &Round, bytes: &mut [u8], from: usize) -> Result<(), Fault> {
        self.transport.receive(round, bytes, from)
    }

    fn steps(&self) -> Vec<u64> {
        self.transport.steps()
    }

    fn fail(&mut self, text: &str) {
        self.transport.fail(text);
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.transport.set_timeout(timeout);
    }

    fn idle(&mut self) -> Result<(), Fault> {
        self.transport.idle()
    }
}

//! Memory that exchanges use again: fresh pages cost more than copying to them.

use std::sync::Mutex;

use crate::error::locked;

/// The most buffers that are kept.
const MOST: usize = 16;

/// Buffers that nothing uses at present.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer of this length with any contents: of those that have room, the smallest.
    pub fn take(&self, len: usize) -> Vec<u8> {
        let mut spare = locked(&self.0);
        let fits = spare.iter().enumerate().filter(|(_, buffer)| buffer.capacity() >= len);
        let best = fits.min_by_key(|(_, buffer)| buffer.capacity()).map(|(n, _)| n);
        let mut buffer = best.map_or_else(Vec::new, |n| spare.swap_remove(n));
        drop(spare);
        buffer.resize(len, 0);
        buffer
    }

    /// Keeps a buffer; of too many, the smallest goes.
    pub fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = locked(&self.0);
        spare.push(buffer);
        if spare.len() > MOST {
            let smallest = (0..spare.len()).min_by_key(|&n| spare[n].capacity());
            smallest.into_iter().for_each(|n| drop(spare.swap_remove(n)));
        }
    }
}

//! An allocator that is played through: whatever is live, nearly nothing is free.

use super::hard::Box;
use super::{PACKED, UNIT};
use crate::packing::random::Random;

/// Units of the frames of the functions that are called.
const FRAMES: [usize; 6] = [96, 160, 256, 704, 1152, 2400];

/// Calls fill the arena; then some return, the latest rather than others, and others are made.
pub(super) fn play(count: usize, random: &mut Random) -> Vec<Box> {
    let mut arena = Arena { live: Vec::new(), done: Vec::new(), now: 0 };
    while arena.live.len() + arena.done.len() < count {
        arena.fill(random);
        arena.now += 1;
        for _ in 0..1 + random.below(4) {
            arena.free(random);
        }
    }
    let end = arena.now + 1;
    arena.done.extend(arena.live.iter().map(|part| Box { end, ..*part }));
    arena.done
}

struct Arena {
    /// What is live, by offset.
    live: Vec<Box>,
    done: Vec<Box>,
    now: usize,
}

impl Arena {
    /// Puts frames into gaps until hardly any of them fits.
    fn fill(&mut self, random: &mut Random) {
        for _ in 0..24 {
            let size = FRAMES[random.below(FRAMES.len())];
            if let Some(low) = self.gap(size) {
                let part = Box { start: self.now, end: usize::MAX, low, high: low + size };
                let at = self.live.partition_point(|other| other.low < low);
                self.live.insert(at, part);
                self.now += random.below(2);
            }
        }
    }

    /// The smallest gap that is large enough.
    fn gap(&self, size: usize) -> Option<usize> {
        let lows = std::iter::once(0).chain(self.live.iter().map(|part| part.high));
        let highs = self.live.iter().map(|part| part.low).chain([PACKED.0 / UNIT]);
        let gaps = lows.zip(highs).filter(|(low, high)| high - low >= size);
        gaps.min_by_key(|(low, high)| high - low).map(|(low, _)| low)
    }

    /// Ends one of the four latest calls, or now and then any.
    fn free(&mut self, random: &mut Random) {
        let mut order: Vec<usize> = (0..self.live.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.live[at].start));
        let among = if random.below(8) == 0 { order.len() } else { order.len().min(4) };
        let part = self.live.remove(order[random.below(among)]);
        self.done.push(Box { end: self.now.max(part.start + 1), ..part });
    }
}

//! Tiles for what a packing leaves free, so that nothing is.
//!
//! What is free grows where more ends than begins, and shrinks where less does. A piece that is
//! smaller than the hole it lies in makes the same change at its start as, in reverse, at its end;
//! so a growth and a shrinking that some piece, or a chain of pieces, joins are taken for one
//! filler, a tile that lasts as long.

use std::collections::VecDeque;

use super::tiling::{self, Tile};

/// More growths than these are more than a few holes.
const MOST_GROWTHS: usize = 64;

/// Tiles that fill up `height` at all times at which there are tiles; None where that is too low,
/// or too much is free.
pub(super) fn fillers(tiles: &[Tile], height: usize) -> Option<Vec<Tile>> {
    let mut free = Free::new(tiles, height)?;
    let growths = (0..free.bytes.len()).filter(|&at| free.growth(at) > 0);
    if growths.count() > MOST_GROWTHS {
        return None;
    }
    let mut fillers = Vec::new();
    while let Some(joint) = free.best(tiles) {
        let cuts = joint.path.windows(2);
        fillers.extend(cuts.map(|cut| Tile { start: cut[0], end: cut[1], size: joint.size }));
        free.bytes[joint.from..joint.to].iter_mut().for_each(|bytes| *bytes -= joint.size);
    }
    Some(fillers)
}

/// How much is free from each moment to the next.
struct Free {
    moments: Vec<u32>,
    bytes: Vec<usize>,
}

/// A growth of what is free, and a later shrinking.
struct Joint {
    /// How unlikely they belong together.
    rank: (usize, bool, usize),
    /// The moments, by number.
    from: usize,
    to: usize,
    /// How much of both may belong together.
    size: usize,
    /// The moments at which pieces meet that lead from one to the other.
    path: Vec<u32>,
}

impl Free {
    fn new(tiles: &[Tile], height: usize) -> Option<Free> {
        let moments = tiling::moments(tiles);
        let at = |moment| moments.partition_point(|&other| other < moment);
        let mut live = vec![0; moments.len()];
        for tile in tiles {
            live[at(tile.start)..at(tile.end)].iter_mut().for_each(|live| *live += tile.size);
        }
        // Between tiles nothing needs to be filled up.
        let free = |live| if live == 0 { Some(0) } else { height.checked_sub(live) };
        let bytes = live.into_iter().map(free).collect::<Option<_>>()?;
        Some(Free { moments, bytes })
    }

    /// The change at a moment, as a growth.
    fn growth(&self, at: usize) -> isize {
        let before = at.checked_sub(1).map_or(0, |before| self.bytes[before]);
        self.bytes[at] as isize - before as isize
    }

    /// The growth and the shrinking that the fewest pieces join; of these such as are equal, of
    /// these the nearest.
    fn best(&self, tiles: &[Tile]) -> Option<Joint> {
        let mut joints = Vec::new();
        for from in (0..self.bytes.len()).filter(|&at| self.growth(at) > 0) {
            let mut least = usize::MAX;
            for to in from + 1..self.bytes.len() {
                least = least.min(self.bytes[to - 1]);
                if self.growth(to) < 0 && least > 0 {
                    joints.push(self.joint(tiles, from, to, least));
                }
            }
        }
        joints.into_iter().min_by_key(|joint| joint.rank)
    }

    /// `least` is free all the time.
    fn joint(&self, tiles: &[Tile], from: usize, to: usize, least: usize) -> Joint {
        let (growth, shrinking) = (self.growth(from), -self.growth(to));
        let size = (growth.min(shrinking) as usize).min(least);
        let ends = [self.moments[from], self.moments[to]];
        let path = path(tiles, ends[0], ends[1]);
        let pieces = path.as_ref().map_or(usize::MAX, Vec::len);
        let rank = (pieces, growth != shrinking, to - from);
        Joint { rank, from, to, size, path: path.unwrap_or(ends.to_vec()) }
    }
}

/// The moments at which the fewest tiles that follow each other from one moment to another meet.
fn path(tiles: &[Tile], from: u32, to: u32) -> Option<Vec<u32>> {
    let mut before = vec![(from, from)];
    let mut queue = VecDeque::from([from]);
    while let Some(moment) = queue.pop_front() {
        for tile in tiles.iter().filter(|tile| tile.start == moment && tile.end <= to) {
            if before.iter().all(|step| step.0 != tile.end) {
                before.push((tile.end, moment));
                queue.push_back(tile.end);
            }
        }
    }
    let step = |moment: &u32| before.iter().find(|step| step.0 == *moment).map(|step| step.1);
    let back = |at: &u32| step(at).filter(|_| *at != from);
    let mut path: Vec<u32> = std::iter::successors(Some(to), back).collect();
    path.reverse();
    (path[0] == from).then_some(path)
}

//! Filler tiles for the space that a packing leaves free, so that it becomes a tiling.
//!
//! Free space grows at moments where more bytes end than begin, and shrinks where fewer do. A piece
//! that is smaller than the hole it is placed in causes a change at its start and the reverse
//! change at its end. So a growth and a shrinking that a piece, or a chain of pieces, connects are
//! taken to be one filler: a tile that lasts from the one to the other.

use std::collections::{BTreeMap, VecDeque};

use super::tiling::{self, Tile};

/// With more growths than this there are too many holes to fill.
const MOST_GROWTHS: usize = 64;

/// Tiles that fill up `height` whenever a tile is live; None if that is too low, or if there are
/// too many holes.
pub(super) fn fillers(tiles: &[Tile], height: usize) -> Option<Vec<Tile>> {
    let mut free = Free::new(tiles, height)?;
    let growths: Vec<usize> = free.growths().collect();
    if growths.len() > MOST_GROWTHS {
        return None;
    }
    let follow = follow(tiles, &free.moments);
    let chains = growths.iter().map(|&from| (from, Chains::new(&follow, from))).collect();
    let mut fillers = Vec::new();
    while let Some(joint) = free.best(&chains) {
        let moment = |at: usize| free.moments[at];
        let cuts = joint.path.windows(2);
        let tile =
            |cut: &[usize]| Tile { start: moment(cut[0]), end: moment(cut[1]), size: joint.size };
        fillers.extend(cuts.map(tile));
        free.bytes[joint.from..joint.to].iter_mut().for_each(|bytes| *bytes -= joint.size);
    }
    Some(fillers)
}

/// The free bytes from each moment to the next.
struct Free {
    moments: Vec<u32>,
    bytes: Vec<usize>,
}

/// A growth of the free space and a later shrinking.
struct Joint {
    /// How unlikely it is that the two belong together.
    rank: (usize, bool, usize),
    /// The index of the growth's moment, and of the shrinking's.
    from: usize,
    to: usize,
    /// The bytes that both have in common.
    size: usize,
    /// The moments at which the pieces that connect the two meet, both ends included.
    path: Vec<usize>,
}

impl Free {
    fn new(tiles: &[Tile], height: usize) -> Option<Free> {
        let moments = tiling::moments(tiles);
        let at = |moment| moments.partition_point(|&other| other < moment);
        let mut live = vec![0; moments.len()];
        for tile in tiles {
            live[at(tile.start)..at(tile.end)].iter_mut().for_each(|live| *live += tile.size);
        }
        // Times without any tile need no filler.
        let free = |live| if live == 0 { Some(0) } else { height.checked_sub(live) };
        let bytes = live.into_iter().map(free).collect::<Option<_>>()?;
        Some(Free { moments, bytes })
    }

    /// The change at a moment, as a growth.
    fn growth(&self, at: usize) -> isize {
        let before = at.checked_sub(1).map_or(0, |before| self.bytes[before]);
        self.bytes[at] as isize - before as isize
    }

    /// The moments at which free space grows.
    fn growths(&self) -> impl Iterator<Item = usize> {
        (0..self.bytes.len()).filter(|&at| self.growth(at) > 0)
    }

    /// The growth and the shrinking connected by the fewest pieces; ties go to those of equal size,
    /// then to the nearest.
    fn best(&self, chains: &BTreeMap<usize, Chains>) -> Option<Joint> {
        let mut joints = Vec::new();
        for from in self.growths() {
            let mut least = usize::MAX;
            for to in from + 1..self.bytes.len() {
                least = least.min(self.bytes[to - 1]);
                if self.growth(to) < 0 && least > 0 {
                    joints.push(self.joint(&chains[&from], from, to, least));
                }
            }
        }
        joints.into_iter().min_by_key(|joint| joint.rank)
    }

    /// Pairs a growth and a shrinking between which at least `least` bytes stay free.
    fn joint(&self, chains: &Chains, from: usize, to: usize, least: usize) -> Joint {
        let (growth, shrinking) = (self.growth(from), -self.growth(to));
        let size = (growth.min(shrinking) as usize).min(least);
        let path = chains.path(from, to);
        let pieces = path.as_ref().map_or(usize::MAX, Vec::len);
        let rank = (pieces, growth != shrinking, to - from);
        Joint { rank, from, to, size, path: path.unwrap_or(vec![from, to]) }
    }
}

/// By moment: the moments at which the pieces that begin then end.
fn follow(tiles: &[Tile], moments: &[u32]) -> Vec<Vec<usize>> {
    let at = |moment| moments.partition_point(|&other| other < moment);
    let mut follow = vec![Vec::new(); moments.len()];
    tiles.iter().for_each(|tile| follow[at(tile.start)].push(at(tile.end)));
    follow
}

/// The shortest chains of successive pieces from a given moment on: for each moment, the one at
/// which the last piece of its chain begins.
struct Chains(Vec<Option<usize>>);

impl Chains {
    fn new(follow: &[Vec<usize>], from: usize) -> Chains {
        let mut before = vec![None; follow.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for &next in &follow[at] {
                if before[next].is_none() {
                    before[next] = Some(at);
                    queue.push_back(next);
                }
            }
        }
        Chains(before)
    }

    /// The moments at which the pieces of a chain meet, both ends included; None if there is no
    /// chain.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path: Vec<usize> = std::iter::successors(Some(to), |&at| self.0[at]).collect();
        path.reverse();
        (path[0] == from).then_some(path)
    }
}

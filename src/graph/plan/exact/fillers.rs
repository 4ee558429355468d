//! Tiles for what a packing leaves free, so that nothing is.
//!
//! What is free grows where more ends than begins, and shrinks where less does. A piece that is
//! smaller than the hole it lies in makes the same change at its start as, in reverse, at its end;
//! so a growth and a shrinking that some piece, or a chain of pieces, joins are taken for one
//! filler, a tile that lasts as long.

use std::collections::{BTreeMap, VecDeque};

use super::tiling::{self, Tile};

/// More growths than these are more than a few holes.
const MOST_GROWTHS: usize = 64;

/// Tiles that fill up `height` at all times at which there are tiles; None where that is too low,
/// or too much is free.
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

    /// The moments at which more becomes free.
    fn growths(&self) -> impl Iterator<Item = usize> {
        (0..self.bytes.len()).filter(|&at| self.growth(at) > 0)
    }

    /// The growth and the shrinking that the fewest pieces join; of these such as are equal, of
    /// these the nearest.
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

    /// `least` is free all the time.
    fn joint(&self, chains: &Chains, from: usize, to: usize, least: usize) -> Joint {
        let (growth, shrinking) = (self.growth(from), -self.growth(to));
        let size = (growth.min(shrinking) as usize).min(least);
        let path = chains.path(from, to);
        let pieces = path.as_ref().map_or(usize::MAX, Vec::len);
        let rank = (pieces, growth != shrinking, to - from);
        Joint { rank, from, to, size, path: path.unwrap_or(vec![from, to]) }
    }
}

/// The moments to which pieces lead that begin at each moment.
fn follow(tiles: &[Tile], moments: &[u32]) -> Vec<Vec<usize>> {
    let at = |moment| moments.partition_point(|&other| other < moment);
    let mut follow = vec![Vec::new(); moments.len()];
    tiles.iter().for_each(|tile| follow[at(tile.start)].push(at(tile.end)));
    follow
}

/// The shortest chains of pieces that follow each other from a moment on: for each moment the one
/// at which the last piece of its chain begins.
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

    /// The moments at which the pieces of a chain meet, both ends included.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path: Vec<usize> = std::iter::successors(Some(to), |&at| self.0[at]).collect();
        path.reverse();
        (path[0] == from).then_some(path)
    }
}

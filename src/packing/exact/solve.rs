//! Alternates between searches in rounds of doubling length: which search is quick differs widely
//! from packing to packing.

use super::Method;
use super::branch::{self, Outcome};
use super::effort::Effort;
use super::fillers::fillers;
use super::floors::{self, Task};
use super::tiling::{self, Tile};

/// Steps of each search in the first round.
const FIRST_TURN: u64 = 1 << 14;

/// How many times the steps of the others the searches by floors get, which are several.
const FLOORS: u64 = 4;

/// Looks for offsets at which every tile ends at or below the height.
pub(super) fn solve(task: Task, method: Method, effort: &mut Effort) -> Outcome {
    let (tiles, height) = (task.tiles, task.height);
    let mirrored = mirrored(tiles);
    let sides = [tiles, &mirrored];
    let filled = match method {
        Method::Branch | Method::Floors => [None, None],
        Method::Any | Method::Tiling => sides.map(|side| filled(side, height)),
    };
    for round in 0.. {
        let (steps, before) = (FIRST_TURN << round, effort.left());
        for (side, filled) in sides.iter().zip(&filled) {
            let turn = |effort: &mut Effort| match filled {
                Some(filled) => tile(filled, tiles.len(), round, effort),
                None => Outcome::Unknown,
            };
            let mut outcome = effort.limited(steps, turn);
            if outcome == Outcome::Unknown && matches!(method, Method::Any | Method::Branch) {
                outcome =
                    effort.limited(steps, |effort| branch::search(side, height, round, effort));
            }
            if outcome != Outcome::Unknown || effort.is_spent() {
                return outcome;
            }
        }
        if matches!(method, Method::Any | Method::Floors) {
            let outcome = floors::search(task, round, FLOORS * steps, effort);
            if outcome != Outcome::Unknown || effort.is_spent() {
                return outcome;
            }
        }
        if effort.left() == before {
            // Nothing can be tried: there are too many holes or tiles.
            break;
        }
    }
    Outcome::Unknown
}

/// The tiles with fillers, if there are only a few holes.
fn filled(tiles: &[Tile], height: usize) -> Option<Vec<Tile>> {
    let fillers = fillers(tiles, height)?;
    Some([tiles, &fillers].concat())
}

/// Offsets of the first `count` tiles.
fn tile(filled: &[Tile], count: usize, round: u64, effort: &mut Effort) -> Outcome {
    let found = tiling::tile(filled, round, effort);
    found.map_or(Outcome::Unknown, |mut offsets| {
        offsets.truncate(count);
        Outcome::Found(offsets)
    })
}

/// The tiles with time reversed, for which the same offsets are valid.
fn mirrored(tiles: &[Tile]) -> Vec<Tile> {
    let end = tiles.iter().map(|tile| tile.end).max().unwrap_or(0);
    tiles.iter().map(|t| Tile { start: end - t.end, end: end - t.start, size: t.size }).collect()
}

//! Searches that place a tile at a time as low as what is placed lets it, and infer from the floors
//! that this leaves whether the rest can still end below the height.
//!
//! [`canonical`] goes from below to above all over time, as in Moffitt, "MiniMalloc: a lightweight
//! memory allocator for hardware-accelerated machine learning", ASPLOS 2023; [`corner`] to where
//! there is the least choice; [`beam`] as well, with many states side by side. The first two pack
//! parts that share no section of time apart from each other, remember what led nowhere, and can
//! find out that there is no packing.
//!
//! What they infer ([`state`]): floors rise to the lowest offset of the tiles that are left in a
//! section, and those offsets to the highest floor of their sections; a tile that does not lie
//! where it could needs another in its way, else it could fall ([`denials`]).

mod beam;
mod canonical;
mod corner;
mod denials;
mod failures;
mod problem;
mod skyline;
mod state;

use super::branch::Outcome;
use super::effort::Effort;
use super::tiling::Tile;
use beam::Measure;
use problem::{ORDERS, Problem};

/// The steps that a node of a search costs: it is so much slower than one of branch and bound.
const NODE: u64 = 32;

/// More tiles take too much memory.
const MOST_TILES: usize = 4000;

/// Two searches call themselves for each tile that they place and each section that they leave free:
/// so often at most, on a stack of their own, since that of a caller may be small.
const MOST_DEPTH: usize = 1 << 13;
const STACK: usize = MOST_DEPTH << 13;

/// What a search of a part came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Found,
    Impossible,
    Unknown,
}

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// From below to above, in one of the orders.
    Canonical(u64),
    /// At the corner with the fewest tiles to choose from; if thrifty, those tiles first that leave
    /// the least room free.
    Corner {
        /// Whether it is.
        is_thrifty: bool,
    },
    /// The same with many states side by side.
    Beam(Measure),
}

/// The ways that are tried in turn, the three of Moffitt (2023) among them. Which is quick differs
/// from packing to packing by far.
pub(super) const WAYS: [Way; 8] = [
    Way::Canonical(0),
    Way::Corner { is_thrifty: false },
    Way::Canonical(1),
    Way::Beam(Measure::Bytes),
    Way::Canonical(2),
    Way::Corner { is_thrifty: true },
    Way::Canonical(3),
    Way::Beam(Measure::Share),
];

/// Tiles, how long each lives in the caller's time, and the height.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) tiles: &'a [Tile],
    pub(super) durations: &'a [u32],
    pub(super) height: usize,
}

/// Looks for offsets below the height in all ways, each with the same part of the steps; details
/// differ from round to round.
pub(super) fn search(task: Task, round: u64, steps: u64, effort: &mut Effort) -> Outcome {
    std::thread::scope(|scope| {
        let turns = || turns(task, round, steps / WAYS.len() as u64, effort);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, turns);
        let join = |thread: std::thread::ScopedJoinHandle<Outcome>| thread.join();
        // Without a thread there is no answer, which is one of those that callers expect.
        let outcome = thread.map_or(Ok(Outcome::Unknown), join);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// One way after the other.
fn turns(task: Task, round: u64, steps: u64, effort: &mut Effort) -> Outcome {
    for way in WAYS {
        let turn = |effort: &mut Effort| search_by(way, task, round, effort);
        let outcome = effort.limited(steps, turn);
        if outcome != Outcome::Unknown || effort.is_spent() {
            return outcome;
        }
    }
    Outcome::Unknown
}

/// Looks for offsets below the height in one way.
pub(super) fn search_by(way: Way, task: Task, round: u64, effort: &mut Effort) -> Outcome {
    if task.tiles.len() > MOST_TILES {
        return Outcome::Unknown;
    }
    let order = match way {
        // The fourth order changes, the last one with chance.
        Way::Canonical(3) => 3 + round % (ORDERS - 3) + round / (ORDERS - 3) * ORDERS,
        Way::Canonical(order) => order,
        Way::Corner { .. } | Way::Beam(_) => round,
    };
    let problem = Problem::new(task.tiles, task.durations, task.height, order);
    let mut offsets = vec![0; task.tiles.len()];
    let verdict = match way {
        Way::Canonical(_) => canonical::search(&problem, &mut offsets, effort),
        Way::Corner { is_thrifty } => corner::search(&problem, is_thrifty, &mut offsets, effort),
        Way::Beam(measure) => beam::search(&problem, measure, &mut offsets, effort),
    };
    match verdict {
        Verdict::Found => Outcome::Found(problem.in_order(&offsets)),
        Verdict::Impossible => Outcome::Impossible,
        Verdict::Unknown => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests;

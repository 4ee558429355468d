//! The corners of a skyline.

use std::ops::Range;

use smallvec::SmallVec;

use super::state::State;

/// An end of a valley.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    Start,
    End,
}

/// Tiles to choose from.
pub(super) type Tiles = SmallVec<[u32; 8]>;

/// An end of a valley, and what could be done there.
#[derive(Clone, Debug)]
pub(super) struct Corner {
    pub(super) side: Side,
    /// The sections of the valley.
    pub(super) valley: Range<usize>,
    pub(super) floor: usize,
    /// The tiles that could lie there.
    pub(super) tiles: Tiles,
    /// How high the floor may rise with nothing on it, if there is so much to waste.
    pub(super) waste: Option<usize>,
}

impl Corner {
    /// How many ways there are to go on.
    pub(super) fn ways(&self) -> usize {
        self.tiles.len() + usize::from(self.waste.is_some())
    }

    /// The section in the corner.
    pub(super) fn section(&self) -> usize {
        match self.side {
            Side::Start => self.valley.start,
            Side::End => self.valley.end - 1,
        }
    }
}

/// Runs of sections of a part of the same floor that are lower than those beside them.
fn valleys(state: &State, part: &Range<usize>) -> SmallVec<[Range<usize>; 32]> {
    let floors = &state.floors;
    let mut valleys = SmallVec::new();
    let (mut start, mut is_down) = (part.start, true);
    for section in part.start + 1..=part.end {
        let is_end = section == part.end;
        if is_end || floors[section] != floors[start] {
            let is_up = is_end || floors[section] > floors[start];
            if is_down && is_up {
                valleys.push(start..section);
            }
            (start, is_down) = (section, !is_up);
        }
    }
    valleys
}

/// Both corners of each valley of a part in which tiles are left.
pub(super) fn corners(state: &State, part: &Range<usize>) -> impl Iterator<Item = Corner> {
    let valleys = valleys(state, part).into_iter().filter(|valley| state.rests[valley.start] > 0);
    let ends =
        valleys.flat_map(|valley| [Side::Start, Side::End].map(|side| (valley.clone(), side)));
    ends.map(|(valley, side)| corner(state, part, valley, side))
}

/// What could be done at an end of a valley of a part.
fn corner(state: &State, part: &Range<usize>, valley: Range<usize>, side: Side) -> Corner {
    let floor = state.floors[valley.start];
    let mut corner = Corner { side, valley, floor, tiles: SmallVec::new(), waste: None };
    let problem = state.problem;
    let near = match side {
        Side::Start => &problem.begin[corner.section()],
        Side::End => &problem.finish[corner.section()],
    };
    let fits = |&&tile: &&u32| {
        let twin = problem.twin(tile);
        state.supports[tile as usize] == floor && !twin.is_some_and(|twin| state.is_left(twin))
    };
    corner.tiles = near.iter().filter(fits).copied().collect();
    let most = problem.height - state.rests[corner.section()];
    corner.waste = (floor < most).then(|| rise(state, part, &corner)).filter(|to| *to <= most);
    corner
}

/// The lowest offset above its floor at which something could lie in a corner: on the wall of the
/// valley, or on what lies beside it.
fn rise(state: &State, part: &Range<usize>, corner: &Corner) -> usize {
    let (valley, section) = (&corner.valley, corner.section());
    let before = (valley.start > part.start).then(|| state.floors[valley.start - 1]);
    let after = (valley.end < part.end).then(|| state.floors[valley.end]);
    let beside = valley.clone().flat_map(|begin| &state.problem.begin[begin]);
    let beside = beside.filter(|&&tile| {
        let range = state.problem.span(tile).range();
        state.supports[tile as usize] == corner.floor && !range.contains(&section)
    });
    let beside = beside.map(|&tile| corner.floor + state.problem.span(tile).size);
    beside.chain(before).chain(after).min().unwrap_or(usize::MAX)
}

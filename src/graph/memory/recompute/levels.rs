//! How many bytes are live during each turn of a run. Ranges of turns are updated and searched
//! group by group, so that long ranges take hardly longer than short ones.

use std::ops::Range;

/// How many turns a group has.
const GROUP: usize = 64;

pub(super) struct Levels {
    /// By turn: the level without its group's offset.
    own: Vec<isize>,
    groups: Vec<Group>,
    /// The last turn found above a limit: it is likely to exceed other limits too.
    full: usize,
}

struct Group {
    /// The offset that applies to all of its turns.
    more: isize,
    /// The highest level, offset included.
    most: isize,
}

impl Levels {
    pub(super) fn new(levels: impl Iterator<Item = usize>) -> Levels {
        let own: Vec<isize> = levels.map(|level| level as isize).collect();
        let group = |own: &[isize]| Group { more: 0, most: highest(own) };
        Levels { groups: own.chunks(GROUP).map(group).collect(), own, full: 0 }
    }

    /// The highest level of all turns.
    pub(super) fn most(&self) -> usize {
        self.groups.iter().map(|group| group.most).max().unwrap_or(0) as usize
    }

    /// Whether none of these turns is above a limit.
    pub(super) fn keep_to(&mut self, limit: isize, turns: Range<usize>) -> bool {
        if turns.contains(&self.full) && self.level(self.full) > limit {
            return false;
        }
        let full = parts(turns).find_map(|(n, part)| match self.groups[n].most > limit {
            true => part.into_iter().find(|&turn| self.level(turn) > limit),
            false => None,
        });
        self.full = full.unwrap_or(self.full);
        full.is_none()
    }

    fn level(&self, turn: usize) -> isize {
        self.own[turn] + self.groups[turn / GROUP].more
    }

    /// Changes the levels of these turns by a number of bytes.
    pub(super) fn change(&mut self, turns: Range<usize>, bytes: isize) {
        for (n, part) in parts(turns) {
            let group = &mut self.groups[n];
            if part.len() == GROUP {
                group.more += bytes;
                group.most += bytes;
            } else {
                self.own[part].iter_mut().for_each(|own| *own += bytes);
                let all = n * GROUP..self.own.len().min((n + 1) * GROUP);
                group.most = highest(&self.own[all]) + group.more;
            }
        }
    }
}

fn highest(levels: &[isize]) -> isize {
    levels.iter().copied().max().unwrap_or(0)
}

/// The groups that a range overlaps, each with the overlapping part of the range.
fn parts(turns: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let groups = turns.start / GROUP..turns.end.div_ceil(GROUP);
    let part = move |n: usize| turns.start.max(n * GROUP)..turns.end.min((n + 1) * GROUP);
    groups.map(move |n| (n, part(n))).filter(|(_, part)| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_all_kinds_against_a_plain_list() {
        let mut state = 1u32;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for length in [1, GROUP - 1, GROUP, 5 * GROUP + 7] {
            let mut plain: Vec<usize> = (0..length).map(|_| 1_000 + draw(100)).collect();
            let mut levels = Levels::new(plain.iter().copied());
            for _ in 0..500 {
                let start = draw(length + 1);
                let turns = start..start + draw(length + 1 - start + 1).min(length - start);
                let bytes = draw(20) as isize - 10;
                plain[turns.clone()].iter_mut().for_each(|n| *n = n.wrapping_add_signed(bytes));
                levels.change(turns, bytes);
                let limit = 1_000 + draw(100);
                let looked = draw(length)..length - draw(length) / 2;
                let looked = looked.start.min(looked.end)..looked.end;
                let below = plain[looked.clone()].iter().all(|&level| level <= limit);
                assert_eq!(levels.keep_to(limit as isize, looked), below);
                assert_eq!(levels.most(), plain.iter().copied().max().unwrap());
            }
        }
    }
}

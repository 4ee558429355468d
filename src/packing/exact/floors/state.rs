//! What is left of a packing, and what that tells about floors.
//!
//! The floor of a section is below what it can still take; it rises to the lowest offset of the
//! tiles that are left there, and the lowest offset of a tile is the highest floor of its sections
//! (section inference, Moffitt 2023).

use std::ops::Range;

use super::denials::Denial;
use super::problem::{Problem, Span};

/// The floor of what takes nothing any more, and the lowest offset of what is placed.
pub(super) const NONE: usize = usize::MAX;

/// What has been done, to be undone.
#[derive(Clone, Copy, Debug)]
enum Change {
    Floor { section: u32, was: usize },
    Support { tile: u32, was: usize },
    Placed { tile: u32 },
    Denied,
    Settled { denial: u32 },
}

/// A state to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    done: usize,
    taken: isize,
}

/// Which tiles are left, and how low they may lie.
#[derive(Clone)]
pub(super) struct State<'a> {
    pub(super) problem: &'a Problem,
    /// Below what each section takes nothing any more.
    pub(super) floors: Vec<usize>,
    /// The lowest offset of each tile.
    pub(super) supports: Vec<usize>,
    /// The bytes that are left in each section.
    pub(super) rests: Vec<usize>,
    /// How many of the tiles that are left live in a section and in the one before.
    over: Vec<u32>,
    /// Stands for the floor of each section and for the tiles that are left and begin there.
    hashes: Vec<u128>,
    denials: Vec<Denial>,
    done: Vec<Change>,
    /// Sections whose tiles have changed.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// What was left free below floors less what is left to place, of all sections, since the
    /// start.
    taken: isize,
    /// How often each section could not take its tiles.
    pub(super) blame: Vec<usize>,
}

impl<'a> State<'a> {
    /// None if some section cannot take its tiles.
    pub(super) fn new(problem: &'a Problem) -> Option<State<'a>> {
        let count = problem.sections;
        let mut state = State {
            problem,
            floors: vec![0; count],
            supports: vec![0; problem.spans.len()],
            rests: vec![0; count],
            over: vec![0; count],
            hashes: (0..count).map(|section| mix(section, 0)).collect(),
            denials: Vec::new(),
            done: Vec::new(),
            touched: Vec::new(),
            is_touched: vec![false; count],
            taken: 0,
            blame: vec![0; count],
        };
        (0..problem.spans.len() as u32).for_each(|tile| state.add(tile));
        state.rests.iter().all(|&rest| rest <= problem.height).then_some(state)
    }

    /// Counts a tile among those that are left.
    fn add(&mut self, tile: u32) {
        let span = self.problem.span(tile);
        self.rests[span.range()].iter_mut().for_each(|rest| *rest += span.size);
        self.over[span.inner()].iter_mut().for_each(|over| *over += 1);
        self.hashes[span.start as usize] ^= mix(TILE + tile as usize, 0);
    }

    /// The reverse.
    fn remove(&mut self, tile: u32) {
        let span = self.problem.span(tile);
        self.rests[span.range()].iter_mut().for_each(|rest| *rest -= span.size);
        self.over[span.inner()].iter_mut().for_each(|over| *over -= 1);
        self.hashes[span.start as usize] ^= mix(TILE + tile as usize, 0);
    }

    /// Whether the sections of a part can take what they have to if nothing lies below an offset.
    pub(super) fn is_open_above(&self, offset: usize, part: &Range<usize>) -> bool {
        let mut sections = self.floors[part.clone()].iter().zip(&self.rests[part.clone()]);
        sections.all(|(&floor, &rest)| rest == 0 || floor.max(offset) + rest <= self.problem.height)
    }

    pub(super) fn is_left(&self, tile: u32) -> bool {
        self.supports[tile as usize] != NONE
    }

    /// Whether no tile is left.
    pub(super) fn is_done(&self) -> bool {
        self.rests.iter().all(|&rest| rest == 0)
    }

    /// How much has been done so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { done: self.done.len(), taken: self.taken }
    }

    /// What was left free in all sections, give or take what all states have in common that have
    /// the same tiles left.
    pub(super) fn taken(&self) -> isize {
        self.taken
    }

    /// How much more was left free since a mark.
    pub(super) fn wasted(&self, mark: Mark) -> isize {
        self.taken - mark.taken
    }

    /// Forgets how to undo what has been done.
    pub(super) fn settle_down(&mut self) {
        self.done.clear();
    }

    /// Undoes all since a mark.
    pub(super) fn undo(&mut self, mark: Mark) {
        self.taken = mark.taken;
        while self.done.len() > mark.done {
            match self.done.pop() {
                Some(Change::Floor { section, was }) => {
                    let section = section as usize;
                    self.hashes[section] ^= mix(section, self.floors[section]) ^ mix(section, was);
                    self.floors[section] = was;
                }
                Some(Change::Support { tile, was }) => self.supports[tile as usize] = was,
                Some(Change::Placed { tile }) => self.add(tile),
                Some(Change::Settled { denial }) => self.denials[denial as usize].is_open = true,
                Some(Change::Denied) => _ = self.denials.pop(),
                None => {}
            }
        }
    }

    /// Places a tile within a part; whether what is left of it can still end below the height, as
    /// far as that is easy to tell.
    pub(super) fn place(&mut self, tile: u32, floor: usize, part: &Range<usize>) -> bool {
        let span = self.problem.span(tile);
        self.set_support(tile, NONE);
        self.done.push(Change::Placed { tile });
        self.remove(tile);
        span.range().for_each(|section| self.set_floor(section, floor + span.size));
        self.taken -= (span.size * span.len()) as isize;
        self.settle(tile, &span, floor);
        self.raise(span.range(), part)
    }

    /// Leaves a section free up to some height, so that those of `denied` do not lie there; whether
    /// that may be.
    pub(super) fn waste(
        &mut self,
        section: usize,
        to: usize,
        denied: &[u32],
        part: &Range<usize>,
    ) -> bool {
        denied.iter().for_each(|&tile| self.push_denial(tile, self.floors[section]));
        self.set_floor(section, to);
        self.raise(section..section + 1, part)
    }

    /// Leaves a tile no place as low as now, so that it has to lie on another that is left; whether
    /// that may be.
    pub(super) fn deny(&mut self, tile: u32, part: &Range<usize>) -> bool {
        let problem = self.problem;
        let others = problem.others[tile as usize].iter().filter(|&&other| self.is_left(other));
        let tops = others.map(|&other| self.supports[other as usize] + problem.span(other).size);
        let Some(least) = tops.min() else { return false };
        let support = self.supports[tile as usize];
        if least <= support {
            return true;
        }
        self.push_denial(tile, support);
        self.set_support(tile, least);
        let range = problem.span(tile).range();
        range.clone().for_each(|section| self.touch(section));
        let risen = self.raise_floors();
        risen.is_some_and(|risen| self.raise(risen, part) && self.are_denials_right(&range))
    }

    fn push_denial(&mut self, tile: u32, floor: usize) {
        self.denials.push(Denial::new(tile, floor));
        self.done.push(Change::Denied);
    }

    fn set_floor(&mut self, section: usize, floor: usize) {
        let was = std::mem::replace(&mut self.floors[section], floor);
        self.done.push(Change::Floor { section: section as u32, was });
        self.hashes[section] ^= mix(section, was) ^ mix(section, floor);
        if floor != NONE {
            self.taken += (floor - was) as isize;
        }
    }

    fn set_support(&mut self, tile: u32, support: usize) {
        let was = std::mem::replace(&mut self.supports[tile as usize], support);
        self.done.push(Change::Support { tile, was });
    }

    /// A tile is in the way of others that do not lie where they could.
    fn settle(&mut self, tile: u32, span: &Span, floor: usize) {
        let open = (0u32..).zip(&mut self.denials).filter(|(_, denial)| denial.is_open);
        for (number, denial) in open {
            let denied = self.problem.span(denial.tile);
            if denial.is_settled_by(&denied, tile, span, floor) {
                denial.is_open = false;
                self.done.push(Change::Settled { denial: number });
            }
        }
    }

    /// Raises floors and lowest offsets until each is right by the other; `risen` are sections
    /// whose floors have risen.
    fn raise(&mut self, mut risen: Range<usize>, part: &Range<usize>) -> bool {
        let mut all = risen.clone();
        risen.clone().for_each(|section| self.touch(section));
        while !risen.is_empty() {
            self.raise_supports(&risen, part);
            let Some(next) = self.raise_floors() else { return false };
            risen = next;
            if !risen.is_empty() {
                all = all.start.min(risen.start)..all.end.max(risen.end);
            }
        }
        self.are_denials_right(&all)
    }

    fn touch(&mut self, section: usize) {
        if !std::mem::replace(&mut self.is_touched[section], true) {
            self.touched.push(section as u32);
        }
    }

    /// No tile of a part lies below a floor of its sections that has risen.
    fn raise_supports(&mut self, risen: &Range<usize>, part: &Range<usize>) {
        let problem = self.problem;
        for &tile in problem.begin[part.start..risen.end].iter().flatten() {
            let range = problem.span(tile).range();
            let (start, end) = (risen.start.max(range.start), risen.end.min(range.end));
            let support = self.supports[tile as usize];
            if start >= end || support == NONE {
                continue;
            }
            let highest = self.floors[start..end].iter().copied().fold(0, usize::max);
            if highest > support {
                self.set_support(tile, highest);
                range.for_each(|section| self.touch(section));
            }
        }
    }

    /// No floor is below the lowest tile; those that have risen, all between included, or None if
    /// some section cannot take its tiles.
    fn raise_floors(&mut self) -> Option<Range<usize>> {
        let (mut risen, mut is_open) = (0..0, true);
        while let Some(section) = self.touched.pop() {
            let section = section as usize;
            self.is_touched[section] = false;
            if !is_open {
                continue;
            }
            let (floor, top) = self.least(section);
            is_open = top <= self.problem.height;
            self.blame[section] += usize::from(!is_open);
            if floor > self.floors[section] {
                self.set_floor(section, floor);
                let start = if risen.is_empty() { section } else { risen.start.min(section) };
                risen = start..risen.end.max(section + 1);
            }
        }
        is_open.then_some(risen)
    }

    /// The lowest offset in a section, and the least height of what it takes: the lowest tiles
    /// first, then the others no lower than the lowest of them (in scheduling: one machine with
    /// release dates).
    fn least(&self, section: usize) -> (usize, usize) {
        let rest = self.rests[section];
        if rest == 0 {
            return (NONE, 0);
        }
        let (mut least, mut bytes, mut second) = (NONE, 0, NONE);
        for &tile in &self.problem.members[section] {
            let support = self.supports[tile as usize];
            if support < least {
                (second, least, bytes) = (least, support, 0);
            } else if support > least && support < second {
                second = support;
            }
            if support == least {
                bytes += self.problem.spans[tile as usize].size;
            }
        }
        let next = if bytes == rest { 0 } else { second };
        (least, next.max(least + bytes) + rest - bytes)
    }

    /// Whether something can still be in the way of each tile that does not lie where it could.
    fn are_denials_right(&self, risen: &Range<usize>) -> bool {
        let is_near = |denial: &&Denial| {
            let range = self.problem.span(denial.tile).range();
            denial.is_open && range.start < risen.end && risen.start < range.end
        };
        self.denials.iter().filter(is_near).all(|denial| self.is_avoidable(denial))
    }

    fn is_avoidable(&self, denial: &Denial) -> bool {
        let top = denial.floor + self.problem.span(denial.tile).size;
        let mut others = self.problem.others[denial.tile as usize].iter();
        others.any(|&other| self.supports[other as usize] < top)
    }

    /// Parts of a part that share no section, the shortest first.
    pub(super) fn split(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut start = part.start;
        for section in part.start + 1..=part.end {
            if section == part.end || self.over[section] == 0 {
                if self.rests[start] > 0 {
                    parts.push(start..section);
                }
                start = section;
            }
        }
        parts.sort_by_key(|part| part.len());
        parts
    }

    /// A number that stands for a part: its floors, the tiles that are left, and those that may not
    /// lie where they could.
    pub(super) fn hash(&self, part: &Range<usize>) -> u128 {
        let sections = self.hashes[part.clone()].iter().fold(0, |hash, section| hash ^ section);
        let is_here = |denial: &&Denial| {
            denial.is_open && part.contains(&self.problem.span(denial.tile).range().start)
        };
        let denials = self.denials.iter().filter(is_here);
        denials.fold(sections, |hash, d| hash ^ d.hash(self.supports[d.tile as usize]))
    }
}

/// This is no section.
const TILE: usize = 1 << 32;

/// A number that stands for a pair.
pub(super) fn mix(a: usize, b: usize) -> u128 {
    const ODD: u128 = 0x2D35_8DCC_AA6C_78A5_8BB8_4B93_962E_ACC9;
    let pair = (a as u128) << 64 | b as u128;
    let mixed = (pair ^ pair >> 67).wrapping_mul(ODD);
    let mixed = (mixed ^ mixed >> 59).wrapping_mul(ODD);
    mixed ^ mixed >> 64
}

//! Branch and bound on a skyline.
//!
//! The search always extends the lowest valley, the leftmost of several. Sections to its left are
//! higher or complete, so either a piece that begins at its first section is placed on its floor,
//! or none is and the room up to the next possible offset is wasted. The waste at a moment is
//! limited to the height minus the bytes that are live then (section inference after Moffitt,
//! "MiniMalloc: a lightweight memory allocator for hardware-accelerated machine learning", 2023),
//! so where pieces fill the height there is little choice. States that turned out to be dead ends
//! are remembered.

use rustc_hash::FxHashSet;

use super::effort::Effort;
use super::tiling::Tile;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The offsets.
    Found(Vec<usize>),
    /// No packing exists.
    Impossible,
    /// The effort is spent.
    Unknown,
}

/// Looks for offsets at which every tile ends at or below `height`; the order of trials differs
/// from turn to turn.
pub(super) fn search(tiles: &[Tile], height: usize, turn: u64, effort: &mut Effort) -> Outcome {
    let Some(mut sky) = Skyline::new(tiles, height, turn) else { return Outcome::Impossible };
    let mut path: Vec<Choice> = Vec::new();
    let mut failed = FxHashSet::default();
    loop {
        let Some(lowest) = sky.lowest() else { return Outcome::Found(sky.offsets) };
        if effort.spend(1).is_none() {
            return Outcome::Unknown;
        }
        let options = if failed.contains(&sky.hash) { Vec::new() } else { sky.options(lowest) };
        path.push(Choice { hash: sky.hash, options, made: None });
        while !advance(&mut path, &mut sky) {
            let Some(dead) = path.pop() else { return Outcome::Impossible };
            if failed.len() < MOST_FAILED {
                failed.insert(dead.hash);
            }
        }
    }
}

/// How many dead ends are remembered.
const MOST_FAILED: usize = 1 << 22;

/// A step of the search.
struct Choice {
    /// The hash of the state before it.
    hash: u128,
    /// The options left to try, the best last.
    options: Vec<Move>,
    made: Option<Move>,
}

/// Undoes the last choice's current option and makes its next one; false if none is left.
fn advance(path: &mut [Choice], sky: &mut Skyline) -> bool {
    let Some(choice) = path.last_mut() else { return false };
    if let Some(made) = choice.made.take() {
        sky.undo(made);
    }
    choice.made = choice.options.pop();
    choice.made.inspect(|&next| sky.make(next)).is_some()
}

/// What to do at the lowest valley.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Put a piece there.
    Place { piece: u32, offset: usize },
    /// Leave a section free up to some height.
    Waste { section: usize, from: usize, to: usize },
}

/// Sections `start..end` of the same height; those beside them are higher or complete.
#[derive(Clone, Copy)]
struct Valley {
    start: usize,
    end: usize,
    floor: usize,
}

/// Pieces stacked on each other. Time is counted in sections, within which no piece begins.
struct Skyline {
    tiles: Vec<Tile>,
    /// By section: the pieces that begin there and have not been placed.
    begin: Vec<Vec<u32>>,
    height: usize,
    floors: Vec<usize>,
    /// By section: the bytes that have yet to be placed.
    rests: Vec<usize>,
    /// By section: the pieces placed there, the topmost last.
    tops: Vec<Vec<u32>>,
    offsets: Vec<usize>,
    hash: u128,
    turn: u64,
}

impl Skyline {
    /// None if the height is too low.
    fn new(tiles: &[Tile], height: usize, turn: u64) -> Option<Skyline> {
        let mut starts: Vec<u32> = tiles.iter().map(|tile| tile.start).collect();
        starts.sort_unstable();
        starts.dedup();
        let section = |moment| starts.partition_point(|&start| start < moment) as u32;
        let tiles: Vec<Tile> = tiles
            .iter()
            .map(|t| Tile { start: section(t.start), end: section(t.end), size: t.size })
            .collect();
        let (mut begin, mut rests) = (vec![Vec::new(); starts.len()], vec![0; starts.len()]);
        for (number, tile) in (0u32..).zip(&tiles) {
            begin[tile.start as usize].push(number);
            rests[tile.range()].iter_mut().for_each(|rest| *rest += tile.size);
        }
        let count = starts.len();
        rests.iter().all(|&rest| rest <= height).then(|| Skyline {
            offsets: vec![0; tiles.len()],
            floors: vec![0; count],
            tops: vec![Vec::new(); count],
            tiles,
            begin,
            height,
            rests,
            hash: 0,
            turn,
        })
    }

    /// The lowest valley that still has pieces to take, the leftmost of several.
    fn lowest(&self) -> Option<Valley> {
        let open = (0..self.floors.len()).filter(|&s| self.rests[s] > 0);
        let start = open.min_by_key(|&s| self.floors[s])?;
        let floor = self.floors[start];
        let is_same = |&s: &usize| self.floors[s] == floor && self.rests[s] > 0;
        let end = (start..self.floors.len()).take_while(is_same).last()? + 1;
        Some(Valley { start, end, floor })
    }

    /// The possible moves, the best last.
    fn options(&self, valley: Valley) -> Vec<Move> {
        let inside = |p: &u32| self.tiles[*p as usize].end as usize <= valley.end;
        let inside: Vec<u32> = self.begin[valley.start].iter().copied().filter(inside).collect();
        let mut fitting = inside.clone();
        let to = self.least_above(valley);
        let is_room = to.saturating_add(self.rests[valley.start]) <= self.height;
        fitting.retain(|&piece| self.is_canonical(piece, &inside));
        fitting.sort_by_key(|&piece| self.preference(piece, valley));
        let waste = Move::Waste { section: valley.start, from: valley.floor, to };
        let place = |piece| Move::Place { piece, offset: valley.floor };
        is_room.then_some(waste).into_iter().chain(fitting.into_iter().map(place)).collect()
    }

    /// The least offset above the floor at which a piece could be placed in a valley's first
    /// section.
    fn least_above(&self, valley: Valley) -> usize {
        let before = valley.start.checked_sub(1).map(|before| self.floors[before]);
        let after = self.floors.get(valley.end).copied();
        let inner = (valley.start + 1..valley.end).flat_map(|s| &self.begin[s]);
        let inner = inner.map(|&piece| valley.floor + self.tiles[piece as usize].size);
        let above = before.into_iter().chain(after).filter(|&floor| floor > valley.floor);
        above.chain(inner).min().unwrap_or(usize::MAX)
    }

    /// Breaks symmetries: of identical pieces the first one is placed first, and of pieces with
    /// equal lifetimes stacked directly on each other the first one is below.
    fn is_canonical(&self, piece: u32, fitting: &[u32]) -> bool {
        let tile = self.tiles[piece as usize];
        let is_twin = |other: u32| other < piece && self.tiles[other as usize] == tile;
        let below = self.tops[tile.start as usize].last();
        let is_above = |&below: &u32| {
            let other = self.tiles[below as usize];
            let is_on_it =
                self.offsets[below as usize] + other.size == self.floors[other.range().start];
            is_on_it && other.range() == tile.range() && below > piece
        };
        !fitting.iter().any(|&other| is_twin(other)) && !below.is_some_and(is_above)
    }

    /// Pieces that level the skyline come first, then those that fill a valley up to its end. After
    /// that come, depending on the turn, long, large, large-area or random pieces.
    fn preference(&self, piece: u32, valley: Valley) -> (bool, bool, usize) {
        let tile = self.tiles[piece as usize];
        let top = valley.floor + tile.size;
        let is_level = |section| self.floors.get(section) == Some(&top);
        let fills = tile.end as usize == valley.end;
        let levels = valley.start.checked_sub(1).is_some_and(is_level);
        let levels = levels || fills && is_level(valley.end);
        let value = match self.turn % 4 {
            0 => tile.range().len(),
            1 => tile.size,
            2 => tile.range().len() * tile.size,
            _ => mix(self.turn, piece as usize) as usize,
        };
        (levels, fills, value)
    }

    fn make(&mut self, next: Move) {
        self.change(next);
        match next {
            Move::Place { piece, offset } => {
                let tile = self.tiles[piece as usize];
                self.begin[tile.start as usize].retain(|&other| other != piece);
                self.offsets[piece as usize] = offset;
                for section in tile.range() {
                    self.floors[section] = offset + tile.size;
                    self.rests[section] -= tile.size;
                    self.tops[section].push(piece);
                }
            }
            Move::Waste { section, to, .. } => self.floors[section] = to,
        }
    }

    fn undo(&mut self, last: Move) {
        self.change(last);
        match last {
            Move::Place { piece, offset } => {
                let tile = self.tiles[piece as usize];
                self.begin[tile.start as usize].push(piece);
                for section in tile.range() {
                    self.floors[section] = offset;
                    self.rests[section] += tile.size;
                    self.tops[section].pop();
                }
            }
            Move::Waste { section, from, .. } => self.floors[section] = from,
        }
    }

    /// Updates the hash of the state, which consists of the placed pieces and the floors.
    fn change(&mut self, change: Move) {
        match change {
            Move::Place { piece, offset } => {
                let tile = self.tiles[piece as usize];
                self.hash ^= mix(u64::MAX, piece as usize);
                let heights = [offset, offset + tile.size];
                for section in tile.range() {
                    heights.iter().for_each(|&floor| self.hash ^= mix(section as u64, floor));
                }
            }
            Move::Waste { section, from, to } => {
                self.hash ^= mix(section as u64, from) ^ mix(section as u64, to);
            }
        }
    }
}

/// Hashes a pair.
fn mix(a: u64, b: usize) -> u128 {
    let half = |salt: u64| {
        let mut x = (a ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b as u64;
        for _ in 0..2 {
            x = (x ^ x >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        }
        x ^ x >> 32
    };
    u128::from(half(0x1234_5678_9ABC_DEF1)) << 64 | u128::from(half(0))
}

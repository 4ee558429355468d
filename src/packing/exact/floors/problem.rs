//! Tiles in sections of time, in the order in which they are preferred.

use std::cmp::Reverse;
use std::ops::Range;

use super::super::tiling::Tile;
use crate::packing::random::Random;

/// So many orders are tried in turn.
pub(super) const ORDERS: u64 = 6;

/// A tile; time is counted in sections, within which no tile begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) size: usize,
}

impl Span {
    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The sections but the first.
    pub(super) fn inner(&self) -> Range<usize> {
        self.start as usize + 1..self.end as usize
    }

    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    pub(super) fn meets(&self, other: &Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Which tiles to pack below which height.
pub(super) struct Problem {
    /// The tiles that are preferred first.
    pub(super) spans: Vec<Span>,
    pub(super) height: usize,
    pub(super) sections: usize,
    /// Which of the caller's tiles each is.
    numbers: Vec<u32>,
    /// By tile: the last one before it that is equal to it.
    twins: Vec<Option<u32>>,
    /// By tile: the others that live while it does.
    pub(super) others: Vec<Vec<u32>>,
    /// By section: the tiles that live in it, those that begin in it, and those that end with it.
    pub(super) members: Vec<Vec<u32>>,
    pub(super) begin: Vec<Vec<u32>>,
    pub(super) finish: Vec<Vec<u32>>,
}

impl Problem {
    /// `durations` are those of the tiles in the caller's time, in which sections differ in length.
    pub(super) fn new(tiles: &[Tile], durations: &[u32], height: usize, order: u64) -> Problem {
        let (all, sections) = spans(tiles);
        let numbers = self::order(&all, durations, sections, order);
        let spans: Vec<Span> = numbers.iter().map(|&number| all[number as usize]).collect();
        Problem {
            height,
            sections,
            numbers,
            twins: twins(&spans),
            others: others(&spans),
            members: by_section(&spans, sections, Span::range),
            begin: by_section(&spans, sections, |span| span.range().start..span.range().start + 1),
            finish: by_section(&spans, sections, |span| span.range().end - 1..span.range().end),
            spans,
        }
    }

    pub(super) fn span(&self, tile: u32) -> Span {
        self.spans[tile as usize]
    }

    /// The last tile before a tile that is equal to it.
    pub(super) fn twin(&self, tile: u32) -> Option<u32> {
        self.twins[tile as usize]
    }

    /// Offsets of the caller's tiles from those of the preferred order.
    pub(super) fn in_order(&self, offsets: &[usize]) -> Vec<usize> {
        let mut ordered = vec![0; offsets.len()];
        for (&number, offset) in self.numbers.iter().zip(offsets) {
            ordered[number as usize] = *offset;
        }
        ordered
    }
}

/// The tiles by sections, and how many sections there are.
fn spans(tiles: &[Tile]) -> (Vec<Span>, usize) {
    let mut starts: Vec<u32> = tiles.iter().map(|tile| tile.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let section = |moment| starts.partition_point(|&start| start < moment) as u32;
    let span = |t: &Tile| Span { start: section(t.start), end: section(t.end), size: t.size };
    (tiles.iter().map(span).collect(), starts.len())
}

fn twins(spans: &[Span]) -> Vec<Option<u32>> {
    let twin = |at: usize| spans[..at].iter().rposition(|other| *other == spans[at]);
    (0..spans.len()).map(|at| twin(at).map(|twin| twin as u32)).collect()
}

fn others(spans: &[Span]) -> Vec<Vec<u32>> {
    let all = || (0u32..).zip(spans);
    let others = |(tile, span): (u32, &Span)| {
        let meet = all().filter(|(other, with)| *other != tile && span.meets(with));
        meet.map(|(other, _)| other).collect()
    };
    all().map(others).collect()
}

/// The tiles that have something to do with each section.
fn by_section(spans: &[Span], count: usize, of: impl Fn(&Span) -> Range<usize>) -> Vec<Vec<u32>> {
    let mut tiles = vec![Vec::new(); count];
    for (tile, span) in (0u32..).zip(spans) {
        tiles[of(span)].iter_mut().for_each(|tiles| tiles.push(tile));
    }
    tiles
}

/// Tiles by descending keys, those first that are hard to place. The first three orders are those
/// of Moffitt (2023): by duration, area and the most bytes that live with a tile, one before the
/// other. The last one blurs areas by chance.
fn order(spans: &[Span], durations: &[u32], sections: usize, order: u64) -> Vec<u32> {
    let mut live = vec![0; sections];
    for span in spans {
        live[span.range()].iter_mut().for_each(|live| *live += span.size);
    }
    let mut random = Random::new(order);
    let mut key = |(span, &duration): (&Span, &u32)| {
        let most = live[span.range()].iter().copied().max().unwrap_or(0);
        let duration = duration as usize + 1;
        let area = duration * span.size;
        match order % ORDERS {
            0 => [duration, area, most],
            1 => [most, area, duration],
            2 => [most, duration, area],
            3 => [span.size, duration, most],
            4 => [area, most, duration],
            _ => [(area as f64 * (1.0 + 2.0 * random.unit())) as usize, most, duration],
        }
    };
    let keys: Vec<_> = spans.iter().zip(durations).map(&mut key).collect();
    let mut order: Vec<u32> = (0..spans.len() as u32).collect();
    order.sort_by_key(|&tile| Reverse(keys[tile as usize]));
    order
}

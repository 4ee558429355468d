//! Hard packings of several kinds; all fit a known height.
//!
//! They fit because they are made from a packing: a rectangle of memory and time is dissected, or
//! an allocator is played through, or pieces are placed.

use super::{PACKED, Trace, UNIT, calls};
use crate::packing::random::Random;

/// How a packing is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pinwheels within pinwheels: no cut separates any two boxes of one.
    Wheels,
    /// Frames of nested calls, of six sizes, in a nearly full arena.
    Calls,
    /// Activations that are kept until their gradients are there, and scratch.
    Network,
    /// A packing without a gap below 99% of the height.
    Slack,
    /// Cuts and wheels, each box split in time once or twice.
    Split,
    /// Cuts and wheels, a third of the boxes some steps shorter: the height is full at some times
    /// only.
    Trimmed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] =
        [Kind::Wheels, Kind::Calls, Kind::Network, Kind::Slack, Kind::Split, Kind::Trimmed];
}

/// A packing of about `count` boxes, up to 500, and a height that holds it; the same for the same
/// seed.
pub fn hard(kind: Kind, count: usize, seed: u64) -> (Trace, usize) {
    let mut random = Random::new(seed);
    let some = |random: &mut Random| dissect(count, 0.3, random);
    let (height, mut boxes) = match kind {
        Kind::Wheels => (PACKED.0, dissect(count, 1.0, &mut random)),
        Kind::Calls => (PACKED.0, calls::play(count, &mut random)),
        Kind::Network => network(count, &mut random),
        Kind::Slack => (PACKED.0 + PACKED.0 / 100, some(&mut random)),
        Kind::Split => (PACKED.0, split(dissect(count * 9 / 20, 0.3, &mut random), &mut random)),
        Kind::Trimmed => (PACKED.0, trimmed(some(&mut random), &mut random)),
    };
    let mut trace = Trace::default();
    while !boxes.is_empty() {
        let part = boxes.swap_remove(random.below(boxes.len()));
        trace.push(part.start, part.end - 1, UNIT * (part.high - part.low));
    }
    (trace, height)
}

/// A rectangle of units of memory and of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Box {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) low: usize,
    pub(super) high: usize,
}

impl Box {
    fn steps(&self) -> usize {
        self.end - self.start
    }

    fn units(&self) -> usize {
        self.high - self.low
    }

    fn is_large(&self) -> bool {
        let least = PACKED.0 / UNIT * PACKED.1 / 4096;
        self.steps() >= 3 && self.units() >= 3 && self.steps() * self.units() >= least
    }

    /// Four boxes around a fifth, one way round or the other.
    fn wheel(self, random: &mut Random) -> [Box; 5] {
        let Box { start, end, low, high } = self;
        let [left, right] = two_between(start, end, random);
        let [below, above] = two_between(low, high, random);
        let part = |start, end, low, high| Box { start, end, low, high };
        let middle = part(left, right, below, above);
        let [first, second, third, fourth] = if random.below(2) == 0 {
            [
                part(start, right, low, below),
                part(right, end, low, above),
                part(left, end, above, high),
                part(start, left, below, high),
            ]
        } else {
            [
                part(left, end, low, below),
                part(right, end, below, high),
                part(start, right, above, high),
                part(start, left, low, above),
            ]
        };
        [middle, first, second, third, fourth]
    }

    /// Two boxes beside or on each other.
    fn cut(self, random: &mut Random) -> [Box; 2] {
        let (mut one, mut other) = (self, self);
        if random.below(2) == 0 {
            one.end = between(self.start, self.end, random);
            other.start = one.end;
        } else {
            one.high = between(self.low, self.high, random);
            other.low = one.high;
        }
        [one, other]
    }
}

/// A number in between, neither near one end nor the other.
fn between(low: usize, high: usize, random: &mut Random) -> usize {
    let margin = ((high - low) / 8).max(1);
    low + margin + random.below((high - low - 2 * margin).max(1))
}

/// Two different numbers in between.
fn two_between(low: usize, high: usize, random: &mut Random) -> [usize; 2] {
    let third = (high - low) / 3;
    let one = low + 1 + random.below(third);
    [one, high - 1 - random.below((high - one - 1).min(third))]
}

/// A rectangle in at least so many boxes; so often a box becomes a wheel, else two boxes.
fn dissect(count: usize, wheels: f64, random: &mut Random) -> Vec<Box> {
    let mut boxes = vec![Box { start: 0, end: PACKED.1, low: 0, high: PACKED.0 / UNIT }];
    while boxes.len() < count {
        let at = random.below(boxes.len());
        if !boxes[at].is_large() {
            // Some box is large enough as long as there are few.
            continue;
        }
        let part = boxes.swap_remove(at);
        if random.unit() < wheels {
            boxes.extend(part.wheel(random));
        } else {
            boxes.extend(part.cut(random));
        }
    }
    boxes
}

/// Splits boxes in time, in two or three.
fn split(boxes: Vec<Box>, random: &mut Random) -> Vec<Box> {
    let mut parts = Vec::new();
    for mut rest in boxes {
        for _ in 0..1 + random.below(2) {
            if rest.steps() > 3 {
                let at = between(rest.start, rest.end, random);
                parts.push(Box { end: at, ..rest });
                rest.start = at;
            }
        }
        parts.push(rest);
    }
    parts
}

/// Makes boxes some steps shorter at either end, a third of them.
fn trimmed(mut boxes: Vec<Box>, random: &mut Random) -> Vec<Box> {
    for part in &mut boxes {
        let most = part.steps() / 4 + 1;
        if part.steps() > 4 && random.below(3) == 0 {
            part.start += random.below(most);
            part.end -= random.below(most);
        }
    }
    boxes
}

/// The activations, scratch and gradients of some layers, and the least height of several first
/// fits.
fn network(count: usize, random: &mut Random) -> (usize, Vec<Box>) {
    let layers = (count / 6).max(1);
    let mut boxes: Vec<Box> = (0..layers).flat_map(|at| layer(at, layers, random)).collect();
    let tries = (0..400).map(|_| first_fit(&mut boxes, random));
    let height = tries.min().unwrap_or(0);
    while first_fit(&mut boxes, random) > height {}
    (UNIT * height, boxes)
}

/// What a layer keeps, one after another forward and in reverse backward.
fn layer(at: usize, layers: usize, random: &mut Random) -> [Box; 6] {
    let (f, b) = (at, layers + 2 * (layers - 1 - at));
    let part = |start, end, high| Box { start, end, low: 0, high };
    let size = (1 + random.below(64)) << (5 - at * 4 / layers);
    [
        part(f, b + 2, size),
        part(f, f + 1, 1 + random.below(256)),
        part(f, (f + 2 + random.below(4)).min(3 * layers), size / 2 + 1),
        part(b, b + 3 + 2 * random.below(3), size),
        part(b, b + 1, 1 + random.below(512)),
        part(b + 1, b + 2, 1 + random.below(256)),
    ]
}

/// Puts each box as low as those before it let it, in an order by area and chance; the height.
fn first_fit(boxes: &mut [Box], random: &mut Random) -> usize {
    let area = |part: &Box| (part.steps() * part.units()) as f64;
    let mut key = |part: &Box| (area(part) * (1.0 + random.unit())) as usize;
    boxes.sort_by_cached_key(|part| std::cmp::Reverse(key(part)));
    for at in 0..boxes.len() {
        let (low, units) = (lowest(&boxes[..at], &boxes[at]), boxes[at].units());
        (boxes[at].low, boxes[at].high) = (low, low + units);
    }
    boxes.iter().map(|part| part.high).max().unwrap_or(0)
}

/// The lowest offset with enough free room among others.
fn lowest(others: &[Box], part: &Box) -> usize {
    let meets = |other: &&Box| other.start < part.end && part.start < other.end;
    let mut others: Vec<&Box> = others.iter().filter(meets).collect();
    others.sort_by_key(|other| other.low);
    let mut low = 0;
    for other in others {
        if other.low >= low + part.units() {
            break;
        }
        low = low.max(other.high);
    }
    low
}

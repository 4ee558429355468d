//! Searches are deterministic. The numbers here are fingerprints of all their decisions: if one
//! changes, a search has changed, and that must be intended.

use super::super::effort::Effort;
use super::super::groups::{self, Group};
use super::super::tiling::{self, Tile};
use super::super::{branch, fillers};
use crate::packing::random::Random;
use crate::packing::testing::fingerprint;

const SEEDS: std::ops::Range<u64> = 0..40;

/// Pieces that end, and as many bytes that begin, of few distinct sizes, so that there are many
/// partitions.
fn group(random: &mut Random, most: usize) -> (Group, Vec<usize>) {
    let counts = [0, 1].map(|_| 1 + random.below(most));
    let mut sizes: Vec<usize> =
        (0..counts[0] + counts[1]).map(|_| 64 * (1 + random.below(4))).collect();
    let bytes = [&sizes[..counts[0]], &sizes[counts[0]..]].map(|side| side.iter().sum::<usize>());
    let side = |range: std::ops::Range<usize>| range.map(|piece| piece as u32).collect();
    let mut group = Group { ended: side(0..counts[0]), begun: side(counts[0]..sizes.len()) };
    if bytes[0] != bytes[1] {
        let short = if bytes[0] < bytes[1] { &mut group.ended } else { &mut group.begun };
        short.push(sizes.len() as u32);
        sizes.push(bytes[0].abs_diff(bytes[1]));
    }
    (group, sizes)
}

/// Cuts one of the boxes in two, in one of so many cuts at a moment, else at a height; leaves it as
/// it is where one part would be empty.
pub(in crate::packing::exact) fn cut(boxes: &mut Vec<Tile>, random: &mut Random, ways: usize) {
    let at = random.below(boxes.len());
    let (mut one, mut other) = (boxes[at], boxes[at]);
    if random.below(ways) == 0 {
        one.end = one.start + random.below((one.end - one.start) as usize) as u32;
        other.start = one.end;
    } else {
        one.size = random.below(one.size);
        other.size -= one.size;
    }
    if one.start < one.end && one.size > 0 {
        boxes[at] = one;
        boxes.push(other);
    }
}

/// A rectangle of steps and units, cut into boxes on a grid so coarse that many are alike; one box
/// in `loose` is a unit lower.
fn boxes(seed: u64, loose: usize) -> Vec<Tile> {
    let mut random = Random::new(seed);
    let mut boxes = vec![Tile { start: 0, end: STEPS, size: UNITS }];
    for _ in 0..40 + random.below(400) {
        cut(&mut boxes, &mut random, 2);
    }
    let is_lower = |b: &Tile, random: &mut Random| b.size > 1 && random.below(loose) == 0;
    for at in &mut boxes {
        at.size = UNIT * (at.size - usize::from(is_lower(at, &mut random)));
    }
    boxes
}

/// The extents of the rectangle.
const STEPS: u32 = 30;
const UNITS: usize = 24;
/// Bytes per unit.
const UNIT: usize = 4096;
/// No box is lower.
const TIGHT: usize = usize::MAX;

/// The result of a search with so many steps, and the steps that are left.
fn told<T: std::fmt::Debug>(steps: u64, search: impl FnOnce(&mut Effort) -> T) -> String {
    let mut effort = Effort::steps(steps);
    format!("{:?} {effort:?}", search(&mut effort))
}

#[test]
fn ways_to_tell_groups() {
    let got = fingerprint(SEEDS.map(|seed| {
        let mut random = Random::new(seed);
        let most = [3, 5, 6, 10][seed as usize % 4];
        let (group, sizes) = group(&mut random, most);
        format!("{:?}", groups::ways(&group, &sizes))
    }));
    assert_eq!(got, 15_057_866_363_043_885_627);
}

#[test]
fn sweeps() {
    let got = fingerprint((0..120).map(|seed| {
        let boxes = boxes(seed, TIGHT);
        let swept = |steps| told(steps, |effort| tiling::tile(&boxes, seed, effort));
        [0, 300, 3_000, 30_000].map(swept).concat()
    }));
    assert_eq!(got, 7_699_789_140_941_894_936);
}

#[test]
fn branches() {
    let got = fingerprint(SEEDS.map(|seed| {
        let boxes = boxes(seed, if seed % 2 == 0 { TIGHT } else { 8 });
        let searched =
            |turn| told(2_000, |effort| branch::search(&boxes, UNITS * UNIT, turn, effort));
        [0, 1, 2, 3].map(searched).concat()
    }));
    assert_eq!(got, 13_988_090_979_632_219_677);
}

#[test]
fn what_fills_gaps() {
    let got = fingerprint(SEEDS.map(|seed| {
        let boxes = boxes(seed, 10);
        format!("{:?}", [UNITS, UNITS + 1].map(|height| fillers::fillers(&boxes, height * UNIT)))
    }));
    assert_eq!(got, 3_948_720_806_149_091_660);
}

#[test]
fn the_clock_is_looked_at_after_so_many_steps() {
    let now = std::time::Instant::now();
    let steps = |until| {
        let mut effort = Effort::until(until);
        let spend = |_: &usize| {
            effort.spend(1);
            !effort.is_spent()
        };
        (0..1000).take_while(spend).count()
    };
    assert_eq!(steps(now), 63, "a step more is the 64th");
    assert_eq!(steps(now + std::time::Duration::from_secs(3600)), 1000);
}

use proptest::prelude::*;

use super::*;
use crate::packing::exact::tests::decisions::cut;

fn tiles(given: &[(u32, u32, usize)]) -> Vec<Tile> {
    given.iter().map(|g| Tile { start: g.0, end: g.0 + g.1, size: g.2 }).collect()
}

/// The result of one way to search.
fn searched(way: Way, tiles: &[Tile], height: usize, round: u64, nodes: u64) -> Outcome {
    let durations: Vec<u32> = tiles.iter().map(|tile| tile.end - tile.start - 1).collect();
    let task = Task { tiles, durations: &durations, height };
    search_by(way, task, round, &mut Effort::steps(NODE * nodes))
}

fn bound(tiles: &[Tile]) -> usize {
    let live = |moment| tiles.iter().filter(move |tile| tile.range().contains(&moment));
    let bytes = tiles.iter().map(|tile| live(tile.range().start).map(|tile| tile.size).sum());
    bytes.max().unwrap_or(0)
}

/// Whether offsets keep tiles that live at once apart, below a height.
fn is_valid(tiles: &[Tile], offsets: &[usize], height: usize) -> bool {
    let high = |at: usize| offsets[at] + tiles[at].size;
    let are_apart = |a: usize, b: usize| {
        let live_at_once = tiles[a].start < tiles[b].end && tiles[b].start < tiles[a].end;
        !live_at_once || high(a) <= offsets[b] || high(b) <= offsets[a]
    };
    let count = tiles.len();
    offsets.len() == count
        && (0..count).all(|a| high(a) <= height && (0..a).all(|b| are_apart(a, b)))
}

/// Whether tiles from the first offset on find places among those before, by trying all offsets.
fn any_offsets_fit(tiles: &[Tile], height: usize, offsets: &mut Vec<usize>) -> bool {
    let next = offsets.len();
    if next == tiles.len() {
        return true;
    }
    (0..=height.saturating_sub(tiles[next].size)).any(|offset| {
        offsets.push(offset);
        let fits =
            is_valid(&tiles[..=next], offsets, height) && any_offsets_fit(tiles, height, offsets);
        offsets.pop();
        fits
    })
}

proptest! {
    #[test]
    fn each_way_answers_what_trying_all_offsets_does(
        given in prop::collection::vec((0u32..6, 1u32..5, 1usize..5), 1..9),
        height in 3usize..9,
        round in 0u64..6,
    ) {
        let tiles = tiles(&given);
        let height = height.max(bound(&tiles).min(9));
        let truth = any_offsets_fit(&tiles, height, &mut Vec::new());
        for way in WAYS {
            match searched(way, &tiles, height, round, 1 << 20) {
                Outcome::Found(offsets) => {
                    prop_assert!(is_valid(&tiles, &offsets, height), "{way:?}");
                }
                Outcome::Impossible => prop_assert!(!truth, "{way:?} says it is impossible"),
                Outcome::Unknown => {
                    prop_assert!(matches!(way, Way::Beam(_)), "{way:?} does not find out");
                }
            }
        }
    }

    #[test]
    fn what_is_found_is_valid(
        given in prop::collection::vec((0u32..40, 1u32..20, 1usize..3000), 1..60),
        more in 0usize..2000,
        round in 0u64..6,
    ) {
        let tiles = tiles(&given);
        let height = bound(&tiles) + more;
        for way in WAYS {
            if let Outcome::Found(offsets) = searched(way, &tiles, height, round, 1 << 10) {
                prop_assert!(is_valid(&tiles, &offsets, height), "{way:?}");
            }
        }
    }

    /// Too many tiles to try all offsets: complete searches have to come to the same.
    #[test]
    fn no_way_finds_what_another_says_is_impossible(
        given in prop::collection::vec((0u32..8, 1u32..6, 1usize..6), 8..20),
        more in 0usize..2,
        round in 0u64..6,
    ) {
        let tiles = tiles(&given);
        let height = bound(&tiles) + more;
        let answers = WAYS.map(|way| searched(way, &tiles, height, round, 1 << 10));
        let is_found = answers.iter().any(|answer| matches!(answer, Outcome::Found(_)));
        prop_assert!(!is_found || !answers.contains(&Outcome::Impossible), "{answers:?}");
    }
}

/// Boxes into which a small rectangle is cut, of few lifetimes and sizes, some of them dropped.
fn boxes(seed: u64) -> (Vec<Tile>, usize) {
    let mut random = crate::packing::random::Random::new(seed);
    let (steps, units) = (2 + random.below(6) as u32, 4 + random.below(16));
    let mut boxes = vec![Tile { start: 0, end: steps, size: units }];
    for _ in 0..10 + random.below(60) {
        cut(&mut boxes, &mut random, 3);
    }
    if boxes.len() > 1 && random.below(2) == 0 {
        boxes.swap_remove(random.below(boxes.len()));
    }
    boxes.sort_by_key(|tile| (tile.size * 7 + tile.start as usize * 5) % 11);
    (boxes, units)
}

/// Many of them have equal lifetimes and lie on each other, which all searches put in order.
#[test]
fn what_fits_is_never_taken_for_impossible() {
    for seed in 0..1000 {
        let (tiles, height) = boxes(seed);
        let branched =
            |turn| super::super::branch::search(&tiles, height, turn, &mut Effort::steps(1 << 11));
        let answers = WAYS.map(|way| searched(way, &tiles, height, seed, 1 << 8));
        assert!(!answers.contains(&Outcome::Impossible), "{seed}: {answers:?}");
        assert!((0..4).all(|turn| branched(turn) != Outcome::Impossible), "{seed}");
    }
}

#[test]
fn the_same_steps_lead_to_the_same_answer() {
    let (trace, height) = crate::packing::traces::hard(crate::packing::traces::Kind::Slack, 150, 0);
    let pieces = crate::packing::pieces(&trace.lifetimes, &trace.sizes, 64);
    let tiles = super::super::tiles(&pieces);
    for way in WAYS {
        let search = || searched(way, &tiles, height, 1, 1 << 11);
        assert_eq!(search(), search());
    }
}

#[test]
fn too_many_tiles_are_left_open() {
    let lifetimes: Vec<_> = (0..=MOST_TILES as u32)
        .map(|first| crate::packing::Lifetime { first, last: first + 1 })
        .collect();
    let (sizes, method) = (vec![64; lifetimes.len()], super::super::Method::Floors);
    let effort = Effort::steps(1 << 20);
    let got = super::super::pack(&lifetimes, &sizes, 64, 128, method, effort);
    assert_eq!(got, super::super::Packing::Unknown);
}

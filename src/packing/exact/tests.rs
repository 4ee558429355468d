pub(super) mod decisions;

use proptest::prelude::*;

use super::super::traces::{self, Kind, PACKED, Trace};
use super::*;

fn packed(trace: &Trace, capacity: usize, method: Method, steps: u64) -> Packing {
    pack(&trace.lifetimes, &trace.sizes, 1, capacity, method, Effort::steps(steps))
}

/// Whether offsets keep pieces that are live at once apart, and all within the capacity.
fn is_valid(trace: &Trace, offsets: &[usize], capacity: usize) -> bool {
    let range = |p: usize| offsets[p]..offsets[p] + trace.sizes[p];
    let are_apart = |a: usize, b: usize| {
        let is_apart = range(a).end <= range(b).start || range(b).end <= range(a).start;
        is_apart || !trace.lifetimes[a].meets(&trace.lifetimes[b])
    };
    let count = trace.sizes.len();
    (0..count).all(|a| range(a).end <= capacity && (0..a).all(|b| are_apart(a, b)))
}

/// Whether the remaining pieces fit beside those with `offsets`, by trying all offsets.
fn any_offsets_fit(trace: &Trace, capacity: usize, offsets: &mut Vec<usize>) -> bool {
    let next = offsets.len();
    if next == trace.sizes.len() {
        return true;
    }
    (0..=capacity.saturating_sub(trace.sizes[next])).any(|offset| {
        offsets.push(offset);
        let so_far = Trace {
            lifetimes: trace.lifetimes[..=next].to_vec(),
            sizes: trace.sizes[..=next].to_vec(),
        };
        let fits =
            is_valid(&so_far, offsets, capacity) && any_offsets_fit(trace, capacity, offsets);
        offsets.pop();
        fits
    })
}

fn trace(given: &[(u32, u32, usize)]) -> Trace {
    let lifetimes = given.iter().map(|g| Lifetime { first: g.0, last: g.0 + g.1 }).collect();
    Trace { lifetimes, sizes: given.iter().map(|g| g.2).collect() }
}

proptest! {
    #[test]
    fn answers_are_those_of_trying_all_offsets(
        given in prop::collection::vec((0u32..6, 0u32..4, 1usize..4), 1..8),
        capacity in 3usize..8,
    ) {
        let trace = trace(&given);
        let truth = any_offsets_fit(&trace, capacity, &mut Vec::new());
        for method in [Method::Any, Method::Branch, Method::Floors] {
            match packed(&trace, capacity, method, 1 << 20) {
                Packing::Fits(offsets) => prop_assert!(is_valid(&trace, &offsets, capacity)),
                Packing::Impossible => prop_assert!(!truth),
                Packing::Unknown => prop_assert!(false, "not found out"),
            }
        }
        if let Packing::Fits(offsets) = packed(&trace, capacity, Method::Tiling, 1 << 12) {
            prop_assert!(is_valid(&trace, &offsets, capacity));
        }
    }

    #[test]
    fn what_is_found_is_valid(
        given in prop::collection::vec((0u32..40, 0u32..20, 1usize..3000), 1..60),
        more in 0usize..2000,
    ) {
        let trace = trace(&given);
        let capacity = crate::packing::bound(&trace.lifetimes, &trace.sizes, 1) + more;
        for method in [Method::Any, Method::Branch, Method::Tiling, Method::Floors] {
            if let Packing::Fits(offsets) = packed(&trace, capacity, method, 1 << 12) {
                prop_assert!(is_valid(&trace, &offsets, capacity));
            }
        }
    }
}

/// Five pieces arranged in a pinwheel, which no straight cut can separate.
#[test]
fn a_pinwheel_is_a_tiling() {
    let pinwheel = trace(&[(0, 1, 1), (2, 0, 2), (1, 1, 1), (0, 0, 2), (1, 0, 1)]);
    for method in [Method::Any, Method::Branch, Method::Tiling, Method::Floors] {
        let Packing::Fits(offsets) = packed(&pinwheel, 3, method, 1 << 12) else {
            panic!("{method:?} finds none");
        };
        assert!(is_valid(&pinwheel, &offsets, 3));
        assert_ne!(packed(&pinwheel, 2, method, 1 << 12), Packing::Fits(offsets));
    }
}

/// Packings of which the other searches find none.
#[test]
fn hard_packings_are_found() {
    for (kind, boxes, seed) in
        [(Kind::Wheels, 450, 0), (Kind::Calls, 150, 0), (Kind::Network, 150, 0)]
    {
        let (trace, height) = traces::hard(kind, boxes, seed);
        let Packing::Fits(offsets) = packed(&trace, height, Method::Floors, 1 << 22) else {
            panic!("{kind:?}, {boxes} boxes, seed {seed}");
        };
        assert!(is_valid(&trace, &offsets, height));
    }
}

#[test]
fn hard_packings_fit_and_are_the_same_for_the_same_seed() {
    for (kind, seed) in Kind::ALL.into_iter().flat_map(|kind| [0, 1].map(|seed| (kind, seed))) {
        for count in [12, 150, 450] {
            let (trace, height) = traces::hard(kind, count, seed);
            let again = traces::hard(kind, count, seed).0;
            assert_eq!((&trace.lifetimes, &trace.sizes), (&again.lifetimes, &again.sizes));
            assert!(crate::packing::bound(&trace.lifetimes, &trace.sizes, 64) <= height);
            let is_about = trace.sizes.len().abs_diff(count) <= count / 5;
            assert!(count < 100 || is_about, "{kind:?} {count}");
        }
    }
}

#[test]
fn packings_without_a_gap_are_found_and_loose_ones() {
    for (boxes, seed) in (0..3).flat_map(|seed| [150, 450].map(|boxes| (boxes, seed))) {
        for is_loose in [false, true] {
            let trace = traces::packing(boxes, seed, is_loose);
            assert_eq!(trace.sizes.len(), boxes);
            let Packing::Fits(offsets) = packed(&trace, PACKED.0, Method::Tiling, 1 << 24) else {
                panic!("{boxes} boxes, seed {seed}");
            };
            assert!(is_valid(&trace, &offsets, PACKED.0));
        }
    }
}

#[test]
fn a_packing_without_a_gap_does_not_fit_in_less() {
    let trace = traces::packing(150, 0, false);
    let got = packed(&trace, PACKED.0 - 1, Method::Any, 1 << 12);
    assert_eq!(got, Packing::Impossible);
}

#[test]
fn what_is_left_above_a_multiple_of_the_alignment_is_of_no_use() {
    let both = trace(&[(0, 1, 64), (0, 1, 64)]);
    let pack = |capacity| {
        let effort = Effort::steps(100);
        pack(&both.lifetimes, &both.sizes, 64, capacity, Method::Any, effort)
    };
    assert!([100, 127].into_iter().all(|capacity| pack(capacity) == Packing::Impossible));
    assert!([128, 150].into_iter().all(|capacity| matches!(pack(capacity), Packing::Fits(_))));
}

#[test]
fn little_effort_leaves_it_open() {
    let trace = traces::packing(450, 0, false);
    assert_eq!(packed(&trace, PACKED.0, Method::Branch, 100), Packing::Unknown);
}

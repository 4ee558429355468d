//! Which hard packings each exact search finds, and when.

use std::time::{Duration, Instant};

use singa_rs::packing::exact::{Effort, Method, Packing, pack};
use singa_rs::packing::traces::{Kind, Trace, hard};

const METHODS: [Method; 4] = [Method::Tiling, Method::Branch, Method::Floors, Method::Any];

/// Numbers of boxes.
const COUNTS: [usize; 3] = [150, 300, 450];

/// Prints a table: how many packings of each kind and size each search finds within so many
/// seconds each, and the longest time it took for one of them.
pub fn run(seconds: f64, seeds: u64) {
    println!(
        "| kind, boxes | tiling | branch and bound | floors | all in turn |\n|---|---|---|---|---|"
    );
    for (kind, count) in Kind::ALL.into_iter().flat_map(|kind| COUNTS.map(|count| (kind, count))) {
        let cell = |method| cell(kind, count, method, seconds, seeds);
        let row = METHODS.map(cell).join(" | ");
        println!("| {}, {count} | {row} |", format!("{kind:?}").to_lowercase());
    }
}

fn cell(kind: Kind, count: usize, method: Method, seconds: f64, seeds: u64) -> String {
    let packings = (0..seeds).map(|seed| hard(kind, count, seed));
    let times: Vec<f64> =
        packings.filter_map(|(trace, height)| time(&trace, height, method, seconds)).collect();
    let longest = times.iter().copied().fold(0.0, f64::max);
    if times.is_empty() { "0".into() } else { format!("{}, {longest:.2} s", times.len()) }
}

/// The seconds it took to find a packing, if one was found.
fn time(trace: &Trace, height: usize, method: Method, seconds: f64) -> Option<f64> {
    let start = Instant::now();
    let effort = Effort::until(start + Duration::from_secs_f64(seconds));
    let packing = pack(&trace.lifetimes, &trace.sizes, 64, height, method, effort);
    let taken = start.elapsed().as_secs_f64();
    match packing {
        Packing::Fits(offsets) => {
            check(trace, &offsets, height);
            Some(taken)
        }
        Packing::Impossible => panic!("{method:?} takes a packing for impossible"),
        Packing::Unknown => None,
    }
}

/// Panics unless pieces that are live at once lie apart, below a height.
fn check(trace: &Trace, offsets: &[usize], height: usize) {
    let end = |piece: usize| offsets[piece] + trace.sizes[piece];
    for a in 0..offsets.len() {
        assert!(end(a) <= height, "piece {a} ends above the height");
        for b in (0..a).filter(|&b| trace.lifetimes[a].meets(&trace.lifetimes[b])) {
            assert!(end(a) <= offsets[b] || end(b) <= offsets[a], "pieces {a} and {b} overlap");
        }
    }
}

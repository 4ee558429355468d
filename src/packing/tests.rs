use std::collections::BTreeMap;

use proptest::prelude::*;

use super::traces::Trace;
use super::*;

fn life(first: u32, last: u32) -> Lifetime {
    Lifetime { first, last }
}

/// Checks that no two pieces that are live at once share a byte, and that all are within the arena.
fn check(lifetimes: &[Lifetime], sizes: &[usize], plan: &Plan) {
    let range = |p: usize| plan.offsets[p]..plan.offsets[p] + sizes[p];
    for a in (0..sizes.len()).filter(|&a| sizes[a] > 0 && !lifetimes[a].is_never()) {
        assert!(plan.offsets[a].is_multiple_of(64) && range(a).end <= plan.height);
        for b in (0..a).filter(|&b| sizes[b] > 0 && lifetimes[a].meets(&lifetimes[b])) {
            assert!(range(a).end <= range(b).start || range(b).end <= range(a).start, "{a} {b}");
        }
    }
    assert!(plan.height >= plan.bound);
}

proptest! {
    #[test]
    fn pieces_that_live_at_once_lie_apart(
        given in prop::collection::vec((0u32..40, 0u32..20, 0usize..3000), 0..60),
    ) {
        let lifetimes: Vec<Lifetime> = given.iter().map(|g| life(g.0, g.0 + g.1)).collect();
        let sizes: Vec<usize> = given.iter().map(|g| g.2).collect();
        check(&lifetimes, &sizes, &plan(&lifetimes, &sizes, 64));
    }
}

#[test]
fn what_takes_no_memory_costs_nothing() {
    let nothing = plan(&[life(0, 5), Lifetime::NEVER], &[0, 100], 64);
    assert_eq!((nothing.height, nothing.bound), (0, 0));
    let plan = plan(&[], &[], 64);
    assert_eq!((plan.height, plan.bound), (0, 0));
}

/// The memory of a convolutional network's training step: activations that the backward pass reads
/// in reverse, their gradients, which live from one layer to the one before, weight gradients,
/// which an optimizer uses at once or after the backward pass, and scratch.
fn training_step(layers: u32, images: usize, keeps_gradients: bool) -> (Vec<Lifetime>, Vec<usize>) {
    let mut pieces = Vec::new();
    // Over the network, the extent halves and the channels double three times.
    let stage = |layer: u32| layer * 4 / layers;
    let activation = |layer: u32| (images * 4 * (64 * 56 * 56)) >> stage(layer);
    let weight = |layer: u32| (4 * 9 * (64 * 64)) << (2 * stage(layer));
    let steps = |layer: u32| (4 * layer, 4 * layers + 8 * (layers - 1 - layer));
    let end = 12 * layers;
    for layer in 0..layers {
        let (forward, backward) = steps(layer);
        // Convolution, normalisation with its statistics, activation.
        pieces.push((forward, backward + 5, activation(layer)));
        pieces.push((forward, forward, weight(layer)));
        pieces.push((forward + 1, backward + 3, 256 << stage(layer)));
        pieces.push((forward + 2, backward + 8, activation(layer)));
        // Their gradients, in reverse.
        pieces.push((backward + 1, backward + 3, activation(layer)));
        pieces.push((backward + 3, backward + 6, activation(layer)));
        pieces.push((
            backward + 5,
            if keeps_gradients { end } else { backward + 6 },
            weight(layer),
        ));
        pieces.push((backward + 6, backward + 9, activation(layer.saturating_sub(1))));
    }
    pieces.into_iter().map(|(first, last, size)| (life(first, last), size)).unzip()
}

#[test]
fn training_steps_need_hardly_more_than_the_bound() {
    for (layers, images) in [(13, 1), (13, 32), (50, 2), (50, 64), (120, 8)] {
        for keeps_gradients in [false, true] {
            let (lifetimes, sizes) = training_step(layers, images, keeps_gradients);
            let plan = plan(&lifetimes, &sizes, 64);
            check(&lifetimes, &sizes, &plan);
            let over = plan.height as f64 / plan.bound as f64;
            assert!(over <= 1.001, "{layers} layers, {images} images: {over}");
        }
    }
}

/// The same as `check` by a sweep over time, for plans of many pieces.
fn check_in_time(trace: &Trace, plan: &Plan) {
    let mut moments: Vec<(u32, bool, usize)> = (0..trace.sizes.len())
        .filter(|&p| trace.sizes[p] > 0)
        .flat_map(|p| {
            [(trace.lifetimes[p].first, true, p), (trace.lifetimes[p].last + 1, false, p)]
        })
        .collect();
    moments.sort();
    let mut live = BTreeMap::new();
    for (_, begins, p) in moments {
        let (start, end) = (plan.offsets[p], plan.offsets[p] + trace.sizes[p]);
        if !begins {
            live.remove(&start);
            continue;
        }
        let below = live.range(..end).next_back();
        assert!(below.is_none_or(|(_, &below)| below <= start) && end <= plan.height, "{p}");
        live.insert(start, end);
    }
}

#[test]
fn a_hundred_thousand_pieces_take_no_more_than_the_bound() {
    for seed in 0..3 {
        for trace in [traces::training(100_000, seed), traces::pareto(100_000, seed)] {
            let plan = plan(&trace.lifetimes, &trace.sizes, 64);
            check_in_time(&trace, &plan);
            assert!(plan.height as f64 <= 1.001 * plan.bound as f64, "{seed}: {}", plan.height);
        }
    }
}

proptest! {
    #[test]
    fn each_heuristic_keeps_pieces_apart(
        given in prop::collection::vec((0u32..40, 0u32..20, 1usize..3000), 1..60),
    ) {
        let lifetimes: Vec<Lifetime> = given.iter().map(|g| life(g.0, g.0 + g.1)).collect();
        let sizes: Vec<usize> = given.iter().map(|g| g.2).collect();
        let pieces = pieces(&lifetimes, &sizes, 64);
        let sky = skyline::place(&pieces, Piece::duration);
        let mut fit = first_fit::FirstFit::new(&pieces);
        let first = fit.place(&orders::orders(&pieces)[0], usize::MAX).unwrap().to_vec();
        let turned = search::turned(&pieces, &sky);
        let outward = online::outward(&pieces, crest(&pieces));
        let [forward, backward] = [online::forward(&pieces), online::backward(&pieces)];
        for found in [outward, forward, backward, sky, turned, first] {
            let mut best = Best { offsets: Vec::new(), height: usize::MAX, bound: 0 };
            best.keep(&pieces, found.clone());
            let offsets = spread(&pieces, &found, sizes.len());
            check(&lifetimes, &sizes, &Plan { offsets, height: best.height, bound: 0 });
        }
    }
}

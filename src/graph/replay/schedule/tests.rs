use super::*;
use crate::graph::Graph;
use crate::graph::Role::*;
use crate::graph::memory::layout::{MOST_GROWTH, rounded, roundings};
use crate::graph::testing::Recorder;
use crate::kernels::Prepared;
use crate::ops::View;
use crate::packing::Lifetime;

/// `branches` chains of `length` negations of one tensor, recorded one after the other; their ends
/// are results.
fn branches(recorder: &mut Recorder, branches: usize, length: usize, elements: usize) {
    let x = recorder.tensor(Argument, elements);
    for _ in 0..branches {
        let mut from = x.clone();
        for n in 1..=length {
            let to: View = recorder.tensor(if n == length { Slot } else { Temporary }, elements);
            recorder.negate(&from, &to);
            from = to;
        }
    }
}

#[test]
fn branches_do_not_take_turns_in_memory() {
    let mut recorder = Recorder::default();
    branches(&mut recorder, 2, 4, 16);
    let graph = recorder.parallel(2).unwrap();
    let Schedule { segments, edges, parts, workers, .. } = graph.schedule().unwrap();
    assert_eq!((&segments[..], *workers), (std::slice::from_ref(&(0..8)), 2));
    assert_eq!(parts[..], [0, 0, 0, 0, 1, 1, 1, 1]);
    let rows: Vec<&[u32]> = edges.iter().collect();
    assert_eq!(rows, [&[][..], &[0], &[1], &[2], &[], &[4], &[5], &[6]]);
    // Each negation overwrites its input.
    assert_eq!((graph.arena_bytes(), graph.lower_bound_bytes()), (128, 128));
}

#[test]
fn too_large_tensors_take_turns_and_their_nodes_are_ordered() {
    let mut recorder = Recorder::default();
    branches(&mut recorder, 4, 2, MOST_GROWTH.1 / 4);
    let graph = recorder.parallel(2).unwrap();
    let bytes = MOST_GROWTH.1;
    assert!(graph.arena_bytes() >= bytes && graph.arena_bytes() <= 2 * bytes);
    graph.verify().unwrap();
    let edges = &graph.schedule().unwrap().edges;
    let across = (2..8).filter(|&n| edges.row(n).iter().any(|&e| e / 2 != n as u32 / 2));
    assert!(across.count() > 0, "{edges:?}");
}

#[test]
fn a_bound_makes_nodes_take_turns_as_for_one_thread() {
    let graph = |most_bytes: Option<usize>| {
        let mut recorder = Recorder::default();
        branches(&mut recorder, 8, 3, 1 << 10);
        let Recorder { queue, roles, kernels } = recorder;
        let always = super::Parallel { least_gain: 0, ..super::Parallel::new(2) };
        let with = |most_bytes| super::Parallel { most_bytes, ..always };
        Graph::planned(queue, roles, &kernels, most_bytes.map(with)).unwrap()
    };
    let (free, serial) = (graph(Some(usize::MAX)).arena_bytes(), graph(None).arena_bytes());
    assert_eq!((free, serial), (8 << 12, 1 << 12));
    for most in (1..=8).map(|branches| branches << 12) {
        let bound = graph(Some(most));
        bound.verify().unwrap();
        assert!(bound.arena_bytes() <= most, "{} of {most}", bound.arena_bytes());
    }
    assert_eq!(graph(Some(0)).arena_bytes(), serial);
}

#[test]
fn what_gains_too_little_is_run_by_one_thread() {
    let parallel = |length: usize, count: usize| {
        let mut recorder = Recorder::default();
        branches(&mut recorder, count, length, 16);
        let Recorder { queue, roles, kernels } = recorder;
        let two = Some(super::Parallel::new(2));
        let graph = Graph::planned(queue, roles, &kernels, two).unwrap();
        graph.schedule().unwrap().segments.clone()
    };
    assert_eq!(parallel(1000, 1), []);
    assert_eq!(parallel(4, 2), []);
    assert_eq!(parallel(400, 2), std::slice::from_ref(&(0..800)));
}

#[test]
fn one_thread_needs_no_schedule() {
    let of = |workers: usize| {
        let mut recorder = Recorder::default();
        branches(&mut recorder, 2, 4, 16);
        recorder.parallel(workers).unwrap().schedule().is_some()
    };
    assert_eq!([0, 1, 2].map(of), [false, false, true]);
}

/// Two pieces take turns beside one that is live throughout; if they do not, the peak grows by one
/// of them. Sizes in MiB.
#[test]
fn lifetimes_are_rounded_as_long_as_memory_grows_little() {
    let windows = |whole: usize, piece: usize| {
        let lifetimes = [(0, 3), (0, 1), (2, 3)].map(|(first, last)| Lifetime { first, last });
        let sizes = [whole, piece, piece].map(|size| size << 20);
        let segment = std::slice::from_ref(&(0..4));
        roundings(&lifetimes, &sizes, segment, usize::MAX).count()
    };
    assert_eq!([windows(144, 32), windows(144, 64)], [3, 2], "by a quarter");
    assert_eq!([windows(0, 16), windows(0, 17)], [3, 2], "by so many bytes");
}

#[test]
fn what_threads_gain_is_the_time_that_the_longest_way_and_their_number_leave() {
    // How much earlier the threads finish, in units of one negation.
    let gained = |count: usize, length: usize, workers: usize| {
        let mut recorder = Recorder::default();
        branches(&mut recorder, count, length, 16);
        let graph = recorder.graph().unwrap();
        let (nodes, all) = (graph.kernels(), 0..(count * length) as u32);
        let parallel = super::Parallel::new(workers);
        gain(nodes, graph.edges(), &all, parallel) / nanoseconds(&nodes[0])
    };
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(close(gained(1, 3, 2), 0.0), "one after the other");
    assert!(close(gained(2, 3, 2), 3.0), "side by side");
    assert!(close(gained(4, 1, 2), 2.0) && close(gained(4, 1, 8), 3.0));
}

#[test]
fn what_hardly_gains_beside_the_rest_is_run_by_one_thread() {
    // Two branches, and a node of the given width for the whole team.
    let segments = |width: usize| {
        let mut recorder = Recorder::default();
        branches(&mut recorder, 2, 400, 16);
        let [x, y] = [Argument, Slot].map(|role| recorder.tensor(role, 1 << 25));
        let kind = crate::ops::copy::Copy.into();
        let mut op = Prepared::of(&kind, std::slice::from_ref(&x), None, 1).unwrap();
        op.width = Width(width);
        recorder.push_prepared(op.into(), &[x], &[y]);
        let graph = recorder.graph().unwrap();
        super::segments(graph.kernels(), graph.edges(), super::Parallel::new(2))
    };
    assert_eq!(segments(2), []);
    assert_eq!(segments(1 << 10), std::slice::from_ref(&(0..800)), "the whole team is quick");
}

#[test]
fn lifetimes_are_rounded_to_windows_of_their_segments() {
    let segments = [2..9, 12..13];
    let round = |first, last, window| {
        let Lifetime { first, last } = rounded(&Lifetime { first, last }, &segments, window);
        (first, last)
    };
    assert_eq!(round(4, 5, 100), (2, 8));
    assert_eq!(round(4, 5, 2), (4, 5));
    assert_eq!(round(5, 10, 2), (4, 10));
    assert_eq!(round(0, 8, 3), (0, 8));
    assert_eq!(round(9, 12, 3), (9, 12));
    assert!(rounded(&Lifetime::NEVER, &segments, 4).is_never());
}

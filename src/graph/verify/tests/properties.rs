use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::super::{Fault, edges, replay};
use super::oracle;
use super::programs::programs;
use super::separate;
use crate::graph::memory::layout::{Layout, OUTSIDE};
use crate::graph::{Csr, Edges, Graph, Op, Place};

/// Runs a property test, and sums up the cases of interest that it counts.
pub fn holds<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> usize) -> usize {
    let met = Cell::new(0);
    let mut runner = TestRunner::new(Config::with_cases(1000));
    let counted = |value| {
        met.set(met.get() + test(value));
        Ok::<(), TestCaseError>(())
    };
    runner.run(&strategy, counted).unwrap();
    met.get()
}

pub fn from_pairs(nodes: usize, pairs: &[(usize, usize)]) -> Edges {
    Csr::sorted(nodes, || pairs.iter().map(|&(from, to)| (to, from as u32)))
}

fn recorded(graph: &Graph) -> Vec<u32> {
    (0..graph.ops().len() as u32).collect()
}

/// How many outputs share memory in place with an input of another block.
fn in_place(graph: &Graph) -> usize {
    let offsets =
        |places: &[Place]| places.iter().map(|p| (p.block, graph.offset(p.block))).collect();
    let shares = |node: &Op| {
        let outputs: Vec<_> = offsets(&node.outputs);
        let inputs: Vec<_> = offsets(&node.inputs);
        let same = |to: &(u32, Option<usize>)| {
            to.1.is_some()
                && graph.block_bytes(to.0) > 0
                && inputs.iter().any(|from| from.1 == to.1 && from.0 != to.0)
        };
        outputs.iter().filter(|to| same(to)).count()
    };
    graph.ops().iter().map(shares).sum()
}

#[test]
fn what_the_analysis_makes_is_accepted() {
    let shared = holds(programs(), |program| {
        let graph = program.record().graph().unwrap();
        graph.verify().unwrap();
        let pairs = oracle::pairs(graph.edges());
        assert!(oracle::ordered(&graph, &pairs));
        assert!(oracle::replays(&graph, &graph.layout, &recorded(&graph)));
        in_place(&graph)
    });
    assert!(shared > 15, "only {shared} outputs took the place of an input");
}

#[test]
fn an_edge_that_no_other_path_implies_is_missed() {
    let missed = holds(programs(), |program| {
        let graph = program.record().graph().unwrap();
        let (n, all) = (graph.ops().len(), oracle::pairs(graph.edges()));
        let mut missed = 0;
        for &removed in &all {
            let rest: Vec<_> = all.iter().copied().filter(|&pair| pair != removed).collect();
            let is_implied = oracle::paths(n, &rest)[removed.0][removed.1];
            let fault = edges(&graph, &from_pairs(n, &rest));
            assert_eq!(fault.is_ok(), is_implied, "{removed:?}");
            missed += fault.is_err() as usize;
        }
        missed
    });
    assert!(missed > 1000, "only {missed} edges were needed");
}

/// The layout with a temporary block, or a node's scratch, moved to another offset.
pub fn moved(layout: &Layout, which: usize, offset: usize) -> Layout {
    let mut layout = layout.clone();
    let inside: Vec<usize> =
        (0..layout.offsets.len()).filter(|&b| layout.offsets[b] != OUTSIDE).collect();
    let choices = inside.len() + layout.scratch.len();
    match which % choices.max(1) {
        k if k < inside.len() => layout.offsets[inside[k]] = offset,
        k if k < choices => layout.scratch[k - inside.len()].1 = offset,
        _ => {}
    }
    layout.height += 1 << 10;
    layout
}

#[test]
fn schedules_and_plans_are_judged_as_byte_by_byte() {
    let given = (programs(), any::<usize>(), 0usize..8, prop::collection::vec(any::<u8>(), 24));
    let wrong = holds(given, |(program, which, lines, keys)| {
        let graph = program.record().graph().unwrap();
        let layout = moved(&graph.layout, which, lines * 64);
        let mut any_order = recorded(&graph);
        // Most nodes stay close to their recorded position.
        any_order.sort_by_key(|&n| n as usize * 32 + keys[n as usize] as usize);
        let mut wrong = 0;
        for schedule in [recorded(&graph), any_order] {
            let fault = replay(&graph, &layout, &schedule);
            let right = oracle::replays(&graph, &layout, &schedule);
            assert_eq!(fault.is_ok(), right, "{fault:?}");
            wrong += fault.is_err() as usize;
        }
        wrong
    });
    assert!(wrong > 50, "only {wrong} were wrong");
}

#[test]
fn any_order_that_the_edges_allow_is_right_in_separate_memory() {
    let given = (programs(), prop::collection::vec(any::<u16>(), 24));
    let other = holds(given, |(program, keys)| {
        let graph = program.record().graph().unwrap();
        let mut order: Vec<u32> = Vec::new();
        let mut left = recorded(&graph);
        while !left.is_empty() {
            let is_free =
                |&&n: &&u32| graph.edges().row(n as usize).iter().all(|e| order.contains(e));
            let next = *left.iter().filter(is_free).max_by_key(|&&n| keys[n as usize]).unwrap();
            order.push(next);
            left.retain(|&n| n != next);
        }
        replay(&graph, &separate(&graph), &order).unwrap();
        (order != recorded(&graph)) as usize
    });
    assert!(other > 50, "only {other} orders were others");
}

/// Whether a byte of `block` is live across a node that writes the same byte of `other`.
fn clash(graph: &Graph, block: u32, other: u32) -> bool {
    let n = graph.ops().len();
    let touches = |node: usize, block: u32, byte: usize, writes: bool| {
        let node = &graph.ops()[node];
        let places = if writes { &node.outputs[..] } else { &node.inputs[..] };
        places.iter().any(|p| p.block == block && p.byte_range().contains(&byte))
    };
    let is_live = |byte: usize, at: usize| {
        let written = (0..at).any(|w| touches(w, block, byte, true));
        let read = (at..n).find(|&r| touches(r, block, byte, false));
        let lost = (at..n).find(|&w| touches(w, block, byte, true));
        // Bytes that the node itself reads and then overwrites belong to in-place sharing.
        written && read.is_some_and(|r| r > at && lost.is_none_or(|l| l >= r))
    };
    let bytes = graph.block_bytes(block).min(graph.block_bytes(other));
    (0..n).any(|at| (0..bytes).any(|byte| touches(at, other, byte, true) && is_live(byte, at)))
}

#[test]
fn a_buffer_moved_onto_a_live_range_is_found() {
    let found = holds(programs(), |program| {
        let graph = program.record().graph().unwrap();
        let blocks = 0..graph.roles().len() as u32;
        let mut found = 0;
        for (one, other) in blocks.clone().flat_map(|a| blocks.clone().map(move |b| (a, b))) {
            let (Some(to), Some(from)) = (graph.offset(one), graph.offset(other)) else { continue };
            if to != from && clash(&graph, one, other) {
                let mut layout = graph.layout.clone();
                layout.offsets[other as usize] = to;
                layout.height += 1 << 10;
                let fault = replay(&graph, &layout, &recorded(&graph)).unwrap_err();
                assert!(matches!(fault, Fault::Stale { .. } | Fault::Overlap { .. }), "{fault}");
                found += 1;
            }
        }
        found
    });
    assert!(found > 200, "only {found} buffers could be moved");
}

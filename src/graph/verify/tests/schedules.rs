//! Schedules for several threads, on random programs.

use proptest::prelude::*;

use super::super::{Fault, replay, schedule};
use super::oracle;
use super::programs::{Program, programs};
use super::properties::{from_pairs, holds, moved};
use crate::graph::Role::*;
use crate::graph::testing::Recorder;
use crate::graph::{Graph, Schedule};

/// A graph for two threads.
fn graph(program: &Program) -> Graph {
    program.record().parallel(2).unwrap()
}

fn of(graph: &Graph) -> &Schedule {
    graph.schedule().unwrap()
}

#[test]
fn what_the_analysis_makes_is_accepted() {
    let shared = holds(programs(), |program| {
        let graph = graph(&program);
        graph.verify().unwrap();
        assert!(oracle::scheduled(&graph, &graph.layout, of(&graph)));
        of(&graph).segments.iter().map(|segment| segment.len()).sum()
    });
    assert!(shared > 5000, "only {shared} nodes may run beside others");
}

/// Two independent negations, for two threads.
fn negations() -> Graph {
    let mut recorder = Recorder::default();
    let [x, y, z] = [Argument, Slot, Slot].map(|role| recorder.tensor(role, 4));
    recorder.negate(&x, &y);
    recorder.negate(&x, &z);
    recorder.parallel(2).unwrap()
}

#[test]
fn a_node_belongs_to_one_segment() {
    let graph = negations();
    let twice = Schedule { segments: vec![0..2, 1..2], ..of(&graph).clone() };
    assert_eq!(schedule(&graph, &graph.layout, &twice), Err(Fault::Beside { node: 1 }));
}

#[test]
fn edges_of_a_schedule_lead_forward() {
    let graph = negations();
    let back = Schedule { edges: from_pairs(2, &[(1, 0)]), ..of(&graph).clone() };
    let fault = Fault::Backwards { node: 0, earlier: 1 };
    assert_eq!(schedule(&graph, &graph.layout, &back), Err(fault));
}

#[test]
fn an_edge_that_no_other_path_implies_is_missed() {
    let missed = holds(programs(), |program| {
        let graph = graph(&program);
        let (n, all) = (graph.ops().len(), oracle::pairs(&of(&graph).edges));
        let mut missed = 0;
        for &removed in &all {
            let rest: Vec<_> = all.iter().copied().filter(|&pair| pair != removed).collect();
            let is_implied = oracle::paths(n, &rest)[removed.0][removed.1];
            let less = Schedule { edges: from_pairs(n, &rest), ..of(&graph).clone() };
            let fault = schedule(&graph, &graph.layout, &less);
            assert_eq!(fault.is_ok(), is_implied, "{removed:?}");
            missed += fault.is_err() as usize;
        }
        missed
    });
    assert!(missed > 1000, "only {missed} edges were needed");
}

#[test]
fn schedules_over_moved_memory_are_judged_as_byte_by_byte() {
    let wrong = holds((programs(), any::<usize>(), 0usize..8), |(program, which, lines)| {
        let graph = graph(&program);
        let layout = moved(&graph.layout, which, lines * 64);
        let fault = schedule(&graph, &layout, of(&graph));
        assert_eq!(fault.is_ok(), oracle::scheduled(&graph, &layout, of(&graph)), "{fault:?}");
        fault.is_err() as usize
    });
    assert!(wrong > 50, "only {wrong} were wrong");
}

/// An order in which threads may start the nodes; keys decide where there is a choice.
fn order(graph: &Graph, keys: &[u16]) -> Vec<u32> {
    let Schedule { segments, edges, .. } = of(graph);
    let mut order: Vec<u32> = Vec::new();
    let mut left: Vec<u32> = (0..graph.ops().len() as u32).collect();
    while !left.is_empty() {
        let segment = segments.iter().find(|segment| segment.contains(&left[0]));
        let end = segment.map_or(left[0] + 1, |segment| segment.end);
        let is_free = |&&n: &&u32| {
            n < end && edges.row(n as usize).iter().all(|earlier| order.contains(earlier))
        };
        let next = *left.iter().filter(is_free).max_by_key(|&&n| keys[n as usize]).unwrap();
        order.push(next);
        left.retain(|&n| n != next);
    }
    order
}

#[test]
fn any_order_that_the_schedule_allows_is_right_in_planned_memory() {
    let given = (programs(), prop::collection::vec(any::<u16>(), 24));
    let other = holds(given, |(program, keys)| {
        let graph = graph(&program);
        let order = order(&graph, &keys);
        replay(&graph, &graph.layout, &order).unwrap();
        !order.is_sorted() as usize
    });
    assert!(other > 50, "only {other} orders were others");
}

#[test]
fn what_must_run_alone_is_in_no_segment() {
    let found = holds(programs(), |program| {
        let graph = graph(&program);
        let host = graph.ops().iter().position(|node| node.call.effects.host);
        let Some(node) = host else { return 0 };
        let alone = node as u32..node as u32 + 1;
        let alone = Schedule { segments: Vec::from([alone]), ..of(&graph).clone() };
        let fault = schedule(&graph, &graph.layout, &alone);
        assert_eq!(fault, Err(Fault::Beside { node }));
        1
    });
    assert!(found > 50, "only {found} programs ran user code");
}

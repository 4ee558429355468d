use super::{Limits, choose};
use crate::graph::memory::order;
use crate::graph::memory::recompute::Course;
use crate::graph::testing::Recorder;
use crate::graph::{Graph, Role};
use crate::ops::View;
use crate::ops::unary::{Unary, UnaryFn};

/// Elements of a block that is worth recomputing.
const LARGE: usize = 1 << 20;

/// The names of the operations and the graph, recomputations included.
fn improved(recorder: Recorder) -> (Vec<&'static str>, Graph) {
    let Recorder { queue, roles, kernels } = recorder;
    let course = Course::new(order::ordered(queue, &roles, &kernels), &roles);
    let (queue, roles) = course.finish(&choose(&course, Limits::DEFAULT));
    let graph = Graph::new(queue, roles, &kernels).unwrap();
    graph.verify().unwrap();
    (graph.ops().iter().map(|node| node.call.name()).collect(), graph)
}

/// A chain of layers and its backward pass: each layer is costly (a chain of tanh), what follows it
/// is cheap (abs), and the results of both are read again in reverse order.
fn layers(count: usize, elements: usize, between: impl Fn(&mut Recorder, &View)) -> Recorder {
    let mut recorder = Recorder::default();
    let mut x = recorder.tensor(Role::Captured, elements);
    let out = recorder.tensor(Role::Slot, elements);
    let (mut costly, mut cheap) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let [a, b] = [(); 2].map(|()| recorder.tensor(Role::Temporary, elements));
        for _ in 0..20 {
            let c = recorder.tensor(Role::Temporary, elements);
            recorder.push(
                Unary { f: UnaryFn::Tanh },
                std::slice::from_ref(&x),
                std::slice::from_ref(&c),
            );
            x = c;
        }
        recorder.push(Unary { f: UnaryFn::Tanh }, &[x], std::slice::from_ref(&a));
        recorder.push(
            Unary { f: UnaryFn::Abs },
            std::slice::from_ref(&a),
            std::slice::from_ref(&b),
        );
        x = b.clone();
        costly.push(a);
        cheap.push(b);
    }
    between(&mut recorder, &costly[0]);
    let mut gradient = x;
    for (a, b) in costly.iter().zip(&cheap).rev() {
        for kept in [b, a] {
            let next = recorder.tensor(Role::Temporary, elements);
            recorder.add(&gradient, kept, &next);
            gradient = next;
        }
    }
    recorder.negate(&gradient, &out);
    recorder
}

fn count(names: &[&str], name: &str) -> usize {
    names.iter().filter(|other| **other == name).count()
}

#[test]
fn cheap_results_are_computed_again_and_costly_ones_kept() {
    let plain = layers(6, LARGE, |_, _| ()).graph().unwrap();
    let (names, graph) = improved(layers(6, LARGE, |_, _| ()));
    assert!(count(&names, "abs") > 6, "{names:?}");
    assert_eq!(count(&names, "tanh"), 6 * 21);
    assert!(graph.peak_bytes() * 10 < plain.peak_bytes() * 8);
}

#[test]
fn small_blocks_are_kept() {
    let (names, _) = improved(layers(6, 1 << 10, |_, _| ()));
    assert_eq!(count(&names, "abs"), 6);
}

#[test]
fn nothing_is_computed_again_from_what_was_written_since() {
    let write = |recorder: &mut Recorder, first: &View| {
        let other = recorder.tensor(Role::Captured, LARGE);
        recorder.negate(&other, first);
    };
    let plain = improved(layers(6, LARGE, |_, _| ())).0;
    let (names, _) = improved(layers(6, LARGE, write));
    assert_eq!(count(&names, "abs") + 1, count(&plain, "abs"));
}

#[test]
fn a_recomputed_block_that_others_are_computed_from_comes_first() {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Role::Captured, LARGE);
    let chain: Vec<View> = (0..4).map(|_| recorder.tensor(Role::Temporary, LARGE)).collect();
    let mut from = x.clone();
    for to in &chain {
        recorder.push(Unary { f: UnaryFn::Abs }, &[from], std::slice::from_ref(to));
        from = to.clone();
    }
    // The peak: costly operations on other tensors.
    let held: Vec<View> = (0..6).map(|_| recorder.tensor(Role::Temporary, LARGE)).collect();
    let mut tanh = |from: &View, to: &View| {
        let [from, to] = [from, to].map(std::slice::from_ref);
        recorder.push(Unary { f: UnaryFn::Tanh }, from, to);
    };
    for to in held.iter().cycle().take(40 * held.len()) {
        tanh(&x, to);
    }
    let out = recorder.tensor(Role::Slot, LARGE);
    let mut sum = x.clone();
    for from in &held {
        let next = recorder.tensor(Role::Temporary, LARGE);
        recorder.add(&sum, from, &next);
        sum = next;
    }
    for link in chain.iter().rev() {
        let next = recorder.tensor(Role::Temporary, LARGE);
        recorder.add(&sum, link, &next);
        sum = next;
    }
    recorder.negate(&sum, &out);
    let (names, graph) = improved(recorder);
    assert!(count(&names, "abs") > 6, "{names:?}");
    assert!(graph.peak_bytes() <= 8 * 4 * LARGE);
}

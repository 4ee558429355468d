use proptest::prelude::*;

use super::*;
use crate::graph::Graph;
use crate::graph::testing::{Empty, Recorder};
use crate::graph::verify::replay;
use crate::graph::verify::tests::{programs::programs, separate};
use crate::ops::copy::Copy;
use crate::ops::index::Gather;
use crate::ops::linalg::{Linalg, LinalgFn};
use crate::ops::{Kind, View};

/// The operations in the best known order.
fn ordered(recorder: Recorder) -> Recorder {
    let Recorder { queue, roles, kernels } = recorder;
    let orders = orders(queue, &roles, &kernels).into_iter();
    let (queue, _) = orders.min_by_key(|(_, line)| line.peak()).unwrap();
    Recorder { queue, roles, kernels }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_estimated_is_what_a_plan_cannot_do_without(program in programs()) {
        let recorder = program.record();
        let estimated = Timeline::new(&recorder.queue, &recorder.roles, &recorder.kernels).peak();
        prop_assert_eq!(estimated, recorder.graph().unwrap().peak_bytes());
    }

    #[test]
    fn every_order_is_legal(program in programs()) {
        let Recorder { queue, roles, kernels } = program.record();
        let graph = Graph::new(queue.clone(), roles.clone(), &kernels).unwrap();
        for order in legal(&Work::new(&super::ordered(queue, &roles, &kernels), &roles)) {
            replay(&graph, &separate(&graph), &order).unwrap();
        }
    }

    #[test]
    fn the_order_is_never_worse_than_the_recorded_one(program in programs()) {
        let before = program.record().graph().unwrap().peak_bytes();
        let graph = ordered(program.record()).graph().unwrap();
        graph.verify().unwrap();
        prop_assert!(graph.peak_bytes() <= before);
    }
}

/// Gradients of `count` parameters, each made from the one before it, and updates of the
/// parameters, either after each gradient or, if it `collects`, after all of them.
fn backward(count: usize, collects: bool) -> Recorder {
    let mut recorder = Recorder::default();
    let parameters: Vec<View> =
        (0..count).map(|_| recorder.tensor(Role::Captured, 1 << 10)).collect();
    let mut upstream = recorder.tensor(Role::Argument, 64);
    let mut gradients = Vec::new();
    for parameter in &parameters {
        let gradient = recorder.tensor(Role::Temporary, 1 << 10);
        let next = recorder.tensor(Role::Temporary, 64);
        recorder.negate(&upstream, &next);
        recorder.negate(parameter, &gradient);
        upstream = next;
        if !collects {
            recorder.add(parameter, &gradient, parameter);
        }
        gradients.push(gradient);
    }
    if collects {
        let pairs = parameters.iter().zip(&gradients);
        pairs.for_each(|(parameter, gradient)| recorder.add(parameter, gradient, parameter));
    }
    recorder
}

#[test]
fn updates_move_to_where_their_gradients_are_made() {
    let peaks =
        [true, false].map(|collects| ordered(backward(10, collects)).graph().unwrap().peak_bytes());
    assert_eq!(peaks[0], peaks[1]);
    assert!(peaks[0] < 2 * (1 << 12));
}

#[test]
fn what_is_good_stays_as_it_is() {
    let Recorder { queue, .. } = ordered(backward(1, false));
    let origins: Vec<u32> = queue.ops().iter().map(|node| node.origin).collect();
    assert!(origins.is_sorted());
}

/// A node on these tensors that does nothing, marked as user code if `host`.
fn push(recorder: &mut Recorder, kind: Kind, host: bool, inputs: &[View], outputs: &[View]) {
    recorder.push_empty(&Empty { kind, updates: false, host, scratch: 0 }, inputs, outputs);
}

#[test]
fn parameters_change_on_their_side_of_user_code_and_of_what_may_fail() {
    let inverse = Linalg { f: LinalgFn::Inv };
    for (kind, host) in [(Copy.into(), true), (inverse.into(), false)] {
        let mut recorder = Recorder::default();
        let [p, q] = [(); 2].map(|()| recorder.tensor(Role::Captured, 64));
        let made = recorder.tensor(Role::Temporary, 64);
        push(&mut recorder, Copy.into(), false, &[], std::slice::from_ref(&p));
        push(&mut recorder, Copy.into(), false, &[], std::slice::from_ref(&made));
        push(&mut recorder, kind, host, &[], &[]);
        push(
            &mut recorder,
            Copy.into(),
            false,
            std::slice::from_ref(&made),
            std::slice::from_ref(&q),
        );
        let before = precedence(&recorder.queue, &recorder.roles);
        let rows: Vec<&[u32]> = before.iter().collect();
        assert_eq!(rows, [&[][..], &[], &[0], &[1, 2]]);
    }
}

#[test]
fn what_may_fail_stays_in_its_order_unless_it_is_checked_before() {
    let gather: Kind = Gather { axis: 0 }.into();
    for (role, want) in [(Role::Argument, &[][..]), (Role::Temporary, &[0])] {
        let mut recorder = Recorder::default();
        let [x, index] = [Role::Captured, role].map(|role| recorder.tensor(role, 64));
        for _ in 0..2 {
            push(&mut recorder, gather.clone(), false, &[x.clone(), index.clone()], &[]);
        }
        let before = precedence(&recorder.queue, &recorder.roles);
        assert_eq!(before.row(1), want);
    }
}

use std::sync::Arc;

use smallvec::smallvec;

use super::super::{Fault, Operand, Reader, Resource, Tag, Writer, edges, replay};
use crate::graph::Role::*;
use crate::graph::memory::layout::Layout;
use crate::graph::testing::{Empty, Recorder};
use crate::graph::{Csr, Edges, Graph};
use crate::kernels::Prepared;
use crate::ops::copy::Copy;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, View};
use crate::view::SliceRange;

/// `a = -x; b = -a; y = a + b`.
fn graph() -> Graph {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
    let (a, b) = (recorder.tensor(Temporary, 4), recorder.tensor(Temporary, 4));
    recorder.negate(&x, &a);
    recorder.negate(&a, &b);
    recorder.add(&a, &b, &y);
    recorder.graph().unwrap()
}

fn edges_of(rows: [&[u32]; 3]) -> Edges {
    let pairs = rows.iter().zip(0..).flat_map(|(row, to)| row.iter().map(move |&from| (to, from)));
    let pairs: Vec<(usize, u32)> = pairs.collect();
    Csr::sorted(3, || pairs.iter().copied())
}

#[test]
fn edges_that_are_missing_or_wrong() {
    let graph = graph();
    assert_eq!(graph.edges(), &edges_of([&[], &[0], &[0, 1]]));
    assert_eq!(edges(&graph, &edges_of([&[], &[0], &[1]])), Ok(()));
    let fault = edges(&graph, &edges_of([&[], &[0], &[0]])).unwrap_err();
    let resource = Resource::Block(3);
    assert_eq!(fault, Fault::Unordered { earlier: 1, later: 2, resource });
    assert_eq!(fault.node(), Some(2));
    assert_eq!(fault.to_string(), "nodes 1 and 2 both touch block 3, and no edges order them");
    let fault = edges(&graph, &edges_of([&[], &[1], &[0, 1]])).unwrap_err();
    assert_eq!(fault, Fault::Backwards { node: 1, earlier: 1 });
}

#[test]
fn a_graph_with_wrong_edges_is_refused() {
    let mut graph = graph();
    assert_eq!(graph.verify().map_err(|error| error.to_string()), Ok(()));
    graph.edges = edges_of([&[], &[0], &[0]]);
    let error = graph.verify().unwrap_err().to_string();
    assert!(error.ends_with("no edges order them"), "{error}");
}

#[test]
fn schedules_that_are_no_permutation_or_in_a_wrong_order() {
    let graph = graph();
    let run = |schedule: &[u32]| replay(&graph, &graph.layout, schedule);
    assert_eq!(run(&[0, 1]), Err(Fault::Schedule { node: 2, times: 0 }));
    assert_eq!(run(&[0, 1, 1, 2]), Err(Fault::Schedule { node: 1, times: 2 }));
    let (want, reader) = (Writer::Node(0), Reader::Node(1));
    let stale = Fault::Stale { reader, block: 2, bytes: 0..16, want, found: None };
    assert_eq!(run(&[1, 0, 2]), Err(stale));
}

#[test]
fn places_that_are_missing_or_too_far() {
    let graph = graph();
    let with = |offset: usize, height: usize| {
        let mut layout = graph.layout.clone();
        layout.offsets[2] = offset;
        layout.height = height;
        replay(&graph, &layout, &[0, 1, 2])
    };
    let (operand, block) = (Operand::Output(0), Some(2));
    let misplaced = Err(Fault::Misplaced { node: 0, operand, block });
    assert_eq!(with(usize::MAX, 256), misplaced);
    assert_eq!(with(4, 256), misplaced);
    assert_eq!(
        with(128, 140),
        Err(Fault::Beyond { node: 0, operand, block, end: 144, limit: 140 })
    );
    assert_eq!(with(128, 144), Ok(()));
    let [a, b] = [2, 3].map(|block| graph.offset(block).unwrap());
    let moved = with(b, 256);
    assert_ne!(a, b);
    let (one, other, blocks) = (Operand::Output(0), Operand::Input(0), [Some(3), Some(2)]);
    // `negate` may overwrite its input, but then the input is lost.
    assert!(!matches!(moved, Err(Fault::Overlap { .. })), "{one} {other} {blocks:?}");
    let found = Some(Tag { block: Some(3), writer: Writer::Node(1) });
    let (want, reader) = (Writer::Node(0), Reader::Node(2));
    assert_eq!(moved, Err(Fault::Stale { reader, block: 2, bytes: 0..16, want, found }));
}

#[test]
fn scratch_that_is_missing_or_askew() {
    let mut recorder = Recorder::default();
    let [x, y, z] = [Argument, Slot, Slot].map(|role| recorder.tensor(role, 4));
    let like = Empty { kind: Copy.into(), updates: false, host: false, scratch: 64 };
    for to in [&y, &z] {
        recorder.push_empty(&like, std::slice::from_ref(&x), std::slice::from_ref(to));
    }
    let graph = recorder.graph().unwrap();
    let [first, second] = [0, 1].map(|n| graph.layout.scratch[n]);
    let with = |scratch: &[(u32, usize)]| {
        let layout = Layout { height: 256, scratch: scratch.to_vec(), ..graph.layout.clone() };
        replay(&graph, &layout, &[0, 1])
    };
    let misplaced = |node| Err(Fault::Misplaced { node, operand: Operand::Scratch, block: None });
    assert_eq!(with(&[first, second]), Ok(()));
    assert_eq!(with(&[second]), misplaced(0), "only that of another");
    assert_eq!(with(&[first]), misplaced(1));
    assert_eq!(with(&[first, (second.0, second.1 + 4)]), misplaced(1));
}

#[test]
fn operands_that_a_kernel_was_not_made_for() {
    let mut recorder = Recorder::default();
    let [x, y] = [Argument, Slot].map(|role| recorder.tensor(role, 4));
    let (kind, short) = (Unary { f: UnaryFn::Neg }.into(), x.slice(&[FIRST_TWO]).unwrap());
    let op =
        |view: &View| Arc::new(Prepared::of(&kind, std::slice::from_ref(view), None, 1).unwrap());
    recorder.push_prepared(op(&short), std::slice::from_ref(&x), std::slice::from_ref(&y));
    let error = recorder.graph().unwrap_err().to_string();
    assert!(error.ends_with("input 0 of node 0 is not what its kernel was made for"), "{error}");
    let mut recorder = Recorder::default();
    recorder.number(&x, Argument);
    recorder.number(&y, Slot);
    recorder.push_prepared(op(&x), &[x.clone(), x.clone()], &[y]);
    let error = recorder.graph().unwrap_err().to_string();
    assert!(error.ends_with("has 2 inputs or outputs, and its kernel takes 1"), "{error}");
}

#[test]
fn links_that_do_not_hold_together() {
    let mut recorder = Recorder::default();
    let [x, y] = [Argument, Slot].map(|role| recorder.tensor(role, 4));
    let neg: Kind = Unary { f: UnaryFn::Neg }.into();
    let links = [0, 1].map(|v| Link { kind: neg.clone(), operands: smallvec![v] });
    let right = Region::of_links(1, links.into(), vec![1]);
    let check = |region: Region, inputs: &[View]| {
        let kind = right.clone().into();
        let mut op = Prepared::of(&kind, std::slice::from_ref(&x), None, 1).unwrap();
        op.change(|call| call.kind = region.into());
        op.change(|call| call.inputs = inputs.iter().map(|view| view.meta.clone()).collect());
        let mut recorder = Recorder::default();
        for view in inputs {
            recorder.number(view, Argument);
        }
        recorder.number(&y, Slot);
        recorder.push_prepared(Arc::new(op), inputs, std::slice::from_ref(&y));
        recorder.graph().map(drop).map_err(|error| error.to_string())
    };
    let with = |change: &dyn Fn(&mut Region)| {
        let mut region = right.clone();
        change(&mut region);
        region
    };
    let one = std::slice::from_ref(&x);
    assert_eq!(check(right.clone(), one), Ok(()));
    let faults: [(Region, &[View], &str); 5] = [
        (with(&|c| c.links[1].operands[0] = 2), one, "link 1 of node 0 does not find"),
        (with(&|c| c.links[0].operands[0] = 1), one, "link 0 of node 0 does not find"),
        (with(&|c| c.inputs = 2), one, "link 0 of node 0 does not find"),
        (with(&|c| c.outputs = vec![2]), one, "output 0 of node 0 is not what"),
        (with(&|c| c.outputs = vec![1, 0]), one, "node 0 has 1 inputs or outputs"),
    ];
    for (region, inputs, what) in faults {
        let error = check(region, inputs).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
}

const FIRST_TWO: SliceRange = SliceRange { start: 0, count: 2, step: 1 };

#[test]
fn a_temporary_block_is_written_before_it_is_read() {
    let mut recorder = Recorder::default();
    let (a, y) = (recorder.tensor(Temporary, 4), recorder.tensor(Slot, 4));
    recorder.negate(&a, &y);
    let error = recorder.graph().unwrap_err().to_string();
    assert!(error.starts_with("neg: ") && error.contains("which nothing has written"), "{error}");
}

use crate::graph::Graph;
use crate::graph::Role::*;
use crate::graph::testing::Recorder;
use crate::ops::View;
use crate::view::SliceRange;

/// The offsets of blocks, in units of 64 bytes.
fn lines(graph: &Graph, blocks: &[u32]) -> Vec<usize> {
    blocks.iter().map(|&block| graph.offset(block).unwrap() / 64).collect()
}

#[test]
fn a_chain_of_elementwise_operations_needs_one_buffer() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
    let parts: Vec<View> = (0..4).map(|_| recorder.tensor(Temporary, 16)).collect();
    recorder.negate(&x, &parts[0]);
    (0..3).for_each(|k| recorder.negate(&parts[k], &parts[k + 1]));
    recorder.negate(&parts[3], &y);
    let graph = recorder.graph().unwrap();
    assert_eq!((graph.arena_bytes(), graph.lower_bound_bytes()), (64, 64));
    assert_eq!(lines(&graph, &[2, 3, 4, 5]), [0; 4]);
}

#[test]
fn an_input_that_is_needed_again_keeps_its_memory() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
    let (a, b) = (recorder.tensor(Temporary, 16), recorder.tensor(Temporary, 16));
    recorder.negate(&x, &a);
    recorder.negate(&a, &b);
    recorder.add(&a, &b, &y);
    assert_eq!(recorder.graph().unwrap().arena_bytes(), 128);
}

#[test]
fn the_second_input_is_taken_where_the_first_one_is_not_temporary() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
    let (a, b) = (recorder.tensor(Temporary, 16), recorder.tensor(Temporary, 16));
    recorder.negate(&x, &a);
    recorder.add(&x, &a, &b);
    recorder.negate(&b, &y);
    assert_eq!(recorder.graph().unwrap().arena_bytes(), 64);
}

#[test]
fn parts_and_both_inputs_of_one_block_do_not_share() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 8));
    let (a, b) = (recorder.tensor(Temporary, 16), recorder.tensor(Temporary, 16));
    let c = recorder.tensor(Temporary, 8);
    recorder.negate(&x, &a);
    recorder.add(&a, &a, &b);
    let half = b.slice(&[SliceRange { start: 0, count: 8, step: 1 }]).unwrap();
    recorder.negate(&half, &c);
    recorder.negate(&c, &y);
    let graph = recorder.graph().unwrap();
    assert_eq!(graph.arena_bytes(), 128);
    let lines = lines(&graph, &[2, 3, 4]);
    assert!(lines[0] != lines[1] && lines[1] != lines[2]);
}

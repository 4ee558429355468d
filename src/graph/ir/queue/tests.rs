use std::sync::Arc;

use super::*;
use crate::device::cpu;
use crate::dtype::DType;
use crate::graph::Role::*;
use crate::graph::testing::Recorder;
use crate::ops::Meta;

fn place(strides: &[isize], shape: &[usize], offset: usize) -> Place {
    let meta = Meta { strides: strides.into(), ..Meta::new(DType::Float32, shape) };
    Place { block: 0, meta: meta.into(), offset }
}

#[test]
fn a_place_is_whole_where_it_has_each_element_of_its_block_once() {
    assert!(place(&[4, 1], &[2, 4], 0).is_whole(32));
    assert!(place(&[1, 2], &[2, 4], 0).is_whole(32), "in whatever order");
    assert!(!place(&[4, 1], &[1, 4], 0).is_whole(32), "a part");
    assert!(!place(&[7], &[2], 0).is_whole(32), "the ends alone");
    assert!(!place(&[7, 0], &[2, 4], 0).is_whole(32), "the ends, each four times");
    assert!(!place(&[1], &[8], 1).is_whole(32), "beside it");
}

#[test]
fn a_block_that_goes_by_a_number_is_held_so_that_no_other_gets_its_address() {
    let mut queue = Queue::default();
    let number = queue.number(&Block::new(cpu::device(), 16));
    let block = Block::new(cpu::device(), 16);
    let known = Arc::downgrade(&block);
    queue.rename(block, number);
    let block = known.upgrade().expect("the queue holds it");
    assert_eq!(queue.number(&block), number);
}

#[test]
fn who_asks_for_more_room_than_there_is_learns_what_a_queue_that_grows_takes() {
    let mut recorder = Recorder::default();
    let [x, y, z] = [Argument, Slot, Slot].map(|role| recorder.tensor(role, 4));
    recorder.negate(&x, &y);
    recorder.add(&x, &y, &z);
    let mut queue = recorder.queue;
    let bytes = 2 * size_of::<Op>();
    assert_eq!(queue.make_room(usize::MAX), Err(2 * bytes));
    assert_eq!(queue.make_room(8), Ok(()));
}

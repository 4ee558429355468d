use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::graph::Role::*;
use crate::graph::testing::{self, Recorder};
use crate::graph::{Kernels, Queue};
use crate::kernels::{Prepared, kernel};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Effects, View};

/// Memory aligned to 64 bytes.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([f32; 16]);

fn start(memory: &mut [Line]) -> *mut u8 {
    memory.as_mut_ptr().cast()
}

#[test]
fn a_run_follows_what_is_bound() {
    let mut recorder = Recorder::default();
    let (x, sum) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
    let half = recorder.tensor(Temporary, 4);
    recorder.negate(&x, &half);
    recorder.add(&x, &half, &sum);
    recorder.add(&sum, &x, &sum);
    let graph = recorder.graph().unwrap();
    assert_eq!((graph.arena_bytes(), graph.offset(2)), (64, Some(0)));
    let mut arena = [Line([f32::NAN; 16]); 1];
    let mut bound = Bound::new(&graph, start(&mut arena));
    for value in [1.0, 2.0] {
        let (mut from, mut to) = ([Line([value; 16])], [Line([f32::NAN; 16])]);
        bound.bind(0, start(&mut from));
        bound.bind(1, start(&mut to));
        // SAFETY: everything is bound.
        unsafe { bound.run() }.unwrap();
        assert_eq!(to[0].0[..4], [value; 4]);
    }
}

#[test]
fn what_was_written_and_read_gives_the_same_bits() {
    let mut recorder = Recorder::default();
    let (x, sum) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
    let half = recorder.tensor(Temporary, 16);
    let [from, to] = [&x, &half].map(std::slice::from_ref);
    recorder.push(Unary { f: UnaryFn::Tanh }, from, to);
    recorder.add(&x, &half, &sum);
    let bytes = recorder.queue.to_bytes(&recorder.roles).unwrap();
    let (queue, roles) = Queue::from_bytes(crate::kernels::host(), &bytes).unwrap();
    let kernels = testing::kernels(&queue, &Kernels::default());
    let read = Graph::new(queue, roles, &kernels).unwrap();
    let results = [recorder.graph().unwrap(), read].map(|graph| {
        let mut memory = [[Line([f32::NAN; 16])]; 3];
        memory[0][0].0 = std::array::from_fn(|i| 0.37 * i as f32 - 2.0);
        let mut bound = Bound::new(&graph, start(&mut memory[2]));
        (0..2).for_each(|b| bound.bind(b, start(&mut memory[b as usize])));
        // SAFETY: everything is bound.
        unsafe { bound.run() }.unwrap();
        memory[1][0].0.map(f32::to_bits)
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn a_failure_names_its_node() {
    for fails in ["error", "panic"] {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
        recorder.negate(&x, &y);
        let mut op =
            Prepared::of(&crate::ops::copy::Copy.into(), std::slice::from_ref(&x), None, 1)
                .unwrap();
        op.kernel = kernel(0, move |_| match fails {
            "panic" => panic!("a bug"),
            _ => Err(Error::value("", 1, "2")),
        });
        recorder.push_prepared(Arc::new(op), &[x], &[y]);
        let graph = recorder.graph().unwrap();
        let mut bound = Bound::new(&graph, std::ptr::dangling_mut());
        let mut memory = [[Line([0.0; 16])]; 2];
        (0..2).for_each(|b| bound.bind(b, start(&mut memory[b as usize])));
        // SAFETY: everything is bound.
        let stopped = unsafe { bound.run() }.unwrap_err();
        assert_eq!((stopped.node, stopped.end), (1, 2));
        assert!(stopped.error.to_string().starts_with("copy: "), "{}", stopped.error);
        // SAFETY: as above.
        unsafe { bound.run_from(0, 1) }.unwrap();
    }
}

#[test]
fn scratch_lies_in_the_arena() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 20), recorder.tensor(Slot, 20));
    let half = recorder.tensor(Temporary, 20);
    recorder.negate(&x, &half);
    let mut op =
        Prepared::of(&crate::ops::copy::Copy.into(), std::slice::from_ref(&half), None, 1).unwrap();
    op.kernel = kernel(100, |io| {
        let scratch = io.scratch::<u8>();
        assert!(scratch.addr().is_multiple_of(64));
        // SAFETY: 100 bytes were asked for, and the output has 20 elements.
        unsafe {
            scratch.write_bytes(7, 100);
            io.output::<f32>(0).copy_from(io.input(0), 20);
        }
        Ok(())
    });
    recorder.push_prepared(Arc::new(op), &[half], &[y]);
    let graph = recorder.graph().unwrap();
    assert_eq!((graph.peak_bytes(), graph.arena_bytes()), (256, 256));
    assert!(graph.scratch_offset(0).is_none() && graph.scratch_offset(1).is_some());
    let mut memory = [Line([f32::NAN; 16]); 8];
    let mut bound = Bound::new(&graph, start(&mut memory[4..]));
    let (mut from, mut to) = ([Line([2.0; 16]); 2], [Line([f32::NAN; 16]); 2]);
    bound.bind(0, start(&mut from));
    bound.bind(1, start(&mut to));
    // SAFETY: everything is bound.
    unsafe { bound.run() }.unwrap();
    assert_eq!((to[0].0, to[1].0[..4].to_vec()), ([-2.0; 16], vec![-2.0; 4]));
}

/// Independent nodes, some of which fail: with an error (`fails[0]`) or a panic (`fails[1]`).
fn failing(fails: [&'static [usize]; 2], workers: usize) -> Graph {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Argument, 4);
    for n in 0..200 {
        let y = recorder.tensor(Slot, 4);
        let given = std::slice::from_ref(&x);
        let mut op = Prepared::of(&crate::ops::copy::Copy.into(), given, None, 1).unwrap();
        op.kernel = kernel(0, move |_| match n {
            _ if fails[0].contains(&n) => Err(Error::value("", n, "less")),
            _ if fails[1].contains(&n) => panic!("a bug in {n}"),
            _ => Ok(()),
        });
        recorder.push_prepared(Arc::new(op), given, &[y]);
    }
    recorder.parallel(workers).unwrap()
}

#[test]
fn of_several_failures_the_first_in_recorded_order_is_answered() {
    for (fails, first, says) in [
        ([&[150, 60, 199][..], &[90][..]], 60, "copy: got 60"),
        ([&[150, 199], &[90, 20, 180]], 20, "a bug in 20"),
        ([&[0], &[1]], 0, "copy: got 0"),
    ] {
        let graph = failing(fails, 2);
        let bound = Bound::new(&graph, std::ptr::dangling_mut());
        for _ in 0..50 {
            // SAFETY: the kernels touch no memory.
            let stopped = unsafe { bound.run() }.unwrap_err();
            assert_eq!((stopped.node, stopped.end), (first, 200));
            let said = stopped.error.to_string();
            assert!(said.contains(says), "{said}");
            // SAFETY: as above; a partial segment runs on one thread.
            unsafe { bound.run_from(61, 80) }.unwrap();
        }
    }
}

#[test]
fn segments_and_what_lies_between_them_run_in_order() {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Argument, 4);
    let (mut last, hosts) = (x, Arc::new(AtomicUsize::new(0)));
    for n in 0..30 {
        let to = recorder.tensor(if n == 29 { Slot } else { Temporary }, 4);
        if n % 10 == 9 {
            let mut op = counting(&last, &hosts);
            op.change(|call| call.effects = Effects { host: true, ..Effects::updates(&[(0, 0)]) });
            recorder.push_prepared(Arc::new(op), std::slice::from_ref(&last), &[]);
        }
        recorder.negate(&last, &to);
        last = to;
    }
    let graph = recorder.parallel(3).unwrap();
    let segments = &graph.schedule().unwrap().segments;
    assert_eq!(segments[..], [0..9, 10..20, 21..31]);
    let mut arena = vec![Line([f32::NAN; 16]); graph.arena_bytes() / 64];
    let mut bound = Bound::new(&graph, start(&mut arena));
    let (mut from, mut to) = ([Line([3.0; 16])], [Line([f32::NAN; 16])]);
    bound.bind(0, start(&mut from));
    (1..31).filter(|&b| graph.offset(b).is_none()).for_each(|b| bound.bind(b, start(&mut to)));
    // SAFETY: everything is bound.
    unsafe { bound.run() }.unwrap();
    assert_eq!((to[0].0[..4].to_vec(), hosts.load(Relaxed)), (vec![3.0; 4], 3));
}

/// An operation that only counts its runs.
fn counting(x: &View, runs: &Arc<AtomicUsize>) -> Prepared {
    let given = std::slice::from_ref(x);
    let mut op = Prepared::of(&crate::ops::copy::Copy.into(), given, None, 1).unwrap();
    let runs = runs.clone();
    op.kernel = kernel(0, move |_| {
        runs.fetch_add(1, Relaxed);
        Ok(())
    });
    op
}

#[test]
fn nothing_runs_behind_a_failure_of_a_task_that_others_follow_one_by_one() {
    let mut recorder = Recorder::default();
    let mut last = recorder.tensor(Argument, 4);
    let runs = Arc::new(AtomicUsize::new(0));
    for n in 0..10 {
        let to = recorder.tensor(if n == 9 { Slot } else { Temporary }, 4);
        let mut op = counting(&last, &runs);
        if n == 4 {
            op.kernel = kernel(0, |_| Err(Error::value("", 1, "2")));
        }
        recorder.push_prepared(
            Arc::new(op),
            std::slice::from_ref(&last),
            std::slice::from_ref(&to),
        );
        last = to;
    }
    let graph = recorder.parallel(2).unwrap();
    assert_eq!(graph.schedule().unwrap().segments[..], *std::slice::from_ref(&(0..10)));
    let bound = Bound::new(&graph, std::ptr::dangling_mut());
    // SAFETY: the kernels touch no memory.
    let stopped = unsafe { bound.run() }.unwrap_err();
    assert_eq!((stopped.node, runs.load(Relaxed)), (4, 4));
}

use super::*;
use crate::graph::Role::*;
use crate::graph::testing::Recorder;
use crate::ops::kernel;

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
fn a_failure_names_its_node() {
    for fails in ["error", "panic"] {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
        recorder.negate(&x, &y);
        let mut op =
            Prepared::new(&crate::ops::copy::Copy.into(), std::slice::from_ref(&x), None, 1)
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
        assert_eq!(stopped.node, 1);
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
        Prepared::new(&crate::ops::copy::Copy.into(), std::slice::from_ref(&half), None, 1)
            .unwrap();
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

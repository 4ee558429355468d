//! Runs that are undone save each block no longer than a later operation needs it.

use std::cell::{Cell, RefCell};

use super::*;
use crate::error::Error;
use crate::graph::{Parallel, Stopped};

const BYTES: usize = 400;

/// `a -= x`, `b -= a + x`, `c -= x`, and the operations as recorded: `a` is still read after it is
/// written, when `b` is written, too.
struct World {
    engine: Engine,
    x: View,
    parameters: [View; 3],
    graph: Executable,
}

impl World {
    fn new(options: &Options) -> Self {
        let engine = engine(1 << 22);
        let new = |value: f32| tensor(&engine, &[BYTES / 4], &[value; BYTES / 4]);
        let (x, parameters) = (new(1.0), [10.0, 20.0, 30.0].map(new));
        let rate = tensor(&engine, &[1], &[1f32]);
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            let [a, b, c] = &parameters;
            run(&engine, sgd(), &[a, &x, &rate]).unwrap();
            let sum = run(&engine, binary("add"), &[a, &x]).unwrap();
            run(&engine, sgd(), &[b, &sum[0], &rate]).unwrap();
            run(&engine, sgd(), &[c, &x, &rate]).unwrap();
            run(&engine, binary("mul"), &[&x, &x]).unwrap().to_vec()
        });
        let graph = Executable::new(&engine, &recording, options).unwrap();
        World { engine, x, parameters, graph }
    }

    /// The first element of each parameter.
    fn state(&self) -> [f32; 3] {
        self.parameters.each_ref().map(|view| {
            let all = values::<f32>(view);
            assert!(all.iter().all(|value| *value == all[0]));
            all[0]
        })
    }

    /// Runs and undoes; `stops` says before which stretches the run fails.
    fn undone(&self, stops: impl Fn(usize) -> bool) -> (Result<()>, Vec<[f32; 3]>) {
        let (arguments, seen) = (std::slice::from_ref(&self.x), RefCell::new(Vec::new()));
        let updates = self.graph.updates(arguments);
        let mut turn = self.engine.run().unwrap();
        let done = self.graph.aside(arguments, |bound, _| {
            let step = |nodes: std::ops::Range<usize>| {
                let error = Error::Internal { op: "test".into(), message: "stopped".into() };
                if stops(nodes.start) {
                    return Err(Stopped { node: nodes.start, end: nodes.end, error });
                }
                self.graph.replay(&self.engine, &mut turn, bound, nodes)
            };
            self.graph.undone(&updates, step, |_| seen.borrow_mut().push(self.state()))
        });
        (done, seen.into_inner())
    }
}

#[test]
fn blocks_are_restored_one_after_another() {
    let world = World::new(&Options::AS_RECORDED);
    let (done, seen) = world.undone(|_| false);
    done.unwrap();
    // `a` is restored behind its last reader; `b` and `c` at once.
    assert_eq!(seen, [[9.0, 20.0, 30.0], [10.0, 10.0, 30.0], [10.0, 20.0, 29.0]]);
    assert_eq!(world.state(), [10.0, 20.0, 30.0]);
    assert_eq!(world.graph.undo_bytes(), BYTES);
}

#[test]
fn blocks_that_are_needed_at_the_same_time_are_saved_together() {
    let engine = engine(1 << 22);
    let new = |value: f32| tensor(&engine, &[BYTES / 4], &[value; BYTES / 4]);
    let [x, a, b] = [1.0, 10.0, 20.0].map(new);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        run_into(&engine, binary("add"), &[&a, &x], &[&a]).unwrap();
        run_into(&engine, binary("add"), &[&b, &x], &[&b]).unwrap();
        run_into(&engine, binary("add"), &[&a, &b], &[&a]).unwrap();
        Vec::new()
    });
    let graph = Executable::new(&engine, &recording, &Options::AS_RECORDED).unwrap();
    assert_eq!(graph.undo_bytes(), 2 * BYTES);
    let compared =
        graph.compare(&graph, &engine, engine.run().unwrap(), std::slice::from_ref(&x)).unwrap();
    assert_eq!(compared.difference, None);
    assert_eq!((values::<f32>(&a)[0], values::<f32>(&b)[0]), (32.0, 21.0));
}

#[test]
fn a_run_that_fails_is_undone() {
    let starts = RefCell::new(Vec::new());
    let world = World::new(&Options::AS_RECORDED);
    let note = |start| {
        starts.borrow_mut().push(start);
        false
    };
    world.undone(note).0.unwrap();
    assert!(starts.borrow().len() >= 4);
    for &stop in starts.borrow().iter() {
        let (done, _) = world.undone(|start| start == stop);
        assert!(matches!(done, Err(Error::Internal { .. })), "{done:?}");
        assert_eq!(world.state(), [10.0, 20.0, 30.0]);
    }
}

#[test]
fn what_can_be_restored_is_restored_and_the_first_error_counts() {
    let parallel = Some(Parallel { least_gain: 0, ..Parallel::new(2) });
    let world = World::new(&Options { parallel, ..Options::AS_RECORDED });
    REFUSED.set(1);
    let (done, _) = world.undone(|_| false);
    assert!(matches!(done, Err(Error::Device { .. })), "{done:?}");
    let changed = world.state().into_iter().zip([10.0, 20.0, 30.0]).filter(|(a, b)| a != b);
    assert_eq!(changed.count(), 1);

    let world = World::new(&Options::AS_RECORDED);
    let runs = Cell::new(0);
    let (done, _) = world.undone(|_| {
        runs.set(runs.get() + 1);
        REFUSED.set(usize::from(runs.get() == 2));
        runs.get() == 2
    });
    assert!(matches!(done, Err(Error::Internal { .. })), "{done:?}");
}

#[test]
fn operations_that_run_at_the_same_time_are_undone_together() {
    let parallel = Some(Parallel { least_gain: 0, ..Parallel::new(2) });
    let world = World::new(&Options { parallel, ..Options::AS_RECORDED });
    let runs = Cell::new(0);
    let (done, seen) = world.undone(|_| {
        runs.set(runs.get() + 1);
        false
    });
    done.unwrap();
    assert_eq!((runs.get(), seen.len()), (1, 3));
    assert_eq!(seen[0], [9.0, 10.0, 29.0]);
    assert_eq!((world.state(), world.graph.undo_bytes()), ([10.0, 20.0, 30.0], 3 * BYTES));
}

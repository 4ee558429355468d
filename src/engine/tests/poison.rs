//! On request, the arena is filled with NaNs before each run, so that no run can depend on its old
//! contents.

use super::*;
use crate::kernels::{Prepared, kernel};
use crate::ops::copy::Copy;

/// Records an operation that should produce a tensor like this, but does nothing.
fn never_written(engine: &Engine, like: &View) -> View {
    let inputs = std::slice::from_ref(like);
    let mut op = Prepared::of(&Copy.into(), inputs, None, 1).unwrap();
    op.kernel = kernel(0, |_| Ok(()));
    let made = record::fresh(engine.device(), &like.meta);
    let outputs = std::slice::from_ref(&made);
    record::with(|r| {
        r.recording.unwritten(inputs, outputs);
        r.recording.push(op.call(), inputs, outputs, r.origin());
    });
    engine.turn().0.insert(op);
    made
}

/// Graphs, as recorded, of the sum of `x` and a tensor that is never written; and `x`.
fn sums<const COUNT: usize>(engine: &Engine) -> ([Executable; COUNT], View) {
    let x = tensor(engine, &[2], &[1f32, 2.0]);
    let recording = recorded(engine, std::slice::from_ref(&x), || {
        let made = never_written(engine, &x);
        run(engine, binary("add"), &[&made, &x]).unwrap().to_vec()
    });
    let graph = || Executable::new(engine, &recording, &Options::AS_RECORDED).unwrap();
    ([(); COUNT].map(|()| graph()), x)
}

fn is_poisoned(view: &View) -> bool {
    values::<f32>(view).iter().all(|value| value.is_nan())
}

#[test]
fn a_run_finds_no_numbers_in_the_arena() {
    let engine = engine(1 << 20);
    let ([graph], x) = sums(&engine);
    assert!(is_poisoned(&replay(&engine, &graph, &[x]).unwrap()[0]));
}

#[test]
fn neither_of_two_runs_that_are_compared_finds_numbers_in_the_arena() {
    let engine = engine(1 << 20);
    let ([graph, recorded], x) = sums(&engine);
    let compared = graph.compare(&recorded, &engine, engine.run().unwrap(), &[x]).unwrap();
    assert_eq!(compared.difference, None);
    assert!(is_poisoned(&compared.results[0]));
}

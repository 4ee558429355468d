//! Runs that check every result, and how they report the first one that is not finite.

use serde_json::json;

use super::*;
use crate::error::{Error, NotFinite};

/// `-x`, then its logarithm added to itself in place, then an update that nothing may reach.
fn made(engine: &Engine, x: &View, p: &View) -> Executable {
    let lr = tensor(engine, &[1], &[1f32]);
    let recording = recorded(engine, std::slice::from_ref(x), || {
        let turned = run(engine, kind(json!({"op": "unary", "f": "neg"})), &[x]).unwrap();
        let y = run(engine, kind(json!({"op": "unary", "f": "log"})), &[&turned[0]]).unwrap();
        let add = kind(json!({"op": "binary", "f": "add"}));
        run_into(engine, add, &[&y[0], x], &[&y[0]]).unwrap();
        run(engine, sgd(), &[p, &y[0], &lr]).unwrap();
        y.to_vec()
    });
    let options = Options { check_finite: true, ..Options::default() };
    Executable::new(engine, &recording, &options).unwrap()
}

fn report(error: Error) -> NotFinite {
    match error {
        Error::NotFinite { report, .. } => *report,
        error => panic!("{error}"),
    }
}

#[test]
fn a_run_stops_at_the_first_result_that_is_not_finite() {
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[2], &[5f32, 6.0]);
    let x = tensor(&engine, &[2], &[-1f32, -2.0]);
    let graph = made(&engine, &x, &p);
    replay(&engine, &graph, &[x]).unwrap();
    let after = values::<f32>(&p);
    assert!(after[0] == 6.0 && after[1] > 7.0, "{after:?}");

    let bad = tensor(&engine, &[2], &[-1f32, 3.0]);
    let found = report(replay(&engine, &graph, &[bad]).unwrap_err());
    assert_eq!((found.operation, found.inputs.len(), found.outputs.len()), ("log", 1, 1));
    assert_eq!((found.inputs[0].nans, found.outputs[0].nans), (0, 1));
    assert_eq!(found.line.as_deref(), Some("net.py:7"));
    assert_eq!(values::<f32>(&p), after, "what comes later has not run");
}

#[test]
fn what_an_operation_overwrites_is_told_as_it_was() {
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[2], &[5f32, 6.0]);
    let x = tensor(&engine, &[2], &[-1f32, -2.0]);
    let graph = made(&engine, &x, &p);
    let bad = tensor(&engine, &[2], &[-1f32, f32::NEG_INFINITY]);
    let found = report(replay(&engine, &graph, &[bad]).unwrap_err());
    assert_eq!(found.operation, "neg", "its argument was no result");
    assert_eq!((found.inputs[0].infinities, found.outputs[0].infinities), (1, 1));

    let large = tensor(&engine, &[2], &[f32::MAX, 1.0]);
    let recording = recorded(&engine, std::slice::from_ref(&large), || {
        let y = run(&engine, kind(json!({"op": "copy"})), &[&large]).unwrap();
        let add = kind(json!({"op": "binary", "f": "add"}));
        run_into(&engine, add, &[&y[0], &large], &[&y[0]]).unwrap();
        y.to_vec()
    });
    let options = Options { check_finite: true, ..Options::default() };
    let graph = Executable::new(&engine, &recording, &options).unwrap();
    let found = report(replay(&engine, &graph, &[large]).unwrap_err());
    let infinities: Vec<_> = found.inputs.iter().map(|input| input.infinities).collect();
    assert_eq!((found.operation, infinities), ("add", vec![0, 0]));
    assert_eq!(found.outputs[0].infinities, 1);
}

#[test]
fn eager_execution_looks_at_results_where_it_is_asked_to() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[-1f32, 2.0]);
    let log = || run(&engine, kind(json!({"op": "unary", "f": "log"})), &[&x]);
    assert!(log().is_ok());
    let before = check_finite(true);
    let found = log();
    assert!(check_finite(before) && !before);
    assert_eq!(report(found.unwrap_err()).outputs[0].nans, 1);
    assert!(log().is_ok());
}

#[test]
fn what_an_update_has_spoilt_is_told_as_written() {
    let engine = engine(1 << 20);
    let (p, lr) = (tensor(&engine, &[2], &[f32::MAX, 1.0]), tensor(&engine, &[1], &[1f32]));
    let x = tensor(&engine, &[2], &[-f32::MAX, 1.0]);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        run(&engine, sgd(), &[&p, &x, &lr]).unwrap();
        run(&engine, binary("add"), &[&p, &x]).unwrap().to_vec()
    });
    let options = Options { check_finite: true, ..Options::default() };
    let graph = Executable::new(&engine, &recording, &options).unwrap();
    let found = report(replay(&engine, &graph, &[x]).unwrap_err());
    assert_eq!((found.inputs[0].infinities, found.outputs[0].infinities), (0, 1));
    assert_eq!(graph.written(), [Arc::as_ptr(&p.block).addr()]);
}

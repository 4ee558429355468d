//! State that is made while recording.

use serde_json::json;

use super::*;
use crate::error::Error;

/// State made in a recording: random numbers, doubled, in two blocks.
fn state(engine: &Engine) -> [View; 2] {
    let blank = || View::new(engine.device(), float([4]));
    let (first, second) = (blank(), blank());
    record::enter_state();
    let dist = json!({"uniform": {"low": 1, "high": 2}});
    let draw = kind(json!({"op": "random", "dist": dist, "shape": [4], "dtype": "float32"}));
    let generator = engine.rng().state(&engine.turn(), Stream::Init).unwrap().clone();
    run_into(engine, draw, &[&generator], &[&first]).unwrap();
    let doubled = run(engine, binary("add"), &[&first, &first]).unwrap();
    run_into(engine, crate::ops::copy::Copy, &[&doubled[0]], &[&second]).unwrap();
    record::leave_state();
    [first, second]
}

/// The same in a recording of nothing else.
fn pending(engine: &Engine) -> [View; 2] {
    let mut made = None;
    recorded(engine, &[], || {
        made = Some(state(engine));
        Vec::new()
    });
    made.unwrap()
}

#[test]
fn state_made_while_recording_waits_until_it_is_needed() {
    let (eager, engine) = (engine(1 << 20), engine(1 << 20));
    let want = state(&eager).map(|view| values::<f32>(&view));
    assert!(want[0].iter().all(|v| (1.0..2.0).contains(v)));
    let before = engine.rng().state(&engine.turn(), Stream::Init).unwrap().clone();
    let [first, second] = pending(&engine);
    assert!(!first.block.is_allocated() && !second.block.is_allocated());
    assert_eq!(values::<i64>(&before)[1], 1, "the generator has moved on");
    assert_eq!([values::<f32>(&first), values::<f32>(&second)], want);
    let again = pending(&engine);
    drop(second);
    assert_ne!(values::<f32>(&again[1]), want[1]);
}

#[test]
fn what_is_overwritten_needs_no_initialiser() {
    let engine = engine(1 << 20);
    let [first, second] = pending(&engine);
    let given = tensor(&engine, &[4], &[5f32; 4]);
    run_into(&engine, crate::ops::copy::Copy, &[&given], &[&first]).unwrap();
    let doubled = values::<f32>(&second);
    assert_eq!(values::<f32>(&first), [5.0; 4]);
    assert!(doubled.iter().all(|v| (2.0..4.0).contains(v)), "of the drawn numbers: {doubled:?}");
}

#[test]
fn state_that_cannot_be_made_is_made_later() {
    let engine = engine(1 << 10);
    let [first, second] = pending(&engine);
    let hog = tensor(&engine, &[128], &[0f32; 128]);
    let left = engine.device().pool().backend().available(0);
    let hogs: Vec<View> = (0..left / 64).map(|_| tensor(&engine, &[1], &[0f32])).collect();
    assert!(matches!(second.address(false), Err(Error::OutOfMemory { .. })));
    assert!(matches!(first.address(false), Err(Error::OutOfMemory { .. })));
    drop((hog, hogs));
    let (first, second) = (values::<f32>(&first), values::<f32>(&second));
    assert!(first.iter().zip(&second).all(|(a, b)| *a >= 1.0 && 2.0 * a == *b));
}

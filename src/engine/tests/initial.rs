//! State created while recording.

use serde_json::json;

use super::*;
use crate::error::Error;
use crate::ops::Real;
use crate::ops::copy::Copy;
use crate::ops::random::Dropout;

/// Writes numbers from 1 to 2, drawn from the generator of initial values.
fn draw_into(engine: &Engine, to: &View) {
    let dist = json!({"uniform": {"low": 1, "high": 2}});
    let draw = kind(json!({"op": "random", "dist": dist, "shape": [4], "dtype": "float32"}));
    let generator = engine.rng().state(&engine.turn(), Stream::Init).unwrap().clone();
    run_into(engine, draw, &[&generator], &[to]).unwrap();
}

fn blank(engine: &Engine) -> View {
    View::new(engine.device(), float([4]))
}

/// A new tensor of such numbers.
pub(super) fn drawn(engine: &Engine) -> View {
    let made = blank(engine);
    draw_into(engine, &made);
    made
}

pub(super) fn is_drawn(view: &View) -> bool {
    values::<f32>(view).iter().all(|v| (1.0..2.0).contains(v))
}

/// Two blocks of state: random numbers, and the same numbers doubled.
fn state(engine: &Engine) -> [View; 2] {
    let (first, second) = (drawn(engine), blank(engine));
    let doubled = run(engine, binary("add"), &[&first, &first]).unwrap();
    run_into(engine, Copy, &[&doubled[0]], &[&second]).unwrap();
    [first, second]
}

/// Creates state in an otherwise empty recording.
pub(super) fn as_state<T>(engine: &Engine, make: impl FnOnce() -> T) -> T {
    let mut made = None;
    recorded(engine, &[], || {
        record::enter_state();
        made = Some(make());
        record::leave_state();
        Vec::new()
    });
    made.unwrap()
}

fn pending(engine: &Engine) -> [View; 2] {
    as_state(engine, || state(engine))
}

#[test]
fn state_made_while_recording_waits_until_it_is_needed() {
    let (eager, engine) = (engine(1 << 20), engine(1 << 20));
    let made = state(&eager);
    assert!(is_drawn(&made[0]));
    let want = made.map(|view| values::<f32>(&view));
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
    run_into(&engine, Copy, &[&given], &[&first]).unwrap();
    assert!(first.block.is_allocated() && !second.block.is_allocated(), "nothing else was made");
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

#[test]
fn state_counts_as_written_where_it_waits() {
    let engine = engine(1 << 20);
    let made = blank(&engine);
    as_state(&engine, || {
        let before = made.block.version();
        draw_into(&engine, &made);
        assert!(made.block.version() > before && !made.block.is_allocated());
    });
}

#[test]
fn state_does_not_count_as_written_again_when_it_is_made() {
    let engine = engine(1 << 20);
    let made = pending(&engine);
    let versions = || made.each_ref().map(|view| view.block.version());
    let before = versions();
    assert!(is_drawn(&made[0]) && made[1].block.is_allocated());
    assert_eq!(versions(), before);
}

#[test]
fn state_is_there_where_its_scope_ends_or_it_is_read_before() {
    let engine = engine(1 << 20);
    recorded(&engine, &[], || {
        record::enter_state();
        let early = drawn(&engine);
        record::check_read("item", &early).unwrap();
        assert!(is_drawn(&early));
        let late = drawn(&engine);
        record::leave_state();
        assert!(is_drawn(&late), "while the recording goes on");
        Vec::new()
    });
}

#[test]
fn state_is_there_where_its_recording_ends_within_the_scope() {
    let engine = engine(1 << 20);
    let mut made = None;
    recorded(&engine, &[], || {
        record::enter_state();
        made = Some(drawn(&engine));
        Vec::new()
    });
    assert_eq!(record::mode(), record::Mode::Eager);
    assert!(is_drawn(&made.unwrap()));
}

#[test]
fn state_that_is_made_of_other_tensors_is_made_of_what_they_are_then() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[4], &[1f32; 4]);
    let [first, sum, twice] = as_state(&engine, || {
        let first = drawn(&engine);
        let sum = run(&engine, binary("add"), &[&first, &x]).unwrap()[0].clone();
        let twice = run(&engine, binary("add"), &[&x, &x]).unwrap()[0].clone();
        [first, sum, twice]
    });
    run_into(&engine, binary("add"), &[&x, &x], &[&x]).unwrap();
    let want: Vec<f32> = values::<f32>(&first).iter().map(|v| v + 1.0).collect();
    assert!(is_drawn(&first));
    assert_eq!((values::<f32>(&sum), values::<f32>(&twice)), (want, vec![2.0; 4]));
}

#[test]
fn state_goes_at_once_into_memory_that_is_there() {
    let engine = engine(1 << 20);
    let there = tensor(&engine, &[4], &[5f32; 4]);
    let bytes = tensor(&engine, &[4], &[7u8; 4]);
    let mask = View { meta: Meta::new(DType::Bool, [4]).into(), ..bytes };
    let nothing = Dropout { ratio: Real(0.0), offset: 0 };
    let (first, same) = as_state(&engine, || {
        draw_into(&engine, &there);
        assert!(is_drawn(&there));
        let (first, same) = (drawn(&engine), blank(&engine));
        let generator = engine.rng().state(&engine.turn(), Stream::Init).unwrap().clone();
        run_into(&engine, nothing, &[&first, &generator], &[&same, &mask]).unwrap();
        assert_eq!(values::<u8>(&mask), [1; 4], "one of two outputs");
        (first, same)
    });
    assert!(is_drawn(&first));
    assert_eq!(values::<f32>(&same), values::<f32>(&first));
}

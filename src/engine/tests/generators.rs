//! Generators: who owns their memory, what advances them, and recorded draws.

use super::state::uniform;
use super::*;
use crate::error::Error;
use crate::ops::Real;
use crate::ops::copy::Copy;
use crate::ops::random::Dropout;
use crate::view::SliceRange;

fn drawn(engine: &Engine, generator: &View) -> View {
    run(engine, uniform(), &[generator]).unwrap()[0].clone()
}

/// The same within a state scope.
fn drawn_as_state(engine: &Engine, generator: &View) -> View {
    record::enter_state();
    let made = drawn(engine, generator);
    record::leave_state();
    made
}

fn copied(engine: &Engine, view: &View) -> View {
    run(engine, Copy, &[view]).unwrap()[0].clone()
}

/// The bits of elements of eight bytes.
fn bits(views: &[View]) -> Vec<Vec<i64>> {
    views.iter().map(values::<i64>).collect()
}

#[test]
fn the_engine_s_generators_are_states_that_a_seed_writes() {
    let engine = engine(1 << 20);
    let generators = [Stream::Step, Stream::Init]
        .map(|stream| engine.rng().state(&engine.turn(), stream).unwrap().clone());
    assert!(generators.iter().all(|view| view.block.account() == Account::States));
    let before = generators.each_ref().map(|view| view.block.version());
    engine.seed(&mut engine.turn(), 5).unwrap();
    let mut versions = generators.iter().map(|view| view.block.version()).zip(before);
    assert!(versions.all(|(now, before)| now > before));
}

/// Draws interleaved with other uses of a generator: it is read, read in part, and reset.
fn draws_and_reads(engine: &Engine, generator: &View) -> Vec<View> {
    let position = generator.slice(&[SliceRange { start: 1, count: 1, step: 1 }]).unwrap();
    let start = copied(engine, generator);
    let first = drawn(engine, generator);
    let whole = copied(engine, generator);
    let second = drawn(engine, generator);
    let part = copied(engine, &position);
    let third = drawn(engine, generator);
    run_into(engine, Copy, &[&start], &[generator]).unwrap();
    vec![first, whole, second, part, third, drawn(engine, generator)]
}

#[test]
fn a_generator_has_moved_where_anything_else_reads_or_writes_it() {
    let engine = engine(1 << 20);
    let [eager, captured] = [(); 2].map(|()| tensor(&engine, &[2], &[9i64, 4]));
    let made = draws_and_reads(&engine, &eager);
    assert_eq!((values::<i64>(&made[1]), values::<i64>(&made[3])), (vec![9, 7], vec![10]));
    assert_eq!(values::<i64>(&eager), [9, 7]);
    let recording = recorded(&engine, &[], || draws_and_reads(&engine, &captured));
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    assert_eq!(bits(&replay(&engine, &graph, &[]).unwrap()), bits(&made));
    assert_eq!(values::<i64>(&captured), [9, 7]);
}

/// A draw by a step or by state, and from which of two generators.
#[derive(Clone, Copy)]
enum Draw {
    Step(usize),
    State(usize),
}
use Draw::{State, Step};

fn is_late(engine: &Engine, draws: &[Draw]) -> bool {
    let generators = [1, 2].map(|key| tensor(engine, &[2], &[key, 0i64]));
    let recording = recorded(engine, &[], || {
        for draw in draws {
            match *draw {
                Step(n) => drawn(engine, &generators[n]),
                State(n) => drawn_as_state(engine, &generators[n]),
            };
        }
        vec![]
    });
    recording.state_is_late()
}

#[test]
fn state_is_late_where_a_step_has_drawn_of_its_generator_before() {
    let engine = engine(1 << 20);
    let in_time =
        [&[][..], &[Step(0)], &[State(0), Step(0)], &[Step(0), State(1)], &[State(0), State(0)]];
    assert!(in_time.iter().all(|draws| !is_late(&engine, draws)));
    let late = [
        &[Step(0), State(0)][..],
        &[Step(0), Step(0), State(0)],
        &[Step(1), Step(0), State(0)],
        &[Step(0), Step(1), State(0)],
        &[Step(0), State(0), State(1)],
    ];
    assert!(late.iter().all(|draws| is_late(&engine, draws)));
}

#[test]
fn after_a_recorded_seed_state_and_steps_draw_in_the_order_of_the_program() {
    let engine = engine(1 << 20);
    let init = engine.rng().state(&engine.turn(), Stream::Init).unwrap().clone();
    let program = || {
        engine.seed(&mut engine.turn(), 9).unwrap();
        let [first, second] = [(); 2].map(|()| drawn_as_state(&engine, &init));
        let step = drawn(&engine, &init);
        [first, second, drawn_as_state(&engine, &init), step]
    };
    let want = bits(&program());
    let left = values::<i64>(&init);
    let mut state = Vec::new();
    let recording = recorded(&engine, &[], || {
        let mut made = program().to_vec();
        let step = made.pop();
        state = made;
        step.into_iter().collect()
    });
    assert_eq!(bits(&state), want[..3]);
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(bits(&replay(&engine, &graph, &[]).unwrap()), want[3..]);
        assert_eq!(values::<i64>(&init), left);
    }
}

#[test]
fn who_draws_without_all_inputs_is_told_how_many_it_wants() {
    let engine = engine(1 << 20);
    let refused = || {
        let dropout = Dropout { ratio: Real(0.5), offset: 0 };
        let error = run(&engine, dropout, &[]).unwrap_err();
        assert!(matches!(error, Error::Arity { got: 0, .. }), "{error}");
    };
    refused();
    recorded(&engine, &[], || {
        refused();
        record::enter_state();
        refused();
        record::leave_state();
        vec![]
    });
}

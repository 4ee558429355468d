//! Operations that update their inputs, and generators.

use super::*;
use crate::error::Error;
use crate::ops::Real;
use crate::ops::optim::{Rule, Update};
use crate::ops::random::{Advance, Distribution, Random};
use crate::view::SliceRange;

const SGD: Update =
    Update { rule: Rule::Sgd { momentum: false, nesterov: false }, weight_decay: false };
const MOMENTUM: Update =
    Update { rule: Rule::Sgd { momentum: true, nesterov: false }, weight_decay: false };

fn reversed(view: &View) -> View {
    let count = view.meta.shape[0];
    view.slice(&[SliceRange { start: count - 1, count, step: -1 }]).unwrap()
}

#[test]
fn an_input_in_the_memory_of_the_state_is_read_as_it_was() {
    let engine = engine(1 << 20);
    let lr = tensor(&engine, &[1], &[1f32]);
    for change in [reversed, |v: &View| lent(&reversed(v)), |v: &View| v.clone()] {
        let p = tensor(&engine, &[4], &[1f32, 2.0, 3.0, 4.0]);
        let g = change(&p);
        let want: Vec<f32> =
            values::<f32>(&p).iter().zip(values::<f32>(&g)).map(|(p, g)| p - g).collect();
        run(&engine, SGD, &[&p, &g, &lr]).unwrap();
        assert_eq!(values::<f32>(&p), want);
    }
}

#[test]
fn two_states_in_one_memory_are_refused() {
    let engine = engine(1 << 20);
    let one = tensor(&engine, &[1], &[1f32]);
    let base = tensor(&engine, &[6], &[1f32; 6]);
    let part = |start| base.slice(&[SliceRange { start, count: 4, step: 1 }]).unwrap();
    let g = tensor(&engine, &[4], &[1f32; 4]);
    let error = run(&engine, MOMENTUM, &[&part(0), &g, &one, &part(2), &one, &one]).unwrap_err();
    assert!(matches!(error, Error::Value { .. }), "{error}");
    assert_eq!(values::<f32>(&base), [1.0; 6]);
}

#[test]
fn a_state_is_its_own_output() {
    let engine = engine(1 << 20);
    let (p, other) = (tensor(&engine, &[2], &[1f32; 2]), tensor(&engine, &[2], &[5f32; 2]));
    let lr = tensor(&engine, &[1], &[1f32]);
    let error = run_into(&engine, SGD, &[&p, &p, &lr], &[&other]).unwrap_err();
    assert!(matches!(error, Error::Value { .. }), "{error}");
    run_into(&engine, SGD, &[&p, &p, &lr], &[&p]).unwrap();
    assert_eq!((values::<f32>(&p), values::<f32>(&other)), (vec![0.0; 2], vec![5.0; 2]));
    assert_eq!(run(&engine, SGD, &[&p, &p, &lr]).unwrap().len(), 0);
}

#[test]
fn an_update_without_all_of_its_inputs_is_refused() {
    let engine = engine(1 << 20);
    let all: [View; 5] = std::array::from_fn(|_| tensor(&engine, &[1], &[1f32]));
    for count in 0..=all.len() {
        let inputs: Vec<&View> = all.iter().take(count).collect();
        let error = run(&engine, MOMENTUM, &inputs).unwrap_err();
        assert!(matches!(error, Error::Arity { got, .. } if got == count), "{error}");
    }
}

#[test]
fn an_expanded_state_is_refused() {
    let engine = engine(1 << 20);
    let lr = tensor(&engine, &[1], &[1f32]);
    let p = lr.expand(&[3].into()).unwrap();
    assert!(run(&engine, SGD, &[&p, &p.clone(), &lr]).is_err());
}

pub(super) fn uniform() -> Random {
    let dist = Distribution::Uniform { low: Real(0.0), high: Real(1.0) };
    Random { dist, shape: [6].into(), dtype: DType::Float64, offset: 0 }
}

#[test]
fn the_engine_s_generators_start_apart_and_a_given_one_moves_alone() {
    let engine = engine(1 << 20);
    let state = |stream| engine.rng().state(&engine.turn(), stream).unwrap().clone();
    let (step, init) = (state(Stream::Step), state(Stream::Init));
    let first: Vec<f64> = values(&run(&engine, uniform(), &[]).unwrap()[0]);
    let other: Vec<f64> = values(&run(&engine, uniform(), &[&init]).unwrap()[0]);
    assert_ne!(first, other);
    assert_eq!((values::<i64>(&step), values::<i64>(&init)), (vec![0, 3], vec![1, 3]));
    engine.seed(&mut engine.turn(), 0).unwrap();
    assert_eq!(values::<f64>(&run(&engine, uniform(), &[]).unwrap()[0]), first);
    assert!(engine.seed(&mut engine.turn(), 1 << 63).is_err());
}

#[test]
fn a_recorded_seed_takes_effect_in_each_run_and_nowhere_else() {
    let engine = engine(1 << 20);
    let state = |stream| engine.rng().state(&engine.turn(), stream).unwrap().clone();
    let (step, init) = (state(Stream::Step), state(Stream::Init));
    engine.seed(&mut engine.turn(), 5).unwrap();
    run(&engine, uniform(), &[]).unwrap();
    let seeded = (values::<i64>(&step), values::<i64>(&init));
    let mut made = None;
    let recording = recorded(&engine, &[], || {
        let before = run(&engine, uniform(), &[]).unwrap();
        engine.seed(&mut engine.turn(), 9).unwrap();
        record::enter_state();
        made = Some(run(&engine, uniform(), &[&init]).unwrap()[0].clone());
        record::leave_state();
        let after = run(&engine, uniform(), &[]).unwrap();
        let drawn = run(&engine, uniform(), &[&init]).unwrap();
        vec![before[0].clone(), after[0].clone(), drawn[0].clone()]
    });
    assert_eq!((values::<i64>(&step), values::<i64>(&init)), seeded, "nothing has run");
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let runs: Vec<Vec<Vec<f64>>> = (0..2)
        .map(|_| replay(&engine, &graph, &[]).unwrap().iter().map(values::<f64>).collect())
        .collect();
    let left = (values::<i64>(&step), values::<i64>(&init));

    engine.seed(&mut engine.turn(), 9).unwrap();
    let eager = |inputs: &[&View]| values::<f64>(&run(&engine, uniform(), inputs).unwrap()[0]);
    let want = (eager(&[&init]), eager(&[]), eager(&[&init]));
    assert_eq!(values::<f64>(&made.unwrap()), want.0, "what is made as state draws on from it");
    for drawn in &runs {
        assert_eq!((&drawn[1], &drawn[2]), (&want.1, &want.2));
    }
    assert_ne!(runs[0][0], runs[1][0]);
    assert_eq!((values::<i64>(&step), values::<i64>(&init)), left);
}

#[test]
fn random_numbers_over_their_own_generator() {
    let engine = engine(1 << 20);
    let state = tensor(&engine, &[2], &[9i64, 0]);
    let bits = Random {
        dist: Distribution::Bernoulli { p: Real(1.0) },
        shape: [2].into(),
        dtype: DType::Int64,
        offset: 0,
    };
    run_into(&engine, bits, &[&state], &[&state]).unwrap();
    assert_eq!(values::<i64>(&state), [1, 1]);
    run(&engine, Advance { by: 5 }, &[&state]).unwrap();
    assert_eq!(values::<i64>(&state), [1, 6]);
}

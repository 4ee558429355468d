//! What tests of steps record and write.

use serde_json::json;

use super::*;
use crate::dtype::DType;
use crate::engine::{Inputs, Outputs};
use crate::ops::Kind;

pub const SETTINGS: Settings =
    Settings { exact: true, check_finite: false, parallel: false, budget: None };

pub fn submit(kind: impl Into<Kind>, inputs: &[&View]) -> Outputs {
    let engine = engine::host();
    let inputs: Inputs = inputs.iter().copied().cloned().collect();
    engine.submit(engine.turn(), &kind.into(), inputs).unwrap()
}

pub fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().copied().flat_map(f32::to_ne_bytes).collect()
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
}

pub fn tensor(shape: &[usize], values: &[f32]) -> View {
    let view = View::new(engine::host().device(), Meta::new(DType::Float32, shape));
    view.block.write(&bytes(values)).unwrap();
    view
}

/// A step that returns the double of `x`, and adds 1 to `count`.
pub fn doubling() -> Vec<u8> {
    let engine = engine::host();
    let (x, count, one) = (tensor(&[1], &[1.0]), tensor(&[1], &[0.0]), tensor(&[1], &[1.0]));
    let add: Kind = serde_json::from_value(json!({"op": "binary", "f": "add"})).unwrap();
    record::begin(Recording::new(engine.device(), std::slice::from_ref(&x))).unwrap();
    let double = submit(add.clone(), &[&x, &x])[0].clone();
    let inputs = [count.clone(), one].into_iter().collect();
    engine.submit_into(engine.turn(), &add, inputs, std::slice::from_ref(&count)).unwrap();
    let mut recording = crate::engine::end_recording(std::slice::from_ref(&double)).unwrap();
    drop(double);
    recording.seal();
    let names = Names {
        arguments: vec!["x".into()],
        results: vec![("double".into(), Returned::Made(0))],
        states: vec![("count".into(), count)],
    };
    let mut file = Vec::new();
    write(engine, &recording, SETTINGS, names, &mut file).unwrap();
    file
}

//! Steps as files, sound and damaged.

mod damage;
mod running;

use std::sync::Arc;

use serde_json::json;

use super::testing::{SETTINGS, bytes, floats, submit, tensor};
use super::*;
use crate::dtype::DType;
use crate::graph::Origin;
use crate::ops::gemm::Matmul;
use crate::ops::random::Dropout;
use crate::ops::{Kind, Real};

/// A step that trains: `w -= lr * xᵀ dropout(x w)`; returns the product and `w`.
struct Trained {
    recording: Recording,
    w: View,
    lr: View,
}

const X: [f32; 12] = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 1.0, 0.0, -2.0, 0.125, 3.0, -0.5];

fn trained() -> Trained {
    let (x, w) = (tensor(&[4, 3], &X), tensor(&[3, 2], &[0.1, 0.2, -0.3, 0.4, 0.5, -0.6]));
    let lr = tensor(&[1], &[0.05]);
    record::begin(Recording::new(engine::host().device(), std::slice::from_ref(&x))).unwrap();
    record::set_origin(Origin::at("/home/user/net.py:7"));
    let y = submit(Matmul, &[&x, &w])[0].clone();
    let kept = submit(Dropout { ratio: Real(0.5), offset: 0 }, &[&y])[0].clone();
    let gradient = submit(Matmul, &[&x.permute(&[1, 0]).unwrap(), &kept])[0].clone();
    let sgd = json!({
        "op": "update", "f": "sgd", "momentum": false, "nesterov": false, "weight_decay": false
    });
    submit(serde_json::from_value::<Kind>(sgd).unwrap(), &[&w, &gradient, &lr]);
    let mut recording = crate::engine::end_recording(std::slice::from_ref(&y)).unwrap();
    drop((y, kept, gradient));
    recording.seal();
    Trained { recording, w, lr }
}

impl Trained {
    fn names(&self) -> Names {
        let generator = engine::host().rng().state(&engine::host().turn(), engine::Stream::Step);
        Names {
            arguments: vec!["x".into()],
            results: vec![
                ("product".into(), Returned::Made(0)),
                ("x again".into(), Returned::Argument(0)),
            ],
            states: vec![
                ("w".into(), self.w.clone()),
                ("tied".into(), self.w.clone()),
                ("lr".into(), self.lr.clone()),
                ("unused".into(), tensor(&[1], &[0.0])),
                ("lr".into(), generator.unwrap().clone()),
            ],
        }
    }

    fn written(&self) -> Vec<u8> {
        let mut file = Vec::new();
        write(engine::host(), &self.recording, SETTINGS, self.names(), &mut file).unwrap();
        file
    }

    /// The products of so many runs of the recording itself, and then `w`.
    fn run(&self, times: usize) -> Vec<Vec<f32>> {
        let (engine, x) = (engine::host(), tensor(&[4, 3], &X));
        let options = SETTINGS.options(engine.device().threads());
        let graph = Executable::new(engine, &self.recording, &options).unwrap();
        let values = |view: &View| view.block.read(floats).unwrap();
        let given = std::slice::from_ref(&x);
        let run = |_| values(&graph.run(engine, engine.run().unwrap(), given).unwrap()[0]);
        let mut seen: Vec<Vec<f32>> = (0..times).map(run).collect();
        seen.push(values(&self.w));
        seen
    }
}

fn read(bytes: &[u8]) -> Result<Step> {
    Step::read(engine::host(), &mut &bytes[..], bytes.len() as u64)
}

/// The products of so many runs, and then `w`.
fn run(step: &mut Step, times: usize) -> Vec<Vec<f32>> {
    step.bind(0, &bytes(&X)).unwrap();
    let mut seen = Vec::new();
    for _ in 0..times {
        step.run().unwrap();
        let mut product = vec![0; step.results()[0].bytes()];
        step.result(0, &mut product).unwrap();
        seen.push(floats(&product));
    }
    let mut w = [0; 24];
    step.state(0, &mut w).unwrap();
    seen.push(floats(&w));
    seen
}

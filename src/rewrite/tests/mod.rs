mod accumulate;
mod batch_norm;
mod chain;
mod common;
mod constant;
mod dead;
mod decisions;
mod epilogue;
mod fold;
mod matmul_update;
mod pack;
mod products;
mod rename;
mod softmax;

use std::sync::Arc;

use super::*;
use crate::device::cpu;
use crate::dtype::DType;
use crate::graph::testing::Recorder;
use crate::graph::{Graph, Role};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta, Prepared, View};

/// A rule.
type Rule = fn(&mut Draft, &mut Prepare<'_>) -> Result<()>;

/// The names of the operations that a rule leaves of a recording.
fn rewritten(recorder: Recorder, rule: Rule) -> (Vec<&'static str>, Graph) {
    let mut prepare =
        |kind: &Kind, inputs: &[View]| Prepared::new(kind, inputs, None, 1).map(Arc::new);
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    rule(&mut draft, &mut prepare).unwrap();
    let (queue, roles) = draft.finish(&[]);
    let graph = Graph::new(queue, roles).unwrap();
    (graph.nodes().iter().map(|node| node.op.name()).collect(), graph)
}

fn like(view: &View) -> View {
    View::of(cpu::device(), &view.meta)
}

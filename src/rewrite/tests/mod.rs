mod batch_norm;
mod cast_round_trip;
mod cse;
mod dce;
mod decisions;
mod fold_affine;
mod fold_batch_norm;
mod fold_gather;
mod functionalize;
mod gate;
mod hoist;
mod links;
mod log_softmax;
mod pack;
mod producer;
mod products;
mod reduction;
mod sum;
mod update;

use std::sync::Arc;

use super::*;
use crate::device::cpu;
use crate::dtype::DType;
use crate::graph::testing::{Recorder, kernels};
use crate::graph::{Graph, Role};
use crate::kernels::Prepared;
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta, View};
use crate::view::SliceRange;

/// A rule.
type Rule = fn(&mut Draft) -> Result<()>;

/// The names of the operations that a rule leaves of a recording, and the graph.
fn rewritten(recorder: Recorder, rule: Rule) -> (Vec<&'static str>, Graph) {
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    rule(&mut draft).unwrap();
    let (queue, roles) = draft.finish();
    let kernels = kernels(&queue, &recorder.kernels);
    let graph = Graph::new(queue, roles, &kernels).unwrap();
    (graph.ops().iter().map(|node| node.call.name()).collect(), graph)
}

/// The names of the operations that all rules together leave in the runs of a recording, and of
/// those that are computed once.
fn apart_by_all(recorder: Recorder, allowed: Allowed) -> [Vec<&'static str>; 2] {
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    let taken = rewrite(&mut draft, allowed).unwrap();
    let left = draft.steps().map(|(_, step)| step.call.name()).collect();
    let taken = taken.iter().flat_map(|taken| taken.queue.ops());
    [left, taken.map(|node| node.call.name()).collect()]
}

fn like(view: &View) -> View {
    View::of(cpu::device(), &view.meta)
}

/// The first rows of a matrix.
fn first_rows(matrix: &View, count: usize) -> View {
    let all = |count| SliceRange { start: 0, count, step: 1 };
    matrix.slice(&[all(count), all(matrix.meta.shape[1])]).unwrap()
}

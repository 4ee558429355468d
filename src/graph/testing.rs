//! Builds small graphs for tests.

use std::sync::Arc;

use super::recompute::Again;
use super::{Edges, Graph, Kernels, Op, Parallel, Queue, Role, Schedule};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels;
use crate::kernels::{Prepared, kernel};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::copy::Copy;
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Call, Effects, Kind, Meta, View};
pub use crate::packing::testing::fingerprint;

/// An operation as text: its kinds, one by one where they are several, and its places.
pub fn told(op: &Op) -> String {
    let kinds: Vec<&Kind> = match op.call.kind.family().region() {
        Some(region) => region.operations().map(|link| &link.kind).collect(),
        None => vec![&op.call.kind],
    };
    format!("{kinds:?} {:?} {:?};", op.inputs, op.outputs)
}

/// A queue, the roles of its blocks, and the kernels of its operations.
#[derive(Default)]
pub struct Recorder {
    pub queue: Queue,
    pub roles: Vec<Role>,
    pub kernels: Kernels,
}

/// The kernels of a queue's operations: those that are known, others for one thread.
pub fn kernels(queue: &Queue, known: &Kernels) -> Kernels {
    let new = |call: &Arc<Call>| Prepared::new(call.clone(), kernels::host(), 1).map(Arc::new);
    Kernels::of(queue, |call| known.find(call).map_or_else(|| new(call), |op| Ok(op.clone())))
        .unwrap()
}

/// The properties of an operation that does nothing.
#[derive(Clone, Debug)]
pub struct Empty {
    pub kind: Kind,
    pub updates: bool,
    pub host: bool,
    pub scratch: usize,
}

/// Edges from the predecessors of each task.
pub fn edges<R: AsRef<[u32]>>(rows: &[R]) -> Edges {
    let mut edges = Edges::with_capacity(rows.len(), 0);
    for row in rows {
        row.as_ref().iter().for_each(|&earlier| edges.push(earlier));
        edges.end_row();
    }
    edges
}

/// A schedule of one segment of tasks with these predecessors, parts and times.
pub fn one_segment(rows: &[&[u32]], parts: &[u32], times: &[u64]) -> Schedule {
    let all = 0..rows.len() as u32;
    Schedule {
        segments: Vec::from([all]),
        gains: vec![u64::MAX],
        edges: edges(rows),
        parts: parts.to_vec(),
        times: times.to_vec(),
        workers: parts.iter().max().map_or(1, |&part| part as usize + 1),
    }
}

/// Recomputations as fingerprints show them, which count operations in twos.
pub fn doubled(again: &[Again]) -> Vec<Again> {
    let twice = |again: &Again| {
        let (maker, before) = (2 * again.maker, 2 * again.before);
        Again { maker, before, ..again.clone() }
    };
    again.iter().map(twice).collect()
}

/// Everything that is decided about a graph, as text.
pub fn shown(graph: &Graph) -> String {
    let schedule =
        graph.schedule().map(|s| format!("{:?} {:?} {:?}", s.segments, s.parts, s.times));
    format!("{} {schedule:?}", graph.to_json())
}

impl Recorder {
    /// A float32 vector in a block of its own.
    pub fn tensor(&mut self, role: Role, elements: usize) -> View {
        let view = View::new(kernels::host(), Meta::new(DType::Float32, [elements]));
        self.number(&view, role);
        view
    }

    /// The number of a view's block, which gets this role if it is new.
    pub fn number(&mut self, view: &View, role: Role) -> u32 {
        let number = self.queue.number(&view.block);
        if number as usize == self.roles.len() {
            self.roles.push(role);
        }
        number
    }

    /// Appends an operation; `outputs` are the non-state outputs.
    pub fn push(&mut self, kind: impl Into<Kind>, inputs: &[View], outputs: &[View]) {
        let kind = kind.into();
        let op = match kind.family().effects().state.is_empty() {
            true => Prepared::of(&kind, inputs, Some(outputs), 1),
            false => Prepared::of(&kind, inputs, None, 1),
        };
        self.push_prepared(Arc::new(op.unwrap()), inputs, outputs);
    }

    /// Appends a prepared operation.
    pub fn push_prepared(&mut self, op: Arc<Prepared>, inputs: &[View], outputs: &[View]) {
        for view in inputs.iter().chain(outputs) {
            self.number(view, Role::Temporary);
        }
        let origin = self.queue.ops().len() as u32;
        self.queue.push(op.call().clone(), inputs, outputs, origin);
        self.kernels.insert(&op.call().clone(), op);
    }

    /// `to = -from`.
    pub fn negate(&mut self, from: &View, to: &View) {
        self.push(Unary { f: UnaryFn::Neg }, std::slice::from_ref(from), std::slice::from_ref(to));
    }

    /// `to = a + b`.
    pub fn add(&mut self, a: &View, b: &View, to: &View) {
        let inputs = [a.clone(), b.clone()];
        self.push(Binary { f: BinaryFn::Add }, &inputs, std::slice::from_ref(to));
    }

    /// Appends an operation that does nothing, whatever its kind. If it `updates`, output 0 is
    /// input 0; `outputs` are the others.
    pub fn push_empty(&mut self, like: &Empty, inputs: &[View], outputs: &[View]) {
        let one = View::new(kernels::host(), Meta::new(DType::UInt8, [1]));
        let mut op = Prepared::of(&Copy.into(), &[one], None, 1).unwrap();
        let state: &'static [(usize, usize)] = if like.updates { &[(0, 0)] } else { &[] };
        op.change(|call| call.kind = like.kind.clone());
        op.change(|call| call.effects = Effects { host: like.host, ..Effects::updates(state) });
        op.kernel = kernel(like.scratch, |_| Ok(()));
        op.change(|call| call.inputs = inputs.iter().map(|view| view.meta.clone()).collect());
        let written = inputs[..like.updates as usize].iter().chain(outputs);
        op.change(|call| call.outputs = written.map(|view| view.meta.clone()).collect());
        self.push_prepared(Arc::new(op), inputs, outputs);
    }

    pub fn graph(self) -> Result<Graph> {
        Graph::new(self.queue, self.roles, &self.kernels)
    }

    /// A graph in which `workers` threads share every segment.
    pub fn parallel(self, workers: usize) -> Result<Graph> {
        let always = Parallel { least_gain: 0, ..Parallel::new(workers) };
        Graph::planned(self.queue, self.roles, &self.kernels, Some(always))
    }
}

//! A training step made of operations that do nothing.

use std::collections::HashMap;
use std::sync::Arc;

use singa_rs::device::cpu;
use singa_rs::dtype::DType;
use singa_rs::graph::{Graph, Kernels, Queue, Role};
use singa_rs::kernels::cpu::Cpu;
use singa_rs::kernels::{Prepared, kernel};
use singa_rs::ops::binary::{Binary, BinaryFn};
use singa_rs::ops::copy::Copy;
use singa_rs::ops::{Call, Effects, Kind, Meta, View};

/// A training step under construction: blocks of a few sizes, operations that do nothing.
#[derive(Default)]
pub struct Step {
    pub queue: Queue,
    pub roles: Vec<Role>,
    pub kernels: Kernels,
    metas: Vec<Arc<Meta>>,
    /// The operations, each shared by all tensors of the same metas.
    ops: HashMap<(usize, Vec<*const Meta>), Arc<Call>>,
}

/// The kinds of operations.
const COPY: usize = 0;
const ADD: usize = 1;
const PRODUCT: usize = 2;
const UPDATE: usize = 3;
/// The numbers of elements of the tensors, used in turn.
const SIZES: [usize; 7] = [1024, 48, 512, 300, 4096, 16, 1000];

impl Step {
    pub fn new() -> Step {
        let mut step = Step::default();
        for size in SIZES {
            step.metas.push(Arc::new(Meta::new(DType::Float32, [size])));
        }
        step
    }

    fn tensor(&mut self, layer: usize, role: Role) -> View {
        let view = View::of(cpu::device(), &self.metas[layer % SIZES.len()]);
        self.queue.number(&view.block);
        self.roles.push(role);
        view
    }

    fn push(&mut self, layer: usize, which: usize, inputs: &[&View], output: Option<&View>) {
        let written = output.unwrap_or(inputs[0]);
        let metas = inputs.iter().copied().chain([written]).map(|view| Arc::as_ptr(&view.meta));
        let call = self.ops.entry((which, metas.collect())).or_insert_with(|| {
            let call = empty(which, inputs, written);
            let kernel = kernel(0, |_| Ok(()));
            let op = Prepared::with(call.clone(), &Cpu, 1, kernel);
            self.kernels.insert(&call, op.into());
            call
        });
        let inputs: Vec<View> = inputs.iter().copied().cloned().collect();
        self.queue.push(
            call.clone(),
            &inputs,
            output.map_or(&[], std::slice::from_ref),
            layer as u32,
        );
    }

    /// Five nodes per layer: two forward operations, whose outputs the backward pass needs, then
    /// two gradients and the update of a parameter.
    pub fn record(mut self, nodes: usize) -> Step {
        let layers = nodes / 5;
        let mut saved = vec![self.tensor(0, Role::Argument)];
        let params: Vec<View> = (0..layers).map(|l| self.tensor(l, Role::Captured)).collect();
        for (layer, param) in params.iter().enumerate() {
            let [x, y] = [0, 0].map(|_| self.tensor(layer, Role::Temporary));
            self.push(layer, PRODUCT, &[&saved[layer], param], Some(&x));
            self.push(layer, COPY, &[&x], Some(&y));
            saved.push(y);
        }
        let mut gradient = self.tensor(layers, Role::Slot);
        for layer in (0..layers).rev() {
            let [of_param, next] = [0, 0].map(|_| self.tensor(layer, Role::Temporary));
            self.push(layer, PRODUCT, &[&gradient, &saved[layer]], Some(&of_param));
            self.push(layer, ADD, &[&gradient, &params[layer]], Some(&next));
            self.push(layer, UPDATE, &[&params[layer], &of_param], None);
            gradient = next;
        }
        self
    }

    pub fn graph(&self) -> Graph {
        Graph::new(self.queue.clone(), self.roles.clone(), &self.kernels).expect("a graph")
    }
}

/// An operation whatever the sizes of its operands.
fn empty(which: usize, inputs: &[&View], output: &View) -> Arc<Call> {
    let f = if which == PRODUCT { BinaryFn::Mul } else { BinaryFn::Add };
    let kind: Kind = if which == COPY { Copy.into() } else { Binary { f }.into() };
    let like = vec![inputs[0].clone(); inputs.len()];
    let mut call = Call::new(&kind, &like[..]).expect("an operation");
    call.inputs = inputs.iter().map(|view| view.meta.clone()).collect();
    call.outputs = [output.meta.clone()].into_iter().collect();
    call.effects = if which == UPDATE { Effects::updates(&[(0, 0)]) } else { Effects::PURE };
    Arc::new(call)
}

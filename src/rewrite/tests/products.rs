//! Small recordings of products and convolutions.

use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;

/// A recording of a product or a convolution, and what follows it.
pub struct Net {
    pub recorder: Recorder,
}

pub const ADD: Binary = Binary { f: BinaryFn::Add };

impl Net {
    pub fn new() -> Net {
        Net { recorder: Recorder::default() }
    }

    pub fn given(&mut self, shape: &[usize]) -> View {
        self.given_as(DType::Float32, shape)
    }

    pub fn given_as(&mut self, dtype: DType, shape: &[usize]) -> View {
        let view = View::new(cpu::device(), Meta::new(dtype, shape));
        self.recorder.number(&view, Role::Captured);
        view
    }

    /// Appends an operation; returns its result.
    pub fn push(&mut self, kind: impl Into<Kind>, inputs: &[&View], role: Role) -> View {
        let kind = kind.into();
        let inputs: Vec<View> = inputs.iter().map(|&view| view.clone()).collect();
        let metas: Vec<&Meta> = inputs.iter().map(|view| &*view.meta).collect();
        let meta = kind.family().infer(&metas).unwrap().remove(0);
        let to = View::new(cpu::device(), meta);
        self.recorder.number(&to, role);
        self.recorder.push(kind, &inputs, std::slice::from_ref(&to));
        to
    }

    /// A product of this many rows and columns.
    pub fn product(&mut self, [rows, columns]: [usize; 2], role: Role) -> View {
        let (a, b) = (self.given(&[rows, 32]), self.given(&[32, columns]));
        self.push(Matmul, &[&a, &b], role)
    }

    /// The names of the operations that a rule leaves, and the graph.
    pub fn rewritten(self, rule: Rule) -> (Vec<&'static str>, Graph) {
        let (names, graph) = rewritten(self.recorder, rule);
        graph.verify().unwrap();
        (names, graph)
    }
}

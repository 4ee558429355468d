//! Tensors of kernels that take dense ones of a wide type.

use crate::dtype::DType;
use crate::kernels::cuda::copy::copy;
use crate::kernels::cuda::program::{Place, Program, Step};
use crate::ops::Meta;

/// Tensors that are row-major and of one float type: others are copied first, or at the end.
pub struct Staged<'a> {
    name: &'static str,
    /// The type of floats.
    pub wide: DType,
    /// What runs, with the copies before.
    pub program: Program,
    /// The outputs that are copied at the end.
    late: Vec<(Place, &'a Meta, usize)>,
}

impl<'a> Staged<'a> {
    /// Of an operation on floats of this type.
    pub fn new(name: &'static str, dtype: DType) -> Staged<'a> {
        let wide = dtype.wide();
        Staged { name, wide, program: Program::default(), late: Vec::new() }
    }

    /// The meta of a tensor as kernels have it.
    fn dense(&self, meta: &Meta) -> Meta {
        let dtype = if meta.dtype.is_float() { self.wide } else { meta.dtype };
        Meta::new(dtype, meta.shape.clone())
    }

    /// Where an input is.
    pub fn input(&mut self, i: usize, meta: &Meta) -> Place {
        let dense = self.dense(meta);
        if dense == *meta {
            return Place::Input(i);
        }
        let room = self.program.take(dense.bytes());
        let source = copy(self.name, meta, &dense);
        self.program.steps.push(Step {
            source,
            places: vec![Place::Input(i), room],
            library: None,
        });
        room
    }

    /// Where an output is.
    pub fn output(&mut self, o: usize, meta: &'a Meta) -> Place {
        let dense = self.dense(meta);
        if dense == *meta {
            return Place::Output(o, 0);
        }
        let room = self.program.take(dense.bytes());
        self.late.push((room, meta, o));
        room
    }

    /// The program, with the copies of its outputs.
    pub fn finish(self) -> Program {
        let Staged { name, wide, mut program, late } = self;
        for (room, meta, o) in late {
            let dtype = if meta.dtype.is_float() { wide } else { meta.dtype };
            let source = copy(name, &Meta::new(dtype, meta.shape.clone()), meta);
            program = program.then(source, &[room, Place::Output(o, 0)]);
        }
        program
    }
}

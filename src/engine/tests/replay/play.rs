//! Programs as data, and running them.

use std::sync::Arc;

use super::*;
use crate::view::SliceRange;

/// One step of a program; tensors are numbered in the order in which they were made.
#[derive(Clone, Debug)]
pub enum Step {
    /// An operation into new tensors.
    Op(Kind, Vec<usize>),
    /// An operation into existing tensors.
    Into(Kind, Vec<usize>, Vec<usize>),
    /// A new tensor that has not been written.
    New(Meta),
    /// A view of another tensor.
    View(usize, Look),
    /// The tensor is dropped.
    Drop(usize),
}

/// A kind of view.
#[derive(Clone, Debug)]
pub enum Look {
    /// A subset of the elements.
    Slice(Vec<SliceRange>),
    /// Permuted axes.
    Permute(Vec<i64>),
    /// Another shape; a copy if that needs one.
    Reshape(Vec<usize>),
    /// A broadcast.
    Expand(Vec<usize>),
}

/// Runs steps.
pub struct Player<'a> {
    engine: &'a Engine,
    pub tensors: Vec<Option<View>>,
}

impl<'a> Player<'a> {
    pub fn new(engine: &'a Engine, given: Vec<View>) -> Self {
        Player { engine, tensors: given.into_iter().map(Some).collect() }
    }

    pub fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Op(kind, from) => {
                let made = self.engine.submit(self.engine.turn(), kind, self.inputs(from))?;
                self.tensors.extend(made.into_iter().map(Some));
            }
            Step::Into(kind, from, to) => {
                let outputs = self.inputs(to);
                let turn = self.engine.turn();
                self.engine.submit_into(turn, kind, self.inputs(from), &outputs)?;
            }
            Step::New(meta) => {
                let meta = Arc::new(meta.clone());
                self.tensors.push(Some(record::fresh(self.engine.device(), &meta)));
            }
            Step::View(of, look) => {
                let view = self.look(*of, look)?;
                self.tensors.push(Some(view));
            }
            Step::Drop(which) => self.tensors[*which] = None,
        }
        Ok(())
    }

    pub fn get(&self, which: usize) -> View {
        self.tensors[which].clone().expect("only live tensors are named")
    }

    pub fn take(&self, which: &[usize]) -> Vec<View> {
        which.iter().map(|&which| self.get(which)).collect()
    }

    fn inputs(&self, which: &[usize]) -> Inputs {
        which.iter().map(|&which| self.get(which)).collect()
    }

    fn look(&self, of: usize, look: &Look) -> Result<View> {
        let view = self.get(of);
        match look {
            Look::Slice(ranges) => view.slice(ranges),
            Look::Permute(axes) => view.permute(axes),
            Look::Expand(shape) => view.expand(&shape[..].into()),
            Look::Reshape(shape) => {
                let shape = shape[..].into();
                if let Some(view) = view.reshape(&shape)? {
                    return Ok(view);
                }
                let copy = crate::ops::copy::Copy.into();
                let inputs = std::iter::once(view).collect();
                let copied = self.engine.submit(self.engine.turn(), &copy, inputs)?;
                Ok(copied[0].reshape(&shape)?.expect("a copy is row-major"))
            }
        }
    }
}

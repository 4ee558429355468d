//! Whether a recorded graph may run on other arguments.

use std::sync::Arc;

use crate::engine::executable::Executable;
use crate::error::{Error, Result};
use crate::ops::{Meta, View};

impl Executable {
    /// Checks that arguments have the recorded shapes, dtypes, strides and device.
    ///
    /// # Errors
    /// [`Error::Arity`], [`Error::Shape`], [`Error::DType`], [`Error::Value`] for other strides, or
    /// [`Error::Device`].
    pub fn check_arguments(&self, arguments: &[View]) -> Result<()> {
        let (got, want) = (arguments.len(), self.arguments.len());
        crate::ensure!(got == want, Error::arity("run", got, want));
        for (i, (place, view)) in self.arguments.iter().zip(arguments).enumerate() {
            check(i, &view.meta, &place.meta)?;
            let (got, want) = (view.block.device(), self.device());
            let message = || format!("got argument {i} on {got:?}, want it on {want:?}");
            crate::ensure!(got.id() == want.id(), Error::device("run", message()));
        }
        Ok(())
    }

    /// Checks that a run on these arguments computes what was recorded.
    ///
    /// # Errors
    /// Those of [`Executable::check_arguments`]; [`Error::Graph`] where they do not
    /// [`Executable::fits`].
    pub fn admit(&self, arguments: &[View]) -> Result<()> {
        self.check_arguments(arguments)?;
        let message = "the arguments share memory with each other or with a tensor that the graph \
                       uses, otherwise than when it was recorded";
        crate::ensure!(self.fits(arguments), Error::graph("run", message));
        Ok(())
    }

    /// Whether the arguments alias each other exactly as in the recording, and do not overlap
    /// captured blocks, unless the graph writes neither.
    pub fn fits(&self, arguments: &[View]) -> bool {
        self.arguments.len() == arguments.len()
            && (0..arguments.len()).all(|i| self.fits_at(i, arguments))
    }

    fn fits_at(&self, i: usize, arguments: &[View]) -> bool {
        let (place, view) = (&self.arguments[i], &arguments[i]);
        let as_recorded = |k: usize| {
            let (other, given) = (&self.arguments[k], &arguments[k]);
            match other.block == place.block {
                true => {
                    Arc::ptr_eq(&given.block, &view.block)
                        && given.offset + place.offset == view.offset + other.offset
                }
                false => !is_one_memory(view, given),
            }
        };
        (0..i).all(as_recorded) && !self.clashes(place.block, view)
    }

    /// Whether an argument overlaps a captured block and the graph writes one of them, which
    /// dependency analysis did not account for.
    fn clashes(&self, number: u32, view: &View) -> bool {
        let is_written = self.graph.is_written(number);
        let meets = |block: &Arc<crate::block::Block>| {
            Arc::ptr_eq(block, &view.block)
                || (block.is_lent() || view.block.is_lent()) && block.meets(&view.block)
        };
        let mut captured = self.captured.iter();
        captured.any(|(n, block)| (is_written || self.graph.is_written(*n)) && meets(block))
    }
}

fn check(i: usize, got: &Meta, want: &Meta) -> Result<()> {
    let shape = || format!("{} as recorded for argument {i}", want.shape);
    crate::ensure!(got.shape == want.shape, Error::shape("run", [&got.shape], shape()));
    let dtype = || format!("{} as recorded for argument {i}", want.dtype);
    crate::ensure!(got.dtype == want.dtype, Error::dtype("run", [got.dtype], dtype()));
    let strides = |meta: &Meta| format!("strides {:?}", &meta.strides[..]);
    let recorded = || format!("{} as recorded for argument {i}", strides(want));
    crate::ensure!(got.strides == want.strides, Error::value("run", strides(got), recorded()));
    Ok(())
}

/// Whether two tensors are in the same block, or overlap in memory that was lent twice.
fn is_one_memory(a: &View, b: &View) -> bool {
    Arc::ptr_eq(&a.block, &b.block) || a.overlaps(b)
}

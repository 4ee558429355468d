//! The arguments of a run, as its graph takes them.

use super::{Step, Tensor};
use crate::engine::Executable;
use crate::error::{Error, Result};
use crate::graph::Place;
use crate::ops::View;

impl Step {
    /// The arguments, or copies of those that lie in memory otherwise than when the step was
    /// recorded.
    pub(super) fn admitted(&self, graph: &Executable, given: &[View]) -> Result<Vec<View>> {
        let (got, want) = (given.len(), self.arguments.len());
        let arity = || Error::arity("Step.run", got, want);
        crate::ensure!(got == want, arity());
        let wanted = self.arguments.iter().zip(self.recording.arguments());
        let laid_out = |((argument, place), view)| self.laid_out(graph, argument, place, view);
        let mut arguments = wanted.zip(given).map(laid_out).collect::<Result<Vec<View>>>()?;
        if !graph.fits(&arguments) {
            self.part(graph, &mut arguments)?;
        }
        Ok(arguments)
    }

    /// An argument of the shape and dtype, with the strides that were recorded.
    fn laid_out(
        &self,
        graph: &Executable,
        argument: &Tensor,
        place: &Place,
        view: &View,
    ) -> Result<View> {
        argument.check(view, self.engine.device())?;
        if view.meta == place.meta {
            return Ok(view.clone());
        }
        let got = || format!("argument {} with other strides", argument.name);
        let want = "the strides that were recorded, as the step writes it";
        let is_read = !graph.graph().is_written(place.block);
        crate::ensure!(is_read, Error::value("Step.run", got(), want));
        self.copied(view)
    }

    /// Copies arguments that share memory with each other or with a state.
    fn part(&self, graph: &Executable, arguments: &mut [View]) -> Result<()> {
        for (argument, place) in self.arguments.iter().zip(self.recording.arguments()) {
            let got = || format!("argument {} in shared memory", argument.name);
            let want = "memory of its own, as the step writes it";
            let is_read = !graph.graph().is_written(place.block);
            crate::ensure!(is_read, Error::value("Step.run", got(), want));
        }
        for argument in arguments {
            *argument = self.copied(argument)?;
        }
        Ok(())
    }
}

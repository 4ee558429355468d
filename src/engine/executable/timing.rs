//! Timing a graph's kernels, without the overhead of calls from Python.

use std::ops::Range;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::device::team;
use crate::engine::executable::Executable;
use crate::engine::{Engine, Run};
use crate::error::Result;
use crate::graph::{Bound, Place, Stopped};
use crate::kernels::Target;
use crate::ops::View;

/// How long a node takes.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Timing {
    /// Its whole time in seconds.
    pub seconds: f64,
    /// The part of it in seconds for which the thread that runs the graph had nothing left to do and
    /// waited for other threads.
    pub waiting: f64,
}

impl Executable {
    /// The mean time of the kernels alone in seconds, over `runs` consecutive runs on these
    /// arguments. Where they exchange, all processes have to run as many.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn time<'a>(
        &self,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: &[View],
        runs: usize,
    ) -> Result<f64> {
        self.with_bound(arguments, |bound, _| {
            self.wait(self.nodes())?;
            let start = Instant::now();
            (0..runs).try_for_each(|_| self.replay(engine, &mut run, bound, self.nodes()))?;
            self.wait(self.nodes())?;
            Ok(start.elapsed().as_secs_f64() / runs.max(1) as f64)
        })
    }

    /// Waits until the device has done what nodes put on its stream.
    fn wait(&self, nodes: Range<usize>) -> Result<(), Stopped> {
        let target = self.graph.kernels().first().map(|kernel| kernel.target);
        let done = target.map_or(Ok(()), Target::wait);
        done.map_err(|error| Stopped { node: nodes.start, end: nodes.end, error })
    }

    /// The mean times of each node over `runs` consecutive runs on these arguments, or on zeros.
    /// Everything that the runs write is restored afterwards. Exchanges between processes are left
    /// out: others need not take part.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn profile<'a>(
        &self,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: Option<Vec<View>>,
        runs: usize,
    ) -> Result<Vec<Timing>> {
        let arguments = arguments.unwrap_or_else(|| self.zeros());
        let mut timings = vec![Timing::default(); self.graph().ops().len()];
        // Saving a block beside the node that updates it would leave it in the caches.
        let mut updates = self.updates(&arguments);
        updates.iter_mut().for_each(|update| update.nodes = self.nodes());
        let mut all = |bound: &Bound| {
            for _ in 0..runs {
                for (node, timing) in timings.iter_mut().enumerate() {
                    if self.graph().ops()[node].call.kind.is_exchange() {
                        continue;
                    }
                    let (start, waited) = (Instant::now(), team::waited());
                    self.replay(engine, &mut run, bound, node..node + 1)?;
                    self.wait(node..node + 1)?;
                    timing.seconds += start.elapsed().as_secs_f64() / runs as f64;
                    timing.waiting += (team::waited() - waited).as_secs_f64() / runs as f64;
                }
            }
            Ok(())
        };
        self.aside(&arguments, |bound, _| self.undone(&updates, |_| all(bound), |_| ()))?;
        Ok(timings)
    }

    /// Arguments like the recorded ones, filled with zeros.
    fn zeros(&self) -> Vec<View> {
        let mut blocks = FxHashMap::default();
        let mut zeros = |place: &Place| {
            let bytes = self.graph().block_bytes(place.block);
            let block = blocks.entry(place.block);
            let block = block.or_insert_with(|| Block::new(self.device(), bytes)).clone();
            View { block, meta: place.meta.clone(), offset: place.offset }
        };
        self.arguments.iter().map(&mut zeros).collect()
    }
}

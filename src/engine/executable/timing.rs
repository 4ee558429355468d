//! Timing a graph's kernels, without the overhead of calls from Python.

use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::engine::executable::Executable;
use crate::engine::{Engine, Run};
use crate::error::Result;
use crate::graph::Place;
use crate::ops::View;

impl Executable {
    /// The mean time of the kernels alone in seconds, over `runs` consecutive runs on these
    /// arguments.
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
        self.with_bound(arguments, |bound| {
            let start = Instant::now();
            (0..runs).try_for_each(|_| self.replay(engine, &mut run, bound, self.nodes()))?;
            Ok(start.elapsed().as_secs_f64() / runs.max(1) as f64)
        })
    }

    /// The mean time of each node in seconds, over `runs` consecutive runs on these arguments, or
    /// on zeros. Everything that the runs write is restored afterwards.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn profile<'a>(
        &self,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: Option<Vec<View>>,
        runs: usize,
    ) -> Result<Vec<f64>> {
        let arguments = arguments.unwrap_or_else(|| self.zeros());
        self.aside(&arguments, |bound| {
            let mut seconds = vec![0.0; self.graph().ops().len()];
            for _ in 0..runs {
                for (node, sum) in seconds.iter_mut().enumerate() {
                    let start = Instant::now();
                    self.replay(engine, &mut run, bound, node..node + 1)?;
                    *sum += start.elapsed().as_secs_f64();
                }
            }
            seconds.iter_mut().for_each(|sum| *sum /= runs.max(1) as f64);
            Ok(seconds)
        })
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

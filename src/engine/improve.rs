//! From a recording to the graph that runs: rewriting, ordering, recomputation.

use super::executable::Constants;
use super::recording::Recording;
use super::{Budget, Engine, Options};
use crate::error::{Error, Result, guarded};
use crate::graph::budget::{Order, Ways};
use crate::graph::draft::Draft;
use crate::graph::order::Ordered;
use crate::graph::recompute::{Course, greedy};
use crate::graph::{Graph, Kernels, Parallel, Queue, Role, Timeline, order};
use crate::rewrite::{self, Allowed, rewrite};

/// Operations with the roles of their blocks, and the constants taken out of them.
type Rewritten = ((Queue, Vec<Role>), Option<rewrite::Constants>);

/// The graph made from a recording.
pub(super) struct Made {
    pub graph: Graph,
    /// Results that are cached from run to run.
    pub constants: Option<Constants>,
    /// The memory budget of its arena, in bytes.
    pub budget: Option<usize>,
    /// Why it is as recorded although an optimised one was requested: a bug.
    pub fault: Option<Error>,
}

impl From<Graph> for Made {
    fn from(graph: Graph) -> Made {
        Made { graph, constants: None, budget: None, fault: None }
    }
}

impl Recording {
    /// The analysed, planned graph according to the options; as recorded if the optimised one fails
    /// verification.
    ///
    /// # Errors
    /// [`Error::Budget`]; any error of preparing new operations; any error of [`Graph::new`] for
    /// the operations as recorded.
    pub(super) fn graph(&self, engine: &Engine, options: &Options) -> Result<Made> {
        if !options.rewrite || options.check_finite {
            return Ok(self.plain(engine, options)?.into());
        }
        self.made(engine, options, || self.improved(engine, options))
    }

    /// The result of `improve`, or the graph as recorded if that hits a bug.
    pub(super) fn made(
        &self,
        engine: &Engine,
        options: &Options,
        improve: impl FnOnce() -> Result<Made>,
    ) -> Result<Made> {
        match guarded("graph", improve) {
            Err(fault @ Error::Internal { .. }) => self.as_recorded(engine, options, fault),
            made => made,
        }
    }

    fn improved(&self, engine: &Engine, options: &Options) -> Result<Made> {
        let (rewritten, constants) = self.rewritten(options)?;
        let constants = constants.map(|taken| Constants::new(engine, self, taken)).transpose()?;
        let made = self.ordered(engine, rewritten, options)?;
        constants.as_ref().map_or(Ok(()), |constants| constants.verify(&made.graph))?;
        Ok(Made { constants, ..made })
    }

    /// The graph of the operations as recorded, because optimising them failed with `fault`.
    fn as_recorded(&self, engine: &Engine, options: &Options, fault: Error) -> Result<Made> {
        let graph = self.plain(engine, options)?;
        let budget = options.budget.map(|budget| match budget {
            Budget::Bytes(bytes) => bytes,
            Budget::Share(share) => (share * graph.arena_bytes() as f64) as usize,
        });
        match budget.filter(|&budget| graph.arena_bytes() > budget) {
            Some(budget) => Err(self.too_small(budget, &graph)),
            None => Ok(Made { budget, fault: Some(fault), ..graph.into() }),
        }
    }

    /// The graph of rewritten operations, in the best order tried.
    fn ordered(
        &self,
        engine: &Engine,
        (queue, roles): (Queue, Vec<Role>),
        options: &Options,
    ) -> Result<Made> {
        let kernels = engine.prepare(&queue)?;
        let Some(budget) = options.budget else {
            let limits = options.recompute.then_some(options.limits.recomputing);
            let found = thriftiest(queue, &roles, &kernels, limits);
            return Ok(self.planned(found, &kernels, options)?.into());
        };
        let orders = order::orders(queue, &roles, &kernels).into_iter();
        let limits = Some(options.limits.recomputing);
        let orders: Vec<Order> = orders.map(|ordered| thrifty(ordered, &roles, limits)).collect();
        self.bounded(budget, &orders, &kernels, self.parallel(options))
    }

    /// The graph of the operations as recorded.
    fn plain(&self, engine: &Engine, options: &Options) -> Result<Graph> {
        let operations = self.operations();
        let kernels = engine.prepare(&operations.0)?;
        self.planned(operations, &kernels, options)
    }

    /// The graph of operations in the given order.
    fn planned(
        &self,
        (queue, roles): (Queue, Vec<Role>),
        kernels: &Kernels,
        options: &Options,
    ) -> Result<Graph> {
        Graph::planned(queue, roles, kernels, self.parallel(options))
    }

    /// How many threads run the graph's operations. Serial if captured blocks may overlap, because
    /// scheduling tells memory apart only by block.
    fn parallel(&self, options: &Options) -> Option<Parallel> {
        options.parallel.filter(|_| !self.has_aliases())
    }

    /// The rewritten operations and the roles of their blocks, and those that need not run in every
    /// run.
    pub(super) fn rewritten(&self, options: &Options) -> Result<Rewritten> {
        let (queue, roles) = self.operations();
        let mut draft = Draft::new(self.device(), queue, roles);
        // Cached results are outside the arena, and a budget leaves no room for them.
        let keeps = options.keep && options.budget.is_none();
        let limits = options.limits.rewriting;
        let allowed = Allowed { rounds: !options.exact, keeps, limits };
        let constants = rewrite(&mut draft, allowed)?;
        Ok((draft.finish(), constants))
    }

    /// The fastest graph whose arena stays within a budget.
    fn bounded(
        &self,
        budget: Budget,
        orders: &[Order],
        kernels: &Kernels,
        parallel: Option<Parallel>,
    ) -> Result<Made> {
        let ways = Ways::new(orders, kernels, parallel)?;
        let bytes = match budget {
            Budget::Bytes(bytes) => bytes,
            Budget::Share(share) => (share * ways.unconstrained()? as f64) as usize,
        };
        match ways.within(bytes)? {
            Some(graph) => Ok(Made { budget: Some(bytes), ..graph.into() }),
            None => Err(self.too_small(bytes, &ways.smallest()?)),
        }
    }

    /// The error that a budget cannot be met.
    fn too_small(&self, budget: usize, smallest: &Graph) -> Error {
        let blocks = (0u32..).zip(smallest.roles());
        let outside = blocks.filter(|(_, role)| **role != Role::Temporary);
        Error::Budget {
            op: "memory_budget".into(),
            budget,
            smallest: smallest.arena_bytes(),
            outside: outside.map(|(block, _)| smallest.block_bytes(block)).sum(),
            usage: Box::new(smallest.usage(self.origins(), Vec::new())),
        }
    }
}

/// The operations in the order that needs least memory, including recomputation if `limits` allow
/// it.
fn thriftiest(
    queue: Queue,
    roles: &[Role],
    kernels: &Kernels,
    limits: Option<greedy::Limits>,
) -> (Queue, Vec<Role>) {
    let finished = order::promising(queue, roles, kernels).into_iter().map(|ordered| {
        let (course, again) = thrifty(ordered, roles, limits);
        course.finish(&again)
    });
    let best = finished.min_by_key(|(queue, roles)| Timeline::new(queue, roles, kernels).peak());
    best.expect("there is one at least")
}

/// Operations, and what to recompute rather than keep, if `limits` allow recomputation.
fn thrifty(ordered: Ordered, roles: &[Role], limits: Option<greedy::Limits>) -> Order {
    let course = Course::new(ordered, roles);
    let again = limits.map_or_else(Vec::new, |limits| greedy::choose(&course, limits));
    (course, again)
}

//! Results that a graph computes only from memory that rarely changes, such as parameters during
//! evaluation. They are cached, and recomputed when a run finds that this memory was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::block::Block;
use crate::device::Account;
use crate::engine::Engine;
use crate::engine::executable::{Captured, Executable, State};
use crate::engine::recording::Recording;
use crate::error::Result;
use crate::graph::export::size;
use crate::graph::{Bound, Graph};
use crate::rewrite;

/// See the module's documentation.
pub(in crate::engine) struct Constants {
    pub graph: Graph,
    /// The blocks that it reads, as indices into the captured blocks.
    read: Vec<usize>,
    /// The cached results that runs read, by number.
    kept: Vec<(u32, Arc<Block>)>,
    /// How often the graph has run.
    computed: AtomicU64,
}

/// How much of a graph is cached from run to run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The number of operations.
    pub operations: usize,
    /// Bytes of their cached results.
    pub bytes: usize,
    /// How often they were computed.
    pub computed: u64,
}

/// The state of the cached results.
pub(in crate::engine) struct Memo {
    pub bound: Bound,
    /// The versions of the blocks they were computed from; None if they are not valid.
    versions: Option<Vec<u64>>,
}

impl Constants {
    /// Analyses and plans the operations that were taken out of a recording. Allocates nothing.
    pub fn new(engine: &Engine, recording: &Recording, taken: rewrite::Constants) -> Result<Self> {
        let device = recording.device();
        let kernels = engine.prepare(&taken.queue)?;
        let graph = Graph::new(taken.queue, taken.roles, &kernels)?;
        let captured = recording.captured();
        let is_read = |&place: &usize| graph.lifetime(captured[place].0).is_some();
        let read = (0..captured.len()).filter(is_read).collect();
        let keep = |n: u32| {
            let block = Block::new(device, graph.block_bytes(n));
            block.set_account(Account::Constants);
            (n, block)
        };
        let kept = taken.kept.into_iter().map(keep).collect();
        Ok(Constants { graph, read, kept, computed: AtomicU64::new(0) })
    }

    /// Checks that every constant is computed before runs of a graph read it, and that no run
    /// changes what it is computed from.
    ///
    /// # Errors
    /// [`crate::Error::Internal`]: a bug.
    pub fn verify(&self, run: &Graph) -> Result<()> {
        let kept: Vec<u32> = self.kept.iter().map(|(number, _)| *number).collect();
        run.verify_kept(&self.graph, &kept)
    }

    /// The initial state, with temporaries in the arena that starts at `arena`.
    pub fn memo(&self, arena: *mut u8) -> Memo {
        Memo { bound: Bound::new(&self.graph, arena), versions: None }
    }

    /// Bytes of the cached results.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, block)| block.bytes()).sum()
    }

    /// Allocates the cached results, and binds them in both graphs.
    pub fn bind(&self, memo: &mut Memo, bound: &mut Bound, captured: &Captured) -> Result<()> {
        for (number, block) in &self.kept {
            let start = block.to_overwrite()?.as_ptr();
            memo.bound.bind(*number, start);
            bound.bind(*number, start);
        }
        for &place in &self.read {
            let (number, block) = &captured[place];
            memo.bound.bind(*number, block.to_touch()?.as_ptr());
        }
        Ok(())
    }

    /// Whether the cached results are valid. They never are if another library may write their
    /// inputs.
    fn stand(&self, memo: &Memo, captured: &Captured) -> bool {
        let is_same = |(&place, version): (&usize, &u64)| {
            let block = &captured[place].1;
            block.version() == *version && !block.is_exposed()
        };
        let versions = memo.versions.as_ref();
        versions.is_some_and(|versions| self.read.iter().zip(versions).all(is_same))
    }

    fn versions(&self, captured: &Captured) -> Vec<u64> {
        self.read.iter().map(|&place| captured[place].1.version()).collect()
    }
}

impl Executable {
    /// Recomputes the constants unless they are valid. All captured blocks must be bound.
    pub(in crate::engine) fn refresh(&self, state: &mut State) -> Result<()> {
        let Some((constants, memo)) = self.constants.as_ref().zip(state.memo.as_mut()) else {
            return Ok(());
        };
        if constants.stand(memo, &self.captured) {
            return Ok(());
        }
        memo.versions = None;
        let done = super::replay::replay(&memo.bound, 0..constants.graph.ops().len());
        done.map_err(|stopped| self.describe(&constants.graph, stopped))?;
        memo.versions = Some(constants.versions(&self.captured));
        constants.computed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// What is cached from run to run.
    pub fn constants(&self) -> Kept {
        let constants = self.constants.as_ref();
        let count = |constants: &Constants| Kept {
            operations: constants.graph.ops().len(),
            bytes: constants.bytes(),
            computed: constants.computed.load(Relaxed),
        };
        constants.map_or_else(Kept::default, count)
    }

    /// The graph in a few lines.
    pub fn summary(&self) -> String {
        let Kept { operations, bytes, .. } = self.constants();
        let kept = (operations > 0)
            .then(|| format!("\nconstant: {operations} nodes, of which {} are kept", size(bytes)));
        self.graph.summary() + &kept.unwrap_or_default()
    }

    /// Bytes of the arena, for runs and for the constants computed before them.
    pub fn arena_bytes(&self) -> usize {
        let constants = self.constants.as_ref().map_or(0, |c| c.graph.arena_bytes());
        self.graph.arena_bytes().max(constants)
    }
}

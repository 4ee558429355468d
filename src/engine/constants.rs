//! What a graph computes from nothing but memory that changes seldom, such as parameters in
//! evaluation: it is computed when a run finds that memory changed, and kept until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::executable::{Executable, State};
use super::recording::Recording;
use super::run;
use crate::block::Block;
use crate::device::Account;
use crate::error::Result;
use crate::graph::export::size;
use crate::graph::{Bound, Graph};
use crate::rewrite;

/// See the module's documentation.
pub(super) struct Constants {
    pub graph: Graph,
    /// What it reads: places among what the recording captured, which holds the blocks.
    read: Vec<usize>,
    /// What runs read of it, by number.
    kept: Vec<(u32, Arc<Block>)>,
    /// How often it has run.
    computed: AtomicU64,
}

/// How much of a graph does not run in every run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The operations.
    pub operations: usize,
    /// Bytes of what they make.
    pub bytes: usize,
    /// How often they have run.
    pub computed: u64,
}

/// What a recording found there, by number.
type Captured = [(u32, Arc<Block>)];

/// What the constants were last computed from.
pub(super) struct Memo {
    pub bound: Bound,
    /// The versions of what they read, if they stand.
    versions: Option<Vec<u64>>,
}

impl Constants {
    /// The operations that were taken out of a recording, analysed and planned. Takes no memory
    /// yet.
    pub fn new(recording: &Recording, taken: rewrite::Constants) -> Result<Self> {
        let device = recording.device();
        let graph = Graph::new(taken.queue, taken.roles)?;
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

    /// Checks that they are there when runs of a graph read them, and nothing that they are made of
    /// changes in one.
    ///
    /// # Errors
    /// [`crate::Error::Internal`]: a bug.
    pub fn verify(&self, run: &Graph) -> Result<()> {
        let kept: Vec<u32> = self.kept.iter().map(|(number, _)| *number).collect();
        run.verify_kept(&self.graph, &kept)
    }

    /// Where they are computed, with temporary memory from `arena` on.
    pub fn memo(&self, arena: *mut u8) -> Memo {
        Memo { bound: Bound::new(&self.graph, arena), versions: None }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, block)| block.bytes()).sum()
    }

    /// Gives what is kept memory, and binds it in both graphs.
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

    /// Whether what was computed last still stands. What another library may write never does.
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
    /// Computes the constants, unless they stand. All that is captured is bound.
    pub(super) fn refresh(&self, state: &mut State) -> Result<()> {
        let Some((constants, memo)) = self.constants.as_ref().zip(state.memo.as_mut()) else {
            return Ok(());
        };
        if constants.stand(memo, &self.captured) {
            return Ok(());
        }
        memo.versions = None;
        let done = run::replay(&memo.bound, 0..constants.graph.nodes().len());
        done.map_err(|stopped| self.describe(&constants.graph, stopped))?;
        memo.versions = Some(constants.versions(&self.captured));
        constants.computed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// What does not run in every run.
    pub fn constants(&self) -> Kept {
        let constants = self.constants.as_ref();
        let count = |constants: &Constants| Kept {
            operations: constants.graph.nodes().len(),
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

    /// Bytes of the arena, for runs and for what is computed before them.
    pub fn arena_bytes(&self) -> usize {
        let constants = self.constants.as_ref().map_or(0, |c| c.graph.arena_bytes());
        self.graph.arena_bytes().max(constants)
    }
}

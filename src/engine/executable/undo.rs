//! Runs whose effects are undone: what they update is restored.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Executable;
use crate::block::Block;
use crate::device::heap;
use crate::error::Result;
use crate::graph::Stopped;
use crate::ops::View;

/// Before blocks of so many bytes are saved, the heap returns what it has free: kernels that ran
/// before may have left gaps of several MiB, into which later ones do not fit.
const LARGE: usize = 1 << 20;

/// A block outside the arena that a run updates.
pub(in crate::engine) struct Update {
    pub number: u32,
    pub block: Arc<Block>,
    /// From the first node that writes it to the last that uses it.
    pub nodes: Range<usize>,
}

/// What blocks contained before a run.
#[derive(Default)]
struct Saved<'a> {
    blocks: Vec<(&'a Update, Vec<u8>)>,
    /// Buffers of blocks that have been restored. Fresh ones would not always fit into their gaps.
    spare: Vec<Vec<u8>>,
}

impl<'a> Saved<'a> {
    fn save(&mut self, update: &'a Update) -> Result<()> {
        if update.block.bytes() >= LARGE {
            heap::release();
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        update.block.save_to(0..update.block.bytes(), &mut bytes)?;
        self.blocks.push((update, bytes));
        Ok(())
    }

    /// Restores the blocks of which `which` holds: all of them, even after one that fails.
    fn restore(&mut self, mut which: impl FnMut(&Update) -> bool) -> Result<()> {
        let mut done = Ok(());
        for (update, bytes) in self.blocks.extract_if(.., |(update, _)| which(update)) {
            done = done.and(update.block.write(&bytes));
            self.spare.push(bytes);
        }
        done
    }
}

impl Executable {
    /// What a run on these arguments updates, in the order of the nodes that first write it.
    pub(in crate::engine) fn updates(&self, arguments: &[View]) -> Vec<Update> {
        let mut spans = self.spans();
        let update =
            |(number, block)| Some(Update { number, block, nodes: spans.remove(&number)? });
        let mut updates: Vec<Update> =
            self.updated(arguments).into_iter().filter_map(update).collect();
        updates.sort_by_key(|update| update.nodes.start);
        updates
    }

    /// The most bytes that are saved at once while a run is undone.
    pub fn undo_bytes(&self) -> usize {
        let spans = self.spans();
        let changes = spans.iter().flat_map(|(number, nodes)| {
            let bytes = self.graph.block_bytes(*number) as isize;
            [(nodes.start, bytes), (nodes.end, -bytes)]
        });
        // Of what happens at one node, the ends sort first.
        let mut changes: Vec<(usize, isize)> = changes.collect();
        changes.sort_unstable();
        let saved = changes.iter().scan(0, |saved, (_, bytes)| {
            *saved += bytes;
            Some(*saved)
        });
        saved.max().unwrap_or(0) as usize
    }

    /// Between which nodes the old contents of each block are kept that outlives a run and is
    /// written by it. Where nodes run at the same time, that is the whole run.
    fn spans(&self) -> FxHashMap<u32, Range<usize>> {
        let mut spans = FxHashMap::<u32, Range<usize>>::default();
        for (n, op) in self.graph.ops().iter().enumerate() {
            for block in op.outputs.iter().map(|place| place.block) {
                if self.graph.roles()[block as usize].lasts() {
                    spans.entry(block).or_insert(n..n);
                }
            }
            for place in op.places() {
                if let Some(span) = spans.get_mut(&place.block) {
                    span.end = n + 1;
                }
            }
        }
        if self.graph.schedule().is_some() {
            spans.values_mut().for_each(|span| *span = self.nodes());
        }
        spans
    }

    /// Runs all nodes by `run`, stretch by stretch, and restores each block as soon as no later
    /// node uses it; `look` sees it before. Nothing stays changed, whether or not that succeeds,
    /// but what the device refuses to restore.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] if a block cannot be saved; any error of a node; then any of
    /// restoring.
    pub(in crate::engine) fn undone(
        &self,
        updates: &[Update],
        mut run: impl FnMut(Range<usize>) -> Result<(), Stopped>,
        mut look: impl FnMut(&Update),
    ) -> Result<()> {
        let (mut saved, mut later) = (Saved::default(), updates.iter().peekable());
        let done = stretches(updates, self.nodes()).try_for_each(|nodes| {
            while let Some(update) = later.next_if(|update| update.nodes.start == nodes.start) {
                saved.save(update)?;
            }
            run(nodes.clone()).map_err(|stopped| self.describe(&self.graph, stopped))?;
            saved.restore(|update| {
                let is_last = update.nodes.end == nodes.end;
                if is_last {
                    look(update);
                }
                is_last
            })
        });
        done.and(saved.restore(|_| true))
    }
}

/// All nodes, cut where a block is to be saved or restored.
fn stretches(updates: &[Update], all: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let ends = updates.iter().flat_map(|update| [update.nodes.start, update.nodes.end]);
    let mut cuts: Vec<usize> = ends.chain([all.start, all.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    (1..cuts.len()).map(move |i| cuts[i - 1]..cuts[i])
}

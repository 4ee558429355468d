//! Does every read of a schedule find what it found in the recording?

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::intervals::Intervals;
use super::node::{Located, Memory, apart, locate};
use super::recorded::{Part, Recorded};
use super::{Fault, Graph, Operand, Reader, Role, Tag, Writer};
use crate::graph::layout::Layout;

/// Runs a schedule over planned memory in which each byte carries whose it is and who wrote it;
/// every read must find what it finds where each block has memory of its own and the nodes run in
/// recorded order.
pub(in crate::graph) fn replay(
    graph: &Graph,
    layout: &Layout,
    schedule: &[u32],
) -> Result<(), Fault> {
    every_node_once(graph, schedule)?;
    let recorded = Recorded::new(graph)?;
    let mut memories = Memories::default();
    for &n in schedule {
        let (node, operands) = (n as usize, locate(graph, layout, n as usize)?);
        apart(graph, node, &operands)?;
        for (k, operand) in operands.iter().enumerate().filter(|(_, o)| o.place.is_some()) {
            memories.check(Reader::Node(node), operand, recorded.wanted(node, k))?;
        }
        operands.iter().filter(is_written).for_each(|operand| memories.write(operand, n));
    }
    after(graph, &recorded, &memories)
}

fn is_written(operand: &&Located) -> bool {
    !matches!(operand.operand, Operand::Input(_))
}

fn every_node_once(graph: &Graph, schedule: &[u32]) -> Result<(), Fault> {
    let mut times = vec![0; graph.nodes().len()];
    for &node in schedule {
        let Some(times) = times.get_mut(node as usize) else {
            return Err(Fault::Schedule { node: node as usize, times: 1 });
        };
        *times += 1;
    }
    match times.iter().position(|&times| times != 1) {
        Some(node) => Err(Fault::Schedule { node, times: times[node] }),
        None => Ok(()),
    }
}

/// Checks what blocks outside of the arena hold after the run.
fn after(graph: &Graph, recorded: &Recorded, memories: &Memories) -> Result<(), Fault> {
    for (block, held) in (0..).zip(&recorded.blocks) {
        if graph.roles()[block as usize] != Role::Temporary {
            let parts = held.parts(0..graph.block_bytes(block));
            let wanted = parts.into_iter().map(|(r, w)| (r, w.unwrap_or(Writer::Before)));
            let wanted: Vec<Part> = wanted.collect();
            memories.find(Reader::After, block, Memory::Block(block), 0, &wanted)?;
        }
    }
    Ok(())
}

/// What the arena and each block outside of it hold.
#[derive(Default)]
struct Memories(FxHashMap<Memory, Intervals<Tag>>);

impl Memories {
    fn write(&mut self, operand: &Located, node: u32) {
        let block = operand.place.map(|place| place.block);
        let tag = Tag { block, writer: Writer::Node(node) };
        self.0.entry(operand.memory).or_default().set(operand.bytes.clone(), tag);
    }

    /// Checks that an operand finds all parts that it wants.
    fn check(&self, reader: Reader, operand: &Located, wanted: &[Part]) -> Result<(), Fault> {
        let Some(place) = operand.place else { return Ok(()) };
        self.find(reader, place.block, operand.memory, operand.base, wanted)
    }

    fn find(
        &self,
        reader: Reader,
        block: u32,
        memory: Memory,
        base: usize,
        wanted: &[Part],
    ) -> Result<(), Fault> {
        for (bytes, want) in wanted {
            let right = Tag { block: Some(block), writer: *want };
            let is_wrong = |(_, found): &(_, Option<Tag>)| *found != Some(right);
            let parts = self.parts(memory, base + bytes.start..base + bytes.end);
            if let Some((range, found)) = parts.into_iter().find(is_wrong) {
                let bytes = range.start - base..range.end - base;
                return Err(Fault::Stale { reader, block, bytes, want: *want, found });
            }
        }
        Ok(())
    }

    /// The parts of a range. What was written to a block before the run is that block's.
    fn parts(&self, memory: Memory, range: Range<usize>) -> Vec<(Range<usize>, Option<Tag>)> {
        let before = match memory {
            Memory::Block(block) => Some(Tag { block: Some(block), writer: Writer::Before }),
            Memory::Arena => None,
        };
        let Some(held) = self.0.get(&memory) else { return vec![(range, before)] };
        let parts = held.parts(range).into_iter();
        parts.map(|(range, tag)| (range, tag.or(before))).collect()
    }
}

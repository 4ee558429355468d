//! Does every read of a schedule find the same contents as in the recording?

use std::ops::Range;

use super::node::{Located, Memory, apart, locate};
use super::ranges::Ranges;
use super::recorded::{Part, Recorded};
use super::{Fault, Graph, Operand, Reader, Role, Tag, Writer};
use crate::graph::layout::Layout;

/// Simulates a schedule over the planned memory, in which each byte is tagged with its block and
/// its writer. Every read must find the same tags as when each block has memory of its own and the
/// nodes run in recorded order.
pub(in crate::graph) fn replay(
    graph: &Graph,
    layout: &Layout,
    schedule: &[u32],
) -> Result<(), Fault> {
    every_node_once(graph, schedule)?;
    let recorded = Recorded::new(graph)?;
    let mut memories = Memories::new(graph);
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
    let mut times = vec![0; graph.ops().len()];
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

/// Checks the contents of blocks outside the arena after the run.
fn after(graph: &Graph, recorded: &Recorded, memories: &Memories) -> Result<(), Fault> {
    for (block, held) in (0..).zip(&recorded.blocks) {
        if graph.roles()[block as usize] != Role::Temporary {
            held.parts(0..graph.block_bytes(block), |bytes, writer| {
                let wanted: [Part; 1] = [(bytes, writer.copied().unwrap_or(Writer::Before))];
                memories.find(Reader::After, block, Memory::Block(block), 0, &wanted)
            })?;
        }
    }
    Ok(())
}

/// The contents of the arena and of each block outside it.
struct Memories {
    arena: Ranges<Tag>,
    blocks: Vec<Ranges<Tag>>,
}

impl Memories {
    fn new(graph: &Graph) -> Self {
        Memories { arena: Ranges::Nothing, blocks: vec![Ranges::Nothing; graph.roles().len()] }
    }

    fn write(&mut self, operand: &Located, node: u32) {
        let block = operand.place.map(|place| place.block);
        let tag = Tag { block, writer: Writer::Node(node) };
        let memory = match operand.memory {
            Memory::Arena => &mut self.arena,
            Memory::Block(block) => &mut self.blocks[block as usize],
        };
        memory.set(operand.bytes.clone(), tag);
    }

    /// Checks that an operand finds all the parts that it must.
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
        // A block outside the arena starts with its own contents from before the run.
        let (held, before) = match memory {
            Memory::Arena => (&self.arena, None),
            Memory::Block(block) => {
                let before = Tag { block: Some(block), writer: Writer::Before };
                (&self.blocks[block as usize], Some(before))
            }
        };
        for (bytes, want) in wanted {
            let right = Tag { block: Some(block), writer: *want };
            held.parts(base + bytes.start..base + bytes.end, |range: Range<usize>, found| {
                let found = found.copied().or(before);
                if found == Some(right) {
                    return Ok(());
                }
                let bytes = range.start - base..range.end - base;
                Err(Fault::Stale { reader, block, bytes, want: *want, found })
            })?;
        }
        Ok(())
    }
}

//! Does every read of a schedule find the same contents as in the recording? And what is computed
//! once for all runs: is it there when they read it, and does it stay valid?

use std::ops::Range;

use super::node::{Located, Memory, apart, locate};
use super::ranges::Ranges;
use super::{Fault, Graph, Operand, Place, Reader, Role, Tag, Writer};
use crate::graph::memory::layout::Layout;
use crate::graph::{Csr, Op};
use crate::ops::Effects;

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

/// A part of a block and its writer.
type Part = (Range<usize>, Writer);

/// The recording, run in its own order over separate memory.
struct Recorded {
    /// For each operand of each node, the parts of its block that it must find.
    parts: Csr<Part>,
    /// The first operand of each node.
    starts: Vec<usize>,
    /// What each block holds at the end.
    blocks: Vec<Ranges<Writer>>,
}

impl Recorded {
    fn new(graph: &Graph) -> Result<Recorded, Fault> {
        let nodes = graph.ops().len();
        let blocks = vec![Ranges::Nothing; graph.roles().len()];
        let parts = Csr::with_capacity(3 * nodes, 3 * nodes);
        let mut recorded = Recorded { parts, starts: Vec::with_capacity(nodes), blocks };
        (0..nodes).try_for_each(|n| recorded.run(graph, n))?;
        Ok(recorded)
    }

    /// What operand `k` of a node must find, inputs before outputs.
    fn wanted(&self, node: usize, k: usize) -> &[Part] {
        self.parts.row(self.starts[node] + k)
    }

    fn run(&mut self, graph: &Graph, n: usize) -> Result<(), Fault> {
        let Op { inputs, outputs, .. } = &graph.ops()[n];
        self.starts.push(self.parts.rows());
        for place in inputs {
            let bytes = place.byte_range();
            self.look(graph, n, place, bytes.clone(), has_gaps(place, &bytes))?;
            self.parts.end_row();
        }
        for place in outputs {
            let bytes = place.byte_range();
            // A write with gaps preserves what is in them.
            if has_gaps(place, &bytes) {
                self.look(graph, n, place, bytes, true)?;
            }
            self.parts.end_row();
        }
        let writer = Writer::Node(n as u32);
        outputs.iter().for_each(|p| self.blocks[p.block as usize].set(p.byte_range(), writer));
        Ok(())
    }

    /// Records what a place holds. Reading a temporary block before it is written is a fault,
    /// except in the gaps between the elements of a place, where the contents do not matter.
    fn look(
        &mut self,
        graph: &Graph,
        node: usize,
        at: &Place,
        bytes: Range<usize>,
        gaps: bool,
    ) -> Result<(), Fault> {
        let is_temporary = graph.roles()[at.block as usize] == Role::Temporary;
        let Recorded { parts, blocks, .. } = self;
        blocks[at.block as usize].parts(bytes, |bytes, writer| match writer {
            None if is_temporary && gaps => Ok(()),
            None if is_temporary => Err(Fault::Unwritten { node, block: at.block, bytes }),
            writer => {
                parts.push((bytes, writer.copied().unwrap_or(Writer::Before)));
                Ok(())
            }
        })
    }
}

/// Whether some of the bytes from the first to the last element belong to no element.
fn has_gaps(place: &Place, bytes: &Range<usize>) -> bool {
    place.meta.bytes() != bytes.len()
}

/// Checks the graph that computes constants once, for runs of another graph, which reads the `kept`
/// blocks. Blocks have the same numbers in both graphs.
pub(in crate::graph) fn kept(run: &Graph, constants: &Graph, kept: &[u32]) -> Result<(), Fault> {
    reads_what_stays(run, constants)?;
    writes_its_own(constants, kept)?;
    let recorded = Recorded::new(constants)?;
    for &block in kept {
        let fault = |what| Err(Fault::Kept { block, what });
        if run.is_written(block) {
            return fault("runs write it");
        }
        if run.roles()[block as usize] != Role::Captured {
            return fault("runs do not take it as memory that was there before");
        }
        if run.block_bytes(block) != constants.block_bytes(block) {
            return fault("runs take it to be of another size");
        }
        for place in inputs(run).filter(|place| place.block == block) {
            let what = "runs read bytes of it that nothing has written";
            recorded.blocks[block as usize].parts(place.byte_range(), |_, writer| {
                writer.map_or(Err(Fault::Kept { block, what }), |_| Ok(()))
            })?;
        }
    }
    Ok(())
}

/// Checks that what the constants are computed from is the same in every run.
fn reads_what_stays(run: &Graph, constants: &Graph) -> Result<(), Fault> {
    let was_there =
        |block: u32| matches!(constants.roles()[block as usize], Role::Captured | Role::Argument);
    for block in inputs(constants).map(|place| place.block).filter(|&block| was_there(block)) {
        let fault = |what| Err(Fault::Kept { block, what });
        if constants.roles()[block as usize] == Role::Argument {
            return fault("it is made of an argument");
        }
        if run.is_written(block) || constants.is_written(block) {
            return fault("what it is made of is written");
        }
    }
    Ok(())
}

/// Checks that the operations do nothing but compute the kept blocks and their intermediates.
fn writes_its_own(constants: &Graph, kept: &[u32]) -> Result<(), Fault> {
    for op in constants.ops() {
        for place in &op.outputs {
            let (block, role) = (place.block, constants.roles()[place.block as usize]);
            let is_own = role == Role::Temporary || role == Role::Slot && kept.contains(&block);
            crate::ensure!(is_own, Fault::Kept { block, what: "it is no tensor of its own" });
            let is_pure = op.call.effects == Effects::PURE;
            crate::ensure!(is_pure, Fault::Kept { block, what: "its operation has effects" });
        }
    }
    Ok(())
}

fn inputs(graph: &Graph) -> impl Iterator<Item = &Place> {
    graph.ops().iter().flat_map(|op| &op.inputs)
}

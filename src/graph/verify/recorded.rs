//! What each node reads when every block has memory of its own.

use std::ops::Range;

use super::ranges::Ranges;
use super::{Fault, Graph, Place, Role, Writer};
use crate::graph::{Csr, Op};

/// A part of a block and its writer.
pub(super) type Part = (Range<usize>, Writer);

/// The recording, run in its own order over separate memory.
pub(super) struct Recorded {
    /// For each operand of each node, the parts of its block that it must find.
    parts: Csr<Part>,
    /// The first operand of each node.
    starts: Vec<usize>,
    /// What each block holds at the end.
    pub(super) blocks: Vec<Ranges<Writer>>,
}

impl Recorded {
    pub(super) fn new(graph: &Graph) -> Result<Recorded, Fault> {
        let nodes = graph.ops().len();
        let blocks = vec![Ranges::Nothing; graph.roles().len()];
        let parts = Csr::with_capacity(3 * nodes, 3 * nodes);
        let mut recorded = Recorded { parts, starts: Vec::with_capacity(nodes), blocks };
        (0..nodes).try_for_each(|n| recorded.run(graph, n))?;
        Ok(recorded)
    }

    /// What operand `k` of a node must find, inputs before outputs.
    pub(super) fn wanted(&self, node: usize, k: usize) -> &[Part] {
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

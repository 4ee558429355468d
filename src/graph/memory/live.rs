//! What the arena holds while each operation runs.

use crate::device::ALIGNMENT;
use crate::error::{LiveTensor, Usage};
use crate::graph::{Graph, Lifetime, Origin, Place};
use crate::packing;

/// A tensor in the arena, or an operation's scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The block's number; None for scratch.
    pub block: Option<u32>,
    /// The operation that makes the tensor or uses the scratch.
    pub maker: usize,
    /// Its offset in the arena.
    pub offset: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// The operations that need it. A tensor that takes over memory in place begins one node after
    /// its maker, so that shared memory is counted once.
    pub life: Lifetime,
}

impl Graph {
    /// Everything that the arena ever holds.
    pub fn residents(&self) -> Vec<Live> {
        let blocks = (0..self.roles.len() as u32).filter_map(|block| self.resident(block));
        let scratch = self.layout.scratch.iter().map(|&(n, offset)| Live {
            block: None,
            maker: n as usize,
            offset,
            bytes: self.kernels[n as usize].kernel.scratch(),
            life: Lifetime { first: n, last: n },
        });
        blocks.chain(scratch).collect()
    }

    fn resident(&self, block: u32) -> Option<Live> {
        let (offset, mut life) = (self.offset(block)?, self.lifetime(block)?);
        let maker = life.first as usize;
        let ends_here = |place: &Place| {
            place.block != block
                && self.offset(place.block) == Some(offset)
                && self.block_bytes(place.block) > 0
        };
        if self.ops[maker].inputs.iter().any(ends_here) {
            life.first += 1;
        }
        Some(Live { block: Some(block), maker, offset, bytes: self.block_bytes(block), life })
    }

    /// The bytes that are live in the arena while each node runs, each piece rounded up to 64.
    pub fn curve(&self) -> Vec<usize> {
        let residents = self.residents().into_iter();
        let pieces = residents.map(|live| (live.life, live.bytes.next_multiple_of(ALIGNMENT)));
        packing::curve(self.ops.len(), pieces)
    }

    /// The first node at which the arena's live bytes reach their peak.
    pub fn peak_node(&self) -> usize {
        let curve = self.curve();
        let peak = curve.iter().copied().max().unwrap_or(0);
        curve.iter().position(|&live| live == peak).unwrap_or(0)
    }

    /// What the arena holds while a node runs, for error messages; `origins` are those of
    /// the recording.
    pub fn live_tensors(&self, node: usize, origins: &[Origin]) -> Vec<LiveTensor> {
        let at = Lifetime { first: node as u32, last: node as u32 };
        let residents = self.residents().into_iter();
        let alive = residents.filter(|live| live.life.meets(&at));
        let tensor = |live: Live| LiveTensor {
            name: self.name(&live),
            bytes: live.bytes,
            line: origins
                .get(self.ops[live.maker].origin as usize)
                .map(|origin| origin.to_string().into()),
        };
        alive.map(tensor).collect()
    }

    /// The memory in use at the peak, to which `others` are added; `origins` are those of the
    /// recording.
    pub fn usage(&self, origins: &[Origin], others: Vec<LiveTensor>) -> Usage {
        let mut tensors = self.live_tensors(self.peak_node(), origins);
        tensors.extend(others);
        Usage::new(self.lower_bound_bytes(), self.arena_bytes(), tensors)
    }

    /// Describes a tensor in the arena in words.
    fn name(&self, live: &Live) -> String {
        let op = &self.ops[live.maker];
        let made = op.outputs.iter().find(|place| Some(place.block) == live.block);
        match made {
            Some(place) => {
                format!("{} {} {}", op.call.name(), place.meta.dtype, place.meta.shape)
            }
            None => format!("work space of {}", op.call.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Origin;
    use crate::graph::Role::*;
    use crate::graph::testing::Recorder;

    #[test]
    fn what_lives_at_the_peak() {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
        let [half, other] = [(); 2].map(|()| recorder.tensor(Temporary, 16));
        recorder.negate(&x, &half);
        recorder.negate(&x, &other);
        recorder.add(&half, &other, &y);
        let graph = recorder.graph().unwrap();
        assert_eq!(graph.curve(), [64, 128, 128]);
        assert_eq!((graph.peak_node(), graph.peak_bytes()), (1, 128));
        let named = graph.live_tensors(2, &[Origin::unknown()]);
        assert_eq!(named.len(), 2);
        assert_eq!((&*named[0].name, named[0].bytes), ("neg float32 (16,)", 64));
        assert_eq!(named[0].line.as_deref(), Some("an unknown line"));
        assert_eq!(graph.live_tensors(0, &[]).len(), 1);
    }

    #[test]
    fn what_shares_memory_in_place_is_counted_once() {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
        let [a, b] = [(); 2].map(|()| recorder.tensor(Temporary, 16));
        recorder.negate(&x, &a);
        recorder.negate(&a, &b);
        recorder.negate(&b, &y);
        let graph = recorder.graph().unwrap();
        assert_eq!(graph.offset(2), graph.offset(3));
        assert_eq!(graph.curve(), [64, 64, 64]);
        assert_eq!(graph.curve().into_iter().max(), Some(graph.peak_bytes()));
    }
}

//! Are a node's operands apart from each other, and each within its memory? And do the links of a
//! fused node find their operands and make its outputs?

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Fault, Graph, Operand, Place, Role};
use crate::device::ALIGNMENT;
use crate::graph::memory::layout::{Layout, OUTSIDE};
use crate::ops::region::{Link, Part};
use crate::ops::{Locality, Meta, Metas};

/// A separate memory: the arena, or a block outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Arena,
    Block(u32),
}

/// An operand and its location.
#[derive(Clone, Debug)]
pub(super) struct Located<'a> {
    pub(super) operand: Operand,
    /// None for scratch.
    pub(super) place: Option<&'a Place>,
    pub(super) memory: Memory,
    /// The position of the block's first byte in the memory.
    pub(super) base: usize,
    /// The bytes of the memory that it spans.
    pub(super) bytes: Range<usize>,
}

/// The operands of a node.
pub(super) type Operands<'a> = SmallVec<[Located<'a>; 6]>;

/// Locates the operands of a node; checks that they are within their memories and match its kernel.
pub(super) fn locate<'a>(
    graph: &'a Graph,
    layout: &Layout,
    n: usize,
) -> Result<Operands<'a>, Fault> {
    let (op, kernel) = (&graph.ops()[n], &graph.kernels()[n]);
    let mut located = Operands::new();
    for (i, (at, meta)) in pairs(n, &op.inputs, &kernel.inputs)?.enumerate() {
        located.push(place(graph, layout, n, Operand::Input(i), at, meta)?);
    }
    for (o, (at, meta)) in pairs(n, &op.outputs, &kernel.outputs)?.enumerate() {
        located.push(place(graph, layout, n, Operand::Output(o), at, meta)?);
    }
    let bytes = kernel.kernel.scratch();
    if bytes > 0 {
        located.push(scratch(layout, n, bytes)?);
    }
    Ok(located)
}

/// Pairs places with the metas that the kernel expects there.
fn pairs<'a>(
    node: usize,
    places: &'a [Place],
    metas: &'a [Arc<Meta>],
) -> Result<impl Iterator<Item = (&'a Place, &'a Arc<Meta>)>, Fault> {
    let (got, want) = (places.len(), metas.len());
    crate::ensure!(got == want, Fault::Operands { node, got, want });
    Ok(places.iter().zip(metas))
}

fn place<'a>(
    graph: &Graph,
    layout: &Layout,
    node: usize,
    operand: Operand,
    place: &'a Place,
    meta: &Arc<Meta>,
) -> Result<Located<'a>, Fault> {
    crate::ensure!(
        Arc::ptr_eq(&place.meta, meta) || place.meta == *meta,
        Fault::Meta { node, operand }
    );
    let (block, size) = (Some(place.block), graph.block_bytes(place.block));
    let offset = layout.offsets[place.block as usize];
    let is_temporary = graph.roles()[place.block as usize] == Role::Temporary;
    let fits = is_temporary == (offset != OUTSIDE);
    if !fits || is_temporary && !offset.is_multiple_of(ALIGNMENT) {
        return Err(Fault::Misplaced { node, operand, block });
    }
    let (memory, base, room) = match is_temporary {
        true => (Memory::Arena, offset, layout.height),
        false => (Memory::Block(place.block), 0, size),
    };
    let range = place.byte_range();
    for (end, limit) in [(range.end, size), (base + range.end, room)] {
        if end > limit {
            return Err(Fault::Beyond { node, operand, block, end, limit });
        }
    }
    let bytes = base + range.start..base + range.end;
    Ok(Located { operand, place: Some(place), memory, base, bytes })
}

fn scratch(layout: &Layout, node: usize, size: usize) -> Result<Located<'static>, Fault> {
    let (operand, block, limit) = (Operand::Scratch, None, layout.height);
    let at = layout.scratch.partition_point(|&(n, _)| (n as usize) < node);
    let fits = |&&(n, base): &&(u32, usize)| n as usize == node && base.is_multiple_of(ALIGNMENT);
    let Some(&(_, base)) = layout.scratch.get(at).filter(fits) else {
        return Err(Fault::Misplaced { node, operand, block });
    };
    let end = base + size;
    if end > limit {
        return Err(Fault::Beyond { node, operand, block, end, limit });
    }
    Ok(Located { operand, place: None, memory: Memory::Arena, base, bytes: base..end })
}

/// Checks that what the node writes overlaps no operand except those that it may overwrite.
pub(super) fn apart(graph: &Graph, n: usize, operands: &[Located]) -> Result<(), Fault> {
    let is_written = |one: &&Located| !matches!(one.operand, Operand::Input(_));
    for one in operands.iter().filter(is_written) {
        let clash = |other: &&Located| {
            other.operand != one.operand && one.overlaps(other) && !may_share(graph, n, one, other)
        };
        if let Some(other) = operands.iter().find(clash) {
            let blocks = [one, other].map(|located| located.place.map(|place| place.block));
            let (one, other) = (one.operand, other.operand);
            return Err(Fault::Overlap { node: n, one, other, blocks });
        }
    }
    Ok(())
}

impl Located<'_> {
    fn overlaps(&self, other: &Located) -> bool {
        let (a, b) = (&self.bytes, &other.bytes);
        self.memory == other.memory && a.start.max(b.start) < a.end.min(b.end)
    }
}

/// Whether an output may share the memory of an input: both must have the same meta and bytes.
fn may_share(graph: &Graph, n: usize, one: &Located, other: &Located) -> bool {
    let (Operand::Output(o), Operand::Input(i)) = (one.operand, other.operand) else {
        return false;
    };
    let (Some(to), Some(from)) = (one.place, other.place) else { return false };
    let op = &graph.kernels()[n];
    let pair = (i, o);
    let is_allowed =
        op.effects.state.contains(&pair) || op.kind.family().in_place().contains(&pair);
    is_allowed && from.meta == to.meta && one.bytes == other.bytes
}

/// The values of a region so far.
type Values = SmallVec<[Meta; 8]>;

/// Checks the operations of a node, if it consists of several.
pub(super) fn links(graph: &Graph, n: usize) -> Result<(), Fault> {
    let op = &graph.ops()[n];
    let Some(region) = op.call.kind.family().region() else { return Ok(()) };
    let mut values: Values = op.inputs.iter().map(|place| Meta::clone(&place.meta)).collect();
    crate::ensure!(values.len() == region.inputs, Fault::Link { node: n, link: 0 });
    for (i, (part, link)) in region.parts().enumerate() {
        let made = results(link, &values).filter(|made| may_stand(part, link, made));
        values.extend(made.ok_or(Fault::Link { node: n, link: i })?);
    }
    let (got, want) = (op.outputs.len(), region.outputs.len());
    crate::ensure!(got == want, Fault::Operands { node: n, got, want });
    for (o, (place, output)) in op.outputs.iter().zip(&region.outputs).enumerate() {
        let is_made = values.get(region.inputs + output) == Some(&*place.meta);
        crate::ensure!(is_made, Fault::Meta { node: n, operand: Operand::Output(o) });
    }
    Ok(())
}

/// The results of an operation, if its operands exist and suit it.
fn results(link: &Link, values: &[Meta]) -> Option<Metas> {
    let operands: Option<SmallVec<[&Meta; 8]>> =
        link.operands.iter().map(|&value| values.get(value)).collect();
    link.kind.family().infer(&operands?).ok()
}

/// Whether an operation works on the elements or rows of a block alone; if it is the consumer, its
/// state must be at the places that the region's effects name, or it has none and reads one value.
/// The producer may do anything.
fn may_stand(part: Part, link: &Link, made: &[Meta]) -> bool {
    let locality = link.kind.family().locality();
    let state = link.kind.family().effects().state;
    if part == Part::Consumer {
        if state.is_empty() {
            return made.len() == 1 && link.operands.len() == 1;
        }
        let is_own = |&(input, _): &(usize, usize)| link.operands[input] == input;
        return locality == Locality::Element
            && state.len() == made.len()
            && state.iter().all(is_own);
    }
    made.len() == 1 && state.is_empty() && (part == Part::Producer || locality != Locality::All)
}

//! Are regions consistent: do the operands of each of their operations exist, and do the results
//! match the outputs of the node?

use smallvec::SmallVec;

use super::{Fault, Graph, Operand};
use crate::ops::region::{Link, Region};
use crate::ops::{Locality, Meta, Metas};

/// The values of a region so far.
type Values = SmallVec<[Meta; 8]>;

/// Checks the operations of a node, if it consists of several.
pub(super) fn links(graph: &Graph, n: usize) -> Result<(), Fault> {
    let op = &graph.ops()[n];
    let Some(region) = op.call.kind.family().region() else { return Ok(()) };
    let mut values: Values = op.inputs.iter().map(|place| Meta::clone(&place.meta)).collect();
    crate::ensure!(values.len() == region.inputs, Fault::Link { node: n, link: 0 });
    for (i, link) in region.operations().enumerate() {
        let made = results(link, &values).filter(|made| may_stand(region, link, made));
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
/// state must be at the places that the region's effects name. The producer may do anything.
fn may_stand(region: &Region, link: &Link, made: &[Meta]) -> bool {
    let is = |other: &Option<Box<Link>>| other.as_deref().is_some_and(|o| std::ptr::eq(o, link));
    let Some(first) = made.first() else { return false };
    let locality = link.kind.family().locality(first.shape.rank());
    let state = link.kind.family().effects().state;
    if is(&region.consumer) {
        let is_own = |&(input, _): &(usize, usize)| link.operands[input] == input;
        return locality == Locality::Element
            && state.len() == made.len()
            && state.iter().all(is_own);
    }
    made.len() == 1 && state.is_empty() && (is(&region.producer) || locality != Locality::All)
}

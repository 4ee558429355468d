//! Are fused nodes consistent: do the operands of each link exist, and do the results match the
//! outputs of the node?

use smallvec::SmallVec;

use super::{Fault, Graph, Operand};
use crate::ops::chain::Link;
use crate::ops::{Meta, Reach, Region};

/// The values of a region so far: its inputs, followed by the results of links.
type Values = SmallVec<[Meta; 8]>;

/// Checks the inner links of a node, if it has any.
pub(super) fn links(graph: &Graph, n: usize) -> Result<(), Fault> {
    let op = &graph.ops()[n];
    let Some(region) = op.call.kind.family().region() else { return Ok(()) };
    let inputs: SmallVec<[&Meta; 8]> = op.inputs.iter().map(|p| &*p.meta).collect();
    let mut values = given(&region, &inputs).ok_or(Fault::Link { node: n, link: 0 })?;
    for (i, link) in region.links.iter().enumerate() {
        values.push(result(link, &values).ok_or(Fault::Link { node: n, link: i })?);
    }
    let first = values.len() - region.links.len();
    let made = region.outputs.iter().map(|&link| first + link).chain(region.keeps.then_some(0));
    let made: SmallVec<[usize; 4]> = made.collect();
    let (got, want) = (op.outputs.len(), made.len());
    crate::ensure!(got == want, Fault::Operands { node: n, got, want });
    for (o, (place, value)) in op.outputs.iter().zip(made).enumerate() {
        let is_made = values.get(value).is_some_and(|value| *value == *place.meta);
        crate::ensure!(is_made, Fault::Meta { node: n, operand: Operand::Output(o) });
    }
    Ok(())
}

/// The values that links start from: the producer's result, if there is one, and the other inputs.
fn given(region: &Region, inputs: &[&Meta]) -> Option<Values> {
    let Some(producer) = region.producer else {
        let fits = inputs.len() == region.inputs;
        return fits.then(|| inputs.iter().map(|&meta| meta.clone()).collect());
    };
    let (others, factors) = inputs.split_at_checked(region.inputs.checked_sub(1)?)?;
    let made = producer.infer(factors).ok()?.into_iter().next()?;
    Some(std::iter::once(made).chain(others.iter().map(|&meta| meta.clone())).collect())
}

/// The result of a link, which must work element by element or row by row.
fn result(link: &Link, values: &[Meta]) -> Option<Meta> {
    let operands: Option<SmallVec<[&Meta; 4]>> =
        link.operands.iter().map(|&value| values.get(value)).collect();
    let [result] = &link.kind.family().infer(&operands?).ok()?[..] else { return None };
    let reach = link.kind.family().reach(result.shape.rank());
    (reach != Reach::All).then(|| result.clone())
}

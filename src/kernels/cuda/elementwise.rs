//! Kernels of operations that work element by element, and of regions of them.

use super::check::Check;
use super::expression::{Value, compute, has_expression};
use super::program::Program;
use super::source::Source;
use super::types::computed;
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::binary::{BinaryFn, fault, is_partial};
use crate::ops::region::{Link, Region};
use crate::ops::{Family, Kind, Locality, Meta};
use crate::shape::Shape;

/// The program of one operation element by element; None if it has no expression.
///
/// # Errors
/// Those of scalars that a dtype does not represent.
pub fn program(kind: &Kind, io: &[&Meta]) -> Result<Option<Program>> {
    let inputs = io.len() - 1;
    let region = Region::of_links(inputs, vec![Link::first(kind, inputs)], vec![0]);
    let source = source(&region, kind.family().name(), io)?;
    Ok(source.map(|source| checked(kind, io, Program::one(source, inputs, 1))))
}

/// The program of a region of such operations; None if it has others.
///
/// # Errors
/// As [`program`].
pub fn region(region: &Region, io: &[&Meta]) -> Result<Option<Program>> {
    let source = source(region, region.name(), io)?;
    Ok(source.map(|source| Program::one(source, region.inputs, region.outputs.len())))
}

/// Whether a region is one kernel: all its links have expressions, nothing precedes or follows, and
/// each thread writes an element of every output.
pub fn is_fusible(region: &Region, values: &[Meta]) -> bool {
    let results = &values[region.inputs..];
    let has_one = |link: &Link| {
        let is_local = link.kind.family().locality() == Locality::Element;
        is_local && has_expression(&link.kind)
    };
    are_alike(region.outputs.iter().map(|&output| &results[output].shape))
        && region.producer.is_none()
        && region.consumer.is_none()
        && region.links.iter().all(has_one)
}

/// Whether all of the shapes are equal.
fn are_alike<'a>(mut shapes: impl Iterator<Item = &'a Shape>) -> bool {
    shapes.next().is_none_or(|first| shapes.all(|shape| shape == first))
}

/// Integers lack some quotients and powers: the second operand is checked first.
fn checked(kind: &Kind, io: &[&Meta], program: Program) -> Program {
    let (f, name, input) = match kind {
        Kind::Binary(op) => (op.f, op.name(), 1),
        Kind::BinaryScalar(op) if op.reverse => (op.f, op.name(), 0),
        _ => return program,
    };
    let last = io[io.len() - 1];
    if !is_partial(f) || !io[input].dtype.is_int() || last.numel() == 0 {
        return program;
    }
    let bad = if f == BinaryFn::Pow { "x < 0" } else { "x == 0" };
    let check = Check::new(input, io[input], |_| bad.into(), move |_| fault(f, name));
    program.checked(check, io[input])
}

fn source(region: &Region, name: &'static str, io: &[&Meta]) -> Result<Option<Source>> {
    if region.producer.is_some() || region.consumer.is_some() {
        return Ok(None);
    }
    let (inputs, outputs) = io.split_at(region.inputs);
    if !are_alike(outputs.iter().map(|output| &output.shape)) {
        return Ok(None);
    }
    let dtypes = |metas: &[&Meta]| metas.iter().map(|meta| meta.dtype).collect::<Vec<DType>>();
    let mut source = Source::new(name, &dtypes(inputs), &dtypes(outputs));
    let walk = Walk::new(&outputs[0].shape, io);
    let elements = source.each_moved(&walk, &dtypes(io), inputs.len());
    let Some(values) = values(&mut source, region, inputs, &elements)? else { return Ok(None) };
    for (o, &result) in region.outputs.iter().enumerate() {
        let (element, value) = (&elements[inputs.len() + o], &values[inputs.len() + result].name);
        source.line(format!("        store({element}, {value});"));
    }
    source.end_moved(&walk, outputs.len());
    Ok(Some(source))
}

/// Loads the inputs and computes all links.
fn values(
    source: &mut Source,
    region: &Region,
    inputs: &[&Meta],
    elements: &[String],
) -> Result<Option<Vec<Value>>> {
    let metas = region.values(inputs)?;
    let mut values: Vec<Value> = Vec::new();
    for (i, meta) in metas.iter().enumerate() {
        let result = Value { name: format!("v{i}"), dtype: meta.dtype };
        if i < inputs.len() {
            let (wide, element) = (computed(meta.dtype), &elements[i]);
            source.line(format!("        const {wide} v{i} = load({element});"));
        } else {
            let link = &region.links[i - inputs.len()];
            let of: Vec<&Value> = link.operands.iter().map(|&v| &values[v]).collect();
            let is_local = link.kind.family().locality() == Locality::Element;
            if !is_local || !compute(source, &link.kind, &of, &result)? {
                return Ok(None);
            }
        }
        values.push(result);
    }
    Ok(Some(values))
}

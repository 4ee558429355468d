//! Regions: a product or convolution in blocks of rows, and links, an update and a reduction that
//! process each block while it is in the cache.

pub mod blocks;
mod follow;
mod pass;
mod pieces;
mod reduced;
pub mod row_blocks;
mod stripes;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::ALIGNMENT;
use crate::device::onednn::{self, Gate};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cpu::conv::convolution;
use crate::kernels::cpu::matmul::{product, product_add};
use crate::kernels::cpu::region::row_blocks::RowBlocks;
use crate::kernels::{Kernel, Packing, Width};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::geometry::Geometry;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta};
use follow::{Destination, Followed, Input};
use stripes::Stripes;

/// Prepares a region; `io` are its inputs and outputs.
///
/// # Errors
/// Those of its operations.
pub fn prepare(region: &Region, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let values = region.values(&io[..region.inputs])?;
    if let Some(reduction) = region.reduction() {
        return reduced::prepare(region, reduction, &values, width);
    }
    let Some(producer) = region.producer.as_deref() else {
        return pass::prepare(region, &values, width);
    };
    if starts_sums(region, &values) {
        return product_add::prepare([io[0], io[1], io[2], io[3]], width);
    }
    if let Some((gate, geometry)) = gated(region, &values)
        && let Some(steps) = convolution::gated(gate, geometry, io, width)?
    {
        return Ok(Arc::new(steps));
    }
    let behind = Behind::new(region, producer, &values);
    let io = producer_io(region, producer, &values);
    let blocks = match behind.stripes {
        Some(_) => in_blocks(&producer.kind, &io, width)?,
        None => None,
    };
    let rows = match blocks {
        Some(rows) => rows,
        // Prepared with the width it has on its own, so that the kernel is exactly the same.
        None => {
            let own = Width::of(producer.kind.family().cost(&io), width.0);
            RowBlocks::whole(super::prepare(&producer.kind, &io, own)?, io.len() - 1)
        }
    };
    behind.followed(rows, width)
}

/// Whether a region's operations process blocks of rows, each in the cache; `values` are the metas
/// of all its values.
pub fn is_blocked(region: &Region, values: &[Meta]) -> bool {
    match (region.producer.as_deref(), region.reduction()) {
        (Some(producer), _) => Behind::new(region, producer, values).stripes.is_some(),
        (None, Some(reduction)) => reduced::is_cut(region, reduction, values),
        (None, None) => Stripes::of(region, values).is_some(),
    }
}

/// Whether a region is a product of inputs 0 and 1 whose sums start from input 2.
pub fn starts_sums(region: &Region, values: &[Meta]) -> bool {
    let (Some(producer), [add], None) = (&region.producer, &region.links[..], &region.consumer)
    else {
        return false;
    };
    !region.exact
        && matches!(producer.kind, Kind::Matmul(_))
        && producer.operands[..] == [0, 1]
        && matches!(&add.kind, Kind::Binary(Binary { f: BinaryFn::Add }))
        && matches!(add.operands[..], [2, 3] | [3, 2])
        && region.outputs[..] == [1]
        && values[4] == values[3]
        && product_add::fits(&values[2], &values[3])
}

/// The two parts of a region that is a convolution multiplied by a function of its result.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn packing(region: &Region, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
    let values = region.values(&io[..region.inputs])?;
    let Some((gate, geometry)) = gated(region, &values) else { return Ok(None) };
    Ok(convolution::gated(gate, geometry, io, width)?.and_then(|steps| steps.packing()))
}

/// Whether a region is a convolution that a library multiplies by a function of its result.
pub fn gates(region: &Region, values: &[Meta]) -> bool {
    let Some((gate, geometry)) = gated(region, values) else { return false };
    let io: SmallVec<[&Meta; 8]> = values[..region.inputs].iter().chain(values.last()).collect();
    convolution::gated(gate, geometry, &io, Width::ONE).is_ok_and(|steps| steps.is_some())
}

/// The function and the geometry of an inexact region that is a convolution of all inputs, multiplied
/// by a function of its result.
fn gated<'a>(region: &'a Region, values: &[Meta]) -> Option<(Gate, &'a Geometry)> {
    let (Some(producer), [gate, product], None) =
        (&region.producer, &region.links[..], &region.consumer)
    else {
        return None;
    };
    let Kind::Conv(conv) = &producer.kind else { return None };
    let function = match gate.kind {
        Kind::Unary(Unary { f: UnaryFn::Sigmoid }) => Gate::Sigmoid,
        Kind::Unary(Unary { f: UnaryFn::HardSigmoid { alpha, gamma } }) => {
            Gate::HardSigmoid { alpha: alpha.0 as f32, beta: gamma.0 as f32 }
        }
        _ => return None,
    };
    let made = region.inputs;
    let fits = !region.exact
        && producer.operands.iter().copied().eq(0..made)
        && gate.operands[..] == [made]
        && matches!(&product.kind, Kind::Binary(Binary { f: BinaryFn::Mul }))
        && matches!(product.operands[..], [a, b] if a + b == 2 * made + 1 && a.min(b) == made)
        && region.outputs[..] == [2]
        && values[made].dtype == DType::Float32
        && values[made] == values[made + 2];
    fits.then_some((function, &conv.geometry))
}

/// What follows a producer.
struct Behind<'a> {
    producer: &'a Link,
    /// Whether the producer's result is an output.
    keeps: bool,
    /// The region of what follows, and the inputs that it reads besides the producer's result.
    region: Region,
    others: SmallVec<[usize; 8]>,
    /// Its values.
    values: Vec<Meta>,
    /// How they are cut along with the producer's result, if that is computed in blocks.
    stripes: Option<Stripes>,
}

impl<'a> Behind<'a> {
    fn new(region: &Region, producer: &'a Link, values: &[Meta]) -> Self {
        let (behind, others) = region.behind(producer);
        let made = &values[region.inputs];
        let io = producer_io(region, producer, values);
        let given = others.iter().map(|&i| &values[i]);
        let results = &values[region.inputs + 1..];
        let values: Vec<Meta> = [made].into_iter().chain(given).chain(results).cloned().collect();
        let stripes = || Stripes::of(&behind, &values)?.with_rows(rows(&producer.kind, made));
        let stripes = if is_split(&producer.kind, &io) { stripes() } else { None };
        let keeps = region.outputs.contains(&0);
        Behind { producer, keeps, region: behind, others, values, stripes }
    }

    /// Prepares it; its first input is computed in blocks, or as a whole.
    fn followed(&self, rows: RowBlocks, width: Width) -> Result<Arc<dyn Kernel>> {
        let (values, stripes) = (&self.values, self.stripes.as_ref());
        let blocks = rows.blocks();
        let cut = |rows: usize| match stripes {
            Some(stripes) => (0..values.len()).map(|v| stripes.block(values, v, rows)).collect(),
            None => values.clone(),
        };
        let width = if stripes.is_some() { Width::ONE } else { width };
        let kernels = blocks.for_both(|rows| pass::prepare(&self.region, &cut(rows), width))?;
        let step = |v: usize| stripes.map_or(0, |stripes| stripes.row_bytes(values, v) as isize);
        let bytes = cut(blocks.sizes()[0])[0].bytes().next_multiple_of(ALIGNMENT);
        let outputs = &self.region.outputs;
        let given = self.others.iter().zip(1..).map(|(&i, v)| Input::Given(i, step(v)));
        let kept = Destination::Output(outputs.len(), step(0));
        Ok(Arc::new(Followed {
            factors: self.producer.operands.clone(),
            destination: if self.keeps { kept } else { Destination::Scratch(bytes) },
            inputs: std::iter::once(Input::Block).chain(given).collect(),
            outputs: outputs.iter().map(|output| step(self.region.inputs + output)).collect(),
            kernels,
            rows,
        }))
    }
}

/// The producer's inputs and result.
fn producer_io<'v>(
    region: &Region,
    producer: &Link,
    values: &'v [Meta],
) -> SmallVec<[&'v Meta; 8]> {
    producer.of(values).into_iter().chain([&values[region.inputs]]).collect()
}

/// The rows of a producer's result, which its blocks consist of.
fn rows(producer: &Kind, made: &Meta) -> usize {
    match producer {
        Kind::Matmul(_) => made.shape[..made.shape.rank() - 1].iter().product(),
        _ => made.shape[0],
    }
}

/// Whether an operation's result can be computed in blocks at all.
pub fn is_producer(kind: &Kind) -> bool {
    matches!(kind, Kind::Matmul(_)) || convolution(kind).is_some()
}

/// Whether the result of an operation is computed in blocks; `io` are the inputs and the result.
pub fn is_split(kind: &Kind, io: &[&Meta]) -> bool {
    match convolution(kind) {
        Some((pass, _)) => convolution::is_split(pass, io),
        None => matches!(kind, Kind::Matmul(_)) && product::is_split([io[0], io[1], io[2]]),
    }
}

/// The result of a producer in blocks, where possible; `io` are the inputs and the result.
fn in_blocks(producer: &Kind, io: &[&Meta], width: Width) -> Result<Option<RowBlocks>> {
    match convolution(producer) {
        Some((pass, geometry)) => convolution::in_blocks(pass, geometry, io, width),
        None => product::in_blocks([io[0], io[1], io[2]], width),
    }
}

/// The pass and geometry of a convolution; None for other operations.
fn convolution(kind: &Kind) -> Option<(onednn::Propagation, &Geometry)> {
    match kind {
        Kind::Conv(conv) => Some((onednn::Propagation::Forward, &conv.geometry)),
        Kind::ConvGradInput(conv) => Some((onednn::Propagation::GradInput, &conv.geometry)),
        _ => None,
    }
}

//! Fuses the product of a convolution's result and a function of it (SiLU, HardSwish) into the
//! convolution, which multiplies while the result is in registers. The function may round differently
//! there, so this is done only if results need not be exact.

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta};
use crate::rewrite::matching::{At, wherever};

/// A product, the steps that it replaces, and the region that it becomes.
struct Found {
    steps: [usize; 3],
    region: Region,
    inputs: SmallVec<[Place; 4]>,
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    wherever(draft, found, |draft, Found { steps, region, inputs }| {
        let [conv, _, product] = steps;
        let call = draft.infer(region.into(), &inputs)?;
        let origin = draft.step(conv).expect("it was found").origin;
        let outputs = draft.step(product).expect("it was found").outputs.clone();
        steps.into_iter().for_each(|n| draft.remove(n));
        draft.replace(conv, Op { call, inputs, outputs, origin });
        Ok(())
    })
}

/// A product of a convolution's result and a function of it, which nothing else reads, so that the
/// product may be where the convolution is.
fn found(to: At) -> Option<Found> {
    let product = to.of(Binary { f: BinaryFn::Mul })?;
    let (x, gate) = [(0, 1), (1, 0)].into_iter().find_map(|(x, g)| {
        let gate = product.own_maker(&product.inputs[g]).filter(|gate| is_gate(gate.kind()))?;
        (gate.inputs[0] == product.inputs[x]).then_some((&product.inputs[x], gate))
    })?;
    let conv = product.maker(x).filter(|conv| matches!(conv.kind(), Kind::Conv(_)))?;
    let draft = product.draft;
    let fits = draft.role(x.block) == Role::Temporary
        && draft.readers(x.block).iter().all(|n| n == gate.n || n == product.n)
        && product.makes_all();
    let region = region(conv, gate, product);
    let metas: SmallVec<[&Meta; 8]> = conv.inputs.iter().map(|place| &*place.meta).collect();
    let values = region.values(&metas).ok().filter(|_| fits)?;
    let is_alike = values.last() == Some(&*product.outputs[0].meta);
    let (steps, inputs) = ([conv.n, gate.n, product.n], conv.inputs.clone());
    (is_alike && draft.target().gates(&region, &values)).then_some(Found { steps, region, inputs })
}

fn is_gate(kind: &Kind) -> bool {
    matches!(kind, Kind::Unary(Unary { f: UnaryFn::Sigmoid | UnaryFn::HardSigmoid { .. } }))
}

fn region(conv: At, gate: At, product: At) -> Region {
    let made = conv.inputs.len();
    let links = vec![
        Link { kind: gate.kind().clone(), operands: smallvec![made] },
        Link { kind: product.kind().clone(), operands: smallvec![made, made + 1] },
    ];
    let producer = Some(Box::new(Link::first(conv.kind(), made)));
    Region { producer, exact: false, ..Region::of_links(made, links, vec![2]) }
}

//! An operation on tensors of given metas, ready to run.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::{Kernel, Target, Width};
use crate::error::{Error, Result};
use crate::ops::{Cost, Effects, Kind, Meta, View};
use crate::view;

/// An operation that moves fewer bytes than this, and does little arithmetic per byte, is short.
const SHORT_BYTES: u64 = 256 << 10;

/// The metas of an operation's outputs, shared with the output tensors.
type OutputMetas = SmallVec<[Arc<Meta>; 2]>;

/// An operation, the metas of its tensors, and its kernel. Immutable, and shared by equal
/// operations.
pub struct Prepared {
    /// The kind of operation.
    pub kind: Kind,
    /// Metas of the inputs.
    pub inputs: SmallVec<[Arc<Meta>; 4]>,
    /// Metas of the outputs: inferred, or those of the given outputs.
    pub outputs: OutputMetas,
    are_given: bool,
    /// The number of threads it was prepared for.
    pub threads: usize,
    /// Its side effects.
    pub effects: Effects,
    /// The kernel that computes the outputs.
    pub kernel: Arc<dyn Kernel>,
    /// How many threads the kernel uses.
    pub width: Width,
    /// Whether waiting for another thread would take longer than running it.
    pub is_short: bool,
}

impl Prepared {
    /// Infers and checks an operation, and prepares its kernel. Outputs may be given if their
    /// strides differ from the inferred ones.
    ///
    /// # Errors
    /// The errors of the family's checks.
    pub fn new(
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
        threads: usize,
    ) -> Result<Self> {
        let ins = metas(inputs).map(|m| &**m).collect::<SmallVec<[&Meta; 4]>>();
        let outputs = match given {
            Some(views) => metas(views).cloned().collect(),
            None => infer(kind, inputs, &ins)?,
        };
        let target = super::target_of(inputs.iter().chain(given.unwrap_or_default()));
        let (kernel, cost) = kernel(target, kind, &ins, &outputs, threads)?;
        Ok(Prepared {
            kind: kind.clone(),
            inputs: metas(inputs).cloned().collect(),
            outputs,
            are_given: given.is_some(),
            threads,
            effects: kind.family().effects(),
            kernel,
            width: Width::of(cost, threads),
            is_short: cost.bytes.max(cost.flops / 4) < SHORT_BYTES,
        })
    }

    /// Whether [`Prepared::new`] would return an equal value.
    pub fn fits(
        &self,
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
        threads: usize,
    ) -> bool {
        self.threads == threads
            && self.are_given == given.is_some()
            && self.kind == *kind
            && are(&self.inputs, inputs)
            && given.is_none_or(|outputs| are(&self.outputs, outputs))
    }

    /// Whether its outputs were given rather than inferred.
    pub fn are_given(&self) -> bool {
        self.are_given
    }

    /// The input that shares its memory with output `o`.
    pub fn state_of(&self, o: usize) -> Option<usize> {
        self.effects.state.iter().find(|pair| pair.1 == o).map(|pair| pair.0)
    }

    /// The operation's cost.
    pub fn cost(&self) -> Cost {
        let io: SmallVec<[&Meta; 8]> =
            self.inputs.iter().chain(&self.outputs).map(|meta| &**meta).collect();
        self.kind.family().cost(&io)
    }

    /// The operation's name.
    pub fn name(&self) -> &'static str {
        self.kind.family().name()
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {:?} -> {:?}", self.kind, self.inputs, self.outputs)
    }
}

/// A hash that is the same for equal arguments of [`Prepared::new`].
pub fn hash(kind: &Kind, inputs: &[View], given: Option<&[View]>, threads: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (kind, threads).hash(&mut hasher);
    metas(inputs).chain(metas(given.unwrap_or_default())).for_each(|m| m.hash(&mut hasher));
    hasher.finish()
}

fn metas(views: &[View]) -> impl Iterator<Item = &Arc<Meta>> {
    views.iter().map(|v| &v.meta)
}

fn are(metas: &[Arc<Meta>], views: &[View]) -> bool {
    metas.len() == views.len() && metas.iter().zip(views).all(|(m, v)| *m == v.meta)
}

/// The inferred outputs; state keeps the meta of its input.
fn infer(kind: &Kind, inputs: &[View], metas: &[&Meta]) -> Result<OutputMetas> {
    let name = kind.family().name();
    let mut outputs = OutputMetas::new();
    for meta in kind.family().infer(metas)? {
        meta.shape.checked_numel(name)?;
        outputs.push(Arc::new(meta));
    }
    for &(i, o) in kind.family().effects().state {
        let got = || format!("an expanded input {i}");
        let want = "each element in a place of its own, since it is updated";
        crate::ensure!(!view::repeats(metas[i]), Error::value(name, got(), want));
        outputs[o] = inputs[i].meta.clone();
    }
    Ok(outputs)
}

/// The kernel and the operation's cost.
fn kernel(
    target: &dyn Target,
    kind: &Kind,
    inputs: &[&Meta],
    outputs: &[Arc<Meta>],
    threads: usize,
) -> Result<(Arc<dyn Kernel>, Cost)> {
    let io: SmallVec<[&Meta; 8]> =
        inputs.iter().copied().chain(outputs.iter().map(|m| &**m)).collect();
    let cost = kind.family().cost(&io);
    Ok((target.prepare(kind, &io, Width::of(cost, threads))?, cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;
    use crate::dtype::DType;
    use crate::ops::{Real, Scalar, copy, random};

    fn is_short(kind: Kind, inputs: &[Meta]) -> bool {
        let views: Vec<View> =
            inputs.iter().map(|m| View::of(cpu::device(), &Arc::new(m.clone()))).collect();
        Prepared::new(&kind, &views, None, 1).unwrap().is_short
    }

    #[test]
    fn operations_that_make_much_from_nothing_are_not_short() {
        let state = Meta::new(DType::Int64, [2]);
        for (count, want) in [(100, true), (1 << 20, false)] {
            for dtype in [DType::Int8, DType::Float32, DType::Float64] {
                let (one, shape) = (Scalar::Int(1), || [count].into());
                let fill = copy::Fill { value: one, shape: shape(), dtype };
                assert_eq!(is_short(fill.into(), &[]), want);
                let zero = Scalar::Int(0);
                let arange = copy::Arange { start: one, step: zero, count, dtype };
                assert_eq!(is_short(arange.into(), &[]), want);
                let dist = random::Distribution::Bernoulli { p: Real(0.5) };
                let random = random::Random { dist, shape: shape(), dtype, offset: 0 };
                assert_eq!(is_short(random.into(), std::slice::from_ref(&state)), want);
            }
        }
    }
}

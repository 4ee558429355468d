//! The kernel of an operation on tensors of given metas, ready to run.

use std::ops::Deref;
use std::sync::Arc;

use super::{Kernel, Target, Width};
use crate::device::Device;
use crate::error::Result;
use crate::ops::call::Call;
#[cfg(test)]
use crate::ops::{Kind, View, call::Parts};

/// An operation that moves fewer bytes than this, and does little arithmetic per byte, is short.
const SHORT_BYTES: u64 = 256 << 10;

/// A call with its kernel. Immutable, and shared by equal calls.
#[derive(Clone)]
pub struct Prepared {
    call: Arc<Call>,
    /// What prepared it and runs it.
    pub target: &'static dyn Target,
    /// The number of threads it was prepared for.
    pub threads: usize,
    /// The kernel that computes the outputs.
    pub kernel: Arc<dyn Kernel>,
    /// How many threads the kernel uses.
    pub width: Width,
    /// Whether waiting for another thread would take longer than running it.
    pub is_short: bool,
}

impl Prepared {
    /// Prepares the kernel of a call on a device that runs operations.
    ///
    /// # Errors
    /// Errors of the target, such as a shortage of memory.
    pub fn new(call: Arc<Call>, device: &Device, threads: usize) -> Result<Self> {
        let target = super::target(device).expect("an engine runs what is prepared");
        let width = Width::of(call.cost(), threads);
        let kernel = target.prepare(&call.kind, &call.io(), width)?;
        Ok(Prepared::with(call, target, threads, kernel))
    }

    /// A call with a given kernel.
    pub fn with(
        call: Arc<Call>,
        target: &'static dyn Target,
        threads: usize,
        kernel: Arc<dyn Kernel>,
    ) -> Self {
        let cost = call.cost();
        let is_short = cost.bytes.max(cost.flops / 4) < SHORT_BYTES;
        let width = Width(Width::of(cost, threads).0.min(kernel.threads()));
        Prepared { call, target, threads, kernel, width, is_short }
    }

    /// The operation and the metas of its tensors.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }
}

impl Deref for Prepared {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.call.fmt(f)
    }
}

#[cfg(test)]
impl Prepared {
    /// Infers and checks an operation, and prepares its kernel on the device of its tensors, the
    /// host if there are none. Outputs may be given if their strides differ from the inferred ones.
    ///
    /// # Errors
    /// The errors of the family's checks, and as [`Prepared::new`].
    pub fn of(
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
        threads: usize,
    ) -> Result<Self> {
        let mut views = inputs.iter().chain(given.unwrap_or_default());
        let device = views.next().map_or(super::host(), |view| view.block.device());
        Prepared::new(Arc::new(Parts { kind, inputs, given }.call()?), device, threads)
    }

    /// Changes the call, for which the kernel was not made.
    pub fn change(&mut self, change: impl FnOnce(&mut Call)) {
        change(Arc::make_mut(&mut self.call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;
    use crate::dtype::DType;
    use crate::ops::Meta;
    use crate::ops::{Real, Scalar, copy, random};

    fn is_short(kind: Kind, inputs: &[Meta]) -> bool {
        let views: Vec<View> =
            inputs.iter().map(|m| View::of(cpu::device(), &Arc::new(m.clone()))).collect();
        Prepared::of(&kind, &views, None, 1).unwrap().is_short
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

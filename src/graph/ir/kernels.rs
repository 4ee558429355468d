//! The kernels of a queue's operations, before and after these are ordered and repeated.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::graph::{Op, Queue};
use crate::kernels::Prepared;
use crate::ops::Call;

/// A prepared kernel for each call of a queue, by the address of the call, which it keeps alive.
#[derive(Clone, Default, Debug)]
pub struct Kernels(FxHashMap<usize, (Arc<Call>, Arc<Prepared>)>);

impl Kernels {
    /// Prepares the kernels of a queue's operations, each distinct call once.
    ///
    /// # Errors
    /// Any error of `prepare`.
    pub fn of(
        queue: &Queue,
        mut prepare: impl FnMut(&Arc<Call>) -> Result<Arc<Prepared>>,
    ) -> Result<Kernels> {
        let mut kernels = Kernels::default();
        for op in queue.ops() {
            if kernels.find(&op.call).is_none() {
                kernels.insert(&op.call, prepare(&op.call)?);
            }
        }
        Ok(kernels)
    }

    /// Sets the kernel of a call.
    pub fn insert(&mut self, call: &Arc<Call>, kernel: Arc<Prepared>) {
        self.0.insert(Arc::as_ptr(call).addr(), (call.clone(), kernel));
    }

    /// The kernel of a call, if it is one of the queue's.
    pub fn find(&self, call: &Arc<Call>) -> Option<&Arc<Prepared>> {
        self.0.get(&Arc::as_ptr(call).addr()).map(|(_, kernel)| kernel)
    }

    /// The kernel of an operation of the queue, wherever it stands now.
    pub fn get(&self, op: &Op) -> &Arc<Prepared> {
        self.find(&op.call).expect("all calls of the queue were prepared")
    }

    /// Bytes of scratch that an operation needs.
    pub fn scratch(&self, op: &Op) -> usize {
        self.get(op).kernel.scratch()
    }
}

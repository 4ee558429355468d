//! Capturing work as a graph of CUDA, which one call puts on a stream.
#![allow(unsafe_code)]

use std::sync::Mutex;

use cudarc::driver::{result, sys};

use super::driver::Captured;
use super::installed::{done, log_failure};
use crate::device::Stream;
use crate::error::{Result, guarded, locked};

/// A stream on which work is only captured, so that nothing else is captured with it.
pub(super) struct Capturing {
    stream: Mutex<sys::CUstream>,
}

impl Capturing {
    /// In the context of the calling thread.
    pub(super) fn new() -> Result<Capturing> {
        let kind = result::stream::StreamKind::NonBlocking;
        let stream = done("cuStreamCreate", result::stream::create(kind))?;
        Ok(Capturing { stream: Mutex::new(stream) })
    }

    /// As [`super::Driver::capture`].
    pub(super) fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Captured> {
        use sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as OF_THIS_THREAD;
        let stream = locked(&self.stream);
        // SAFETY: the stream is this one's, and nobody else captures on it now.
        let begun = unsafe { result::stream::begin_capture(*stream, OF_THIS_THREAD) };
        done("cuStreamBeginCapture", begun)?;
        let put = guarded("capture", || work(Stream(stream.expose_provenance())));
        // SAFETY: the capture has begun; it ends whatever became of the work.
        let graph = unsafe { result::stream::end_capture(*stream) };
        let graph = done("cuStreamEndCapture", graph);
        let made = put.and(graph.clone()).and_then(|graph| {
            let mut made = std::ptr::null_mut();
            // SAFETY: the graph is whole.
            let instantiated = unsafe { sys::cuGraphInstantiateWithFlags(&mut made, graph, 0) };
            done("cuGraphInstantiate", instantiated.result())?;
            Ok(Captured(made.expose_provenance()))
        });
        if let Ok(graph) = graph {
            // SAFETY: what was made of it does not need it.
            log_failure("cuGraphDestroy", unsafe { result::graph::destroy(graph) });
        }
        made
    }
}

/// # Safety
/// As [`super::Driver::replay`], for work that is captured in this context.
pub(super) unsafe fn replay(captured: Captured, stream: sys::CUstream) -> Result<()> {
    // SAFETY: by the caller's promise.
    done("cuGraphLaunch", unsafe { result::graph::launch(graph(captured), stream) })
}

/// # Safety
/// As [`super::Driver::release`].
pub(super) unsafe fn release(captured: Captured) {
    // SAFETY: by the caller's promise; work that runs ends first.
    log_failure("cuGraphExecDestroy", unsafe { result::graph::exec_destroy(graph(captured)) });
}

fn graph(captured: Captured) -> sys::CUgraphExec {
    std::ptr::with_exposed_provenance_mut(captured.0)
}

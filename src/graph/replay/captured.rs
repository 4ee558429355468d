//! Replay on a device that captures work: what a run puts on the stream is captured once for the
//! addresses that it is bound to, and put there by one call from then on.

use std::ops::Range;
use std::sync::Mutex;

use super::Stopped;
use super::binding::Binding;
use crate::device::ending;
use crate::error::{Result, locked};
use crate::graph::Graph;
use crate::kernels::{Captured, Capturing};

/// The most stretches of nodes, each with addresses of its own, that are remembered.
const MOST: usize = 16;

/// See the module's documentation.
pub(super) struct Captures {
    device: &'static dyn Capturing,
    /// The nodes that wait for what the graph computes, so that they run one by one.
    waiting: Vec<usize>,
    /// The one that was used last comes last.
    known: Mutex<Vec<Known>>,
}

/// Nodes that have run with these addresses.
struct Known {
    nodes: Range<usize>,
    starts: Vec<*mut u8>,
    /// None until they run for the second time: addresses may never come back.
    work: Option<Box<dyn Captured>>,
}

// SAFETY: the addresses are only compared.
unsafe impl Send for Known {}

impl Captures {
    /// None where the graph's device does not capture.
    pub(super) fn new(graph: &Graph) -> Option<Captures> {
        let device = graph.kernels.first()?.target.capturing()?;
        let waits = |&n: &usize| graph.kernels[n].kernel.waits() && !graph.is_checked_before(n);
        let waiting = (0..graph.kernels.len()).filter(waits).collect();
        Some(Captures { device, waiting, known: Mutex::default() })
    }

    /// Runs nodes in recorded order.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    pub(super) unsafe fn run(&self, binding: &Binding, nodes: Range<usize>) -> Result<(), Stopped> {
        let mut first = nodes.start;
        for &node in self.waiting.iter().filter(|node| nodes.contains(node)) {
            // SAFETY: by the caller's promise.
            unsafe {
                self.stretch(binding, first..node)?;
                binding.run_all::<false>(node..node + 1)?;
            }
            first = node + 1;
        }
        // SAFETY: as above.
        unsafe { self.stretch(binding, first..nodes.end) }
    }

    /// Runs nodes of which none waits.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    unsafe fn stretch(&self, binding: &Binding, nodes: Range<usize>) -> Result<(), Stopped> {
        if nodes.is_empty() {
            return Ok(());
        }
        let at = |error| binding.stopped(nodes.start, error);
        ending::check().map_err(at)?;
        if nodes.len() == 1 {
            // SAFETY: by the caller's promise.
            return unsafe { binding.put_all(nodes, None) };
        }
        let mut known = locked(&self.known);
        let is_same = |one: &Known| one.nodes == nodes && one.starts == binding.starts();
        let Some(place) = known.iter().rposition(is_same) else {
            let starts = binding.starts().to_vec();
            if known.len() == MOST {
                known.remove(0);
            }
            known.push(Known { nodes: nodes.clone(), starts, work: None });
            // SAFETY: by the caller's promise.
            return unsafe { binding.put_all(nodes, None) };
        };
        known[place..].rotate_left(1);
        let known = known.last_mut().expect("one was found");
        if known.work.is_none() {
            let mut stopped = None;
            let captured = self.device.capture(&mut |stream| {
                // SAFETY: by the caller's promise.
                let put = unsafe { binding.put_all(nodes.clone(), Some(stream)) };
                put.map_err(|one| stopped.insert(one).error.clone())
            });
            known.work = Some(captured.map_err(|error| stopped.unwrap_or_else(|| at(error)))?);
        }
        let work = known.work.as_ref().expect("it is captured");
        // SAFETY: by the caller's promise; the addresses are those that are bound now.
        unsafe { work.put() }.map_err(at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::device::Stream;
    use crate::graph::Role::{Argument, Slot};
    use crate::graph::testing::Recorder;

    /// A device whose kernels run when they are captured.
    struct Fake {
        captures: AtomicUsize,
        puts: &'static AtomicUsize,
    }

    struct Put(&'static AtomicUsize);

    impl Captured for Put {
        unsafe fn put(&self) -> Result<()> {
            self.0.fetch_add(1, Relaxed);
            Ok(())
        }
    }

    impl Capturing for Fake {
        fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Box<dyn Captured>> {
            self.captures.fetch_add(1, Relaxed);
            work(Stream(9))?;
            Ok(Box::new(Put(self.puts)))
        }
    }

    /// The memory of four floats.
    #[repr(align(64))]
    struct Line([f32; 16]);

    /// Runs four nodes with these addresses in turn, of which some wait: how many stretches were
    /// captured, and how often what was captured was put on the stream.
    fn runs(waiting: &[usize], turns: impl IntoIterator<Item = usize>) -> (usize, usize) {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
        (0..4).for_each(|_| recorder.negate(&x, &y));
        let graph = recorder.graph().unwrap();
        let fake: &Fake = Box::leak(Box::new(Fake {
            captures: AtomicUsize::new(0),
            puts: Box::leak(Box::default()),
        }));
        let (waiting, known) = (waiting.to_vec(), Mutex::default());
        let captures = Captures { device: fake, waiting, known };
        let mut binding = Binding::new(&graph, std::ptr::dangling_mut());
        let mut lines: Vec<Line> = (0..40).map(|_| Line([1.0; 16])).collect();
        let lines: Vec<*mut u8> = lines.iter_mut().map(|line| line.0.as_mut_ptr().cast()).collect();
        for turn in turns {
            binding.bind(0, lines[turn]);
            binding.bind(1, lines[39]);
            // SAFETY: everything is bound.
            unsafe { captures.run(&binding, 0..4) }.unwrap();
        }
        (fake.captures.load(Relaxed), fake.puts.load(Relaxed))
    }

    #[test]
    fn what_runs_again_is_captured_once() {
        assert_eq!(runs(&[], [0]), (0, 0));
        assert_eq!(runs(&[], [0, 0, 0, 0]), (1, 3));
        assert_eq!(runs(&[], [0, 1, 0, 1, 0, 1]), (2, 4));
    }

    #[test]
    fn nodes_that_wait_run_between_what_is_captured() {
        assert_eq!(runs(&[2], [0, 0, 0]), (1, 2));
        assert_eq!(runs(&[0, 3], [0, 0, 0]), (1, 2));
        assert_eq!(runs(&[0, 1, 2, 3], [0, 0, 0]), (0, 0));
    }

    #[test]
    fn a_kernel_that_panics_stops_the_run_there() {
        let mut recorder = Recorder::default();
        let (x, y) = (recorder.tensor(Argument, 4), recorder.tensor(Slot, 4));
        recorder.negate(&x, &y);
        let call = recorder.queue.ops()[0].call.clone();
        let mut op = (**recorder.kernels.find(&call).unwrap()).clone();
        op.kernel = crate::kernels::kernel(0, |_| panic!("a bug"));
        recorder.kernels.insert(&call, op.into());
        let binding = Binding::new(&recorder.graph().unwrap(), std::ptr::dangling_mut());
        // SAFETY: the kernel touches nothing.
        let Stopped { node, error, .. } = unsafe { binding.put_all(0..1, None) }.unwrap_err();
        assert_eq!((node, error.to_string().contains("a bug")), (0, true));
    }

    #[test]
    fn addresses_that_never_come_back_are_forgotten() {
        assert_eq!(runs(&[], 0..39), (0, 0));
        assert_eq!(runs(&[], (0..MOST + 1).chain([0, 0])), (1, 1));
    }
}

//! Bare loops, and the running and timing of graphs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use singa_rs::graph::{Bound, Graph};
use singa_rs::kernels::Prepared;

/// A function, and its argument.
pub type Pair = (fn(&Prepared), Arc<Prepared>);

fn nothing(_: &Prepared) {}

/// The calls of a replay as a plain list of functions and contexts.
pub fn pairs(graph: &Graph) -> Vec<Pair> {
    let pair = |op: &Arc<Prepared>| (nothing as fn(&Prepared), op.clone());
    graph.kernels().iter().map(pair).collect()
}

pub fn bare(pairs: &[Pair]) {
    for (function, context) in pairs {
        function(context);
    }
}

/// A graph bound to memory that is never accessed.
pub fn bind(graph: &Graph) -> Bound {
    let anywhere = std::ptr::without_provenance_mut(1 << 20);
    let mut bound = Bound::new(graph, anywhere);
    (0..graph.roles().len() as u32).for_each(|block| bound.bind(block, anywhere));
    bound
}

pub fn run(bound: &Bound) {
    // SAFETY: the kernels access no memory.
    unsafe { bound.run() }.expect("nothing fails");
}

/// The shortest of several runs: interference from other processes only adds time.
pub fn least(rounds: usize, mut run: impl FnMut() -> Duration) -> Duration {
    (0..rounds).map(|_| run()).min().unwrap_or_default()
}

pub fn timed<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let made = run();
    let time = start.elapsed();
    drop(black_box(made));
    time
}

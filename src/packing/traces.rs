//! Synthetic workloads to compare planners with; the same for the same seed.

mod calls;
mod hard;

use super::Lifetime;
use super::random::Random;
pub use hard::{Kind, hard};

/// Pieces of memory to plan.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The lifetime of each piece.
    pub lifetimes: Vec<Lifetime>,
    /// The size of each piece in bytes.
    pub sizes: Vec<usize>,
}

impl Trace {
    fn push(&mut self, first: usize, last: usize, size: usize) {
        self.lifetimes.push(Lifetime { first: first as u32, last: last as u32 });
        self.sizes.push(size);
    }
}

/// The memory of a deep convolutional network's training step, eight pieces per layer: activations
/// that the backward pass reads in reverse, scratch, statistics, activation gradients that live
/// from one layer to the one before or across a residual connection, and weight gradients that an
/// optimizer uses at once. Channels and extents differ from layer to layer.
pub fn training(tensors: usize, seed: u64) -> Trace {
    let (mut trace, mut random) = (Trace::default(), Random::new(seed));
    let layers = tensors.div_ceil(8).max(1);
    let mut before = Layer::new(&mut random, 0, layers);
    for number in 0..layers {
        let layer = Layer::new(&mut random, number, layers);
        let across = if random.below(4) == 0 { random.below(3) + 1 } else { 0 };
        layer.push(&before, across, &mut trace);
        before = layer;
    }
    trace.lifetimes.truncate(tensors);
    trace.sizes.truncate(tensors);
    trace
}

/// A convolution with its normalisation and activation.
struct Layer {
    /// The first step of its forward and of its backward pass.
    forward: usize,
    backward: usize,
    channels: usize,
    extent: usize,
    scratch: usize,
}

impl Layer {
    /// Over the network, the extent halves and the channels roughly double three times.
    fn new(random: &mut Random, number: usize, layers: usize) -> Layer {
        let stage = number * 4 / layers;
        Layer {
            forward: 4 * number,
            backward: 4 * layers + 8 * (layers - 1 - number),
            channels: (8 + random.below(9)) << (2 + stage),
            extent: 56 >> stage,
            scratch: 64 * random.below(1 << 14),
        }
    }

    /// The bytes of an activation for a batch of eight images.
    fn activation(&self) -> usize {
        4 * 8 * self.channels * self.extent * self.extent
    }

    /// Adds its pieces; the gradient of its output lives for `across` more layers of the backward
    /// pass.
    fn push(&self, before: &Layer, across: usize, trace: &mut Trace) {
        let (f, b, activation) = (self.forward, self.backward, self.activation());
        trace.push(f, b + 5, activation);
        trace.push(f, f, self.scratch);
        trace.push(f + 1, b + 3, 8 * self.channels);
        trace.push(f + 2, b + 8, activation);
        trace.push(b + 1, b + 3 + 8 * across, activation);
        trace.push(b + 3, b + 6, activation);
        trace.push(b + 5, b + 6, 4 * 9 * self.channels * before.channels);
        trace.push(b + 6, b + 9, before.activation());
    }
}

/// Pieces whose lifetimes (shape 1.2) and sizes (shape 1.5) follow Pareto distributions, two
/// beginning at each step: most are small and short-lived, a few large or long-lived.
pub fn pareto(tensors: usize, seed: u64) -> Trace {
    let (mut trace, mut random) = (Trace::default(), Random::new(seed));
    let steps = tensors.div_ceil(2);
    let mut draw = |shape: f64, most: f64| (1.0 - random.unit()).powf(-1.0 / shape).min(most);
    for number in 0..tensors {
        let (first, lasts) = (number / 2, draw(1.2, 1e5) as usize);
        trace.push(first, (first + lasts).min(steps), 64 * draw(1.5, 1e6) as usize);
    }
    trace
}

/// The bytes that [`packing`] fills, and the number of steps.
pub const PACKED: (usize, usize) = (1 << 20, 1000);

/// The most boxes that [`packing`] can cut.
pub const MOST_BOXES: usize = 1000;

/// A rectangle of memory and time ([`PACKED`]) that is cut repeatedly, at random places in random
/// directions, into boxes of at least 1/4096 of its area. An arena of its height holds the boxes,
/// which are in random order, without a gap. `boxes` is at most [`MOST_BOXES`]. If `is_loose`, one
/// box in twenty is a tenth lower, which leaves gaps.
pub fn packing(boxes: usize, seed: u64, is_loose: bool) -> Trace {
    let mut random = Random::new(seed);
    let mut parts = vec![Part { first: 0, steps: PACKED.1, units: PACKED.0 / UNIT }];
    while parts.len() < boxes {
        let at = random.below(parts.len());
        if let Some((part, other)) = parts[at].cut(&mut random) {
            parts[at] = part;
            parts.push(other);
        }
    }
    let mut trace = Trace::default();
    while !parts.is_empty() {
        let part = parts.swap_remove(random.below(parts.len()));
        let less = if is_loose && random.below(20) == 0 { part.units.div_ceil(10) } else { 0 };
        trace.push(part.first, part.first + part.steps - 1, UNIT * (part.units - less));
    }
    trace
}

/// Sizes are multiples of this many bytes.
const UNIT: usize = 64;

/// A rectangle of some units of memory for some steps.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    steps: usize,
    units: usize,
}

impl Part {
    /// Cuts it in two, unless a part would be too small.
    fn cut(self, random: &mut Random) -> Option<(Part, Part)> {
        let (mut one, mut other) = (self, self);
        if random.below(2) == 0 {
            one.steps = random.below(self.steps);
            (other.first, other.steps) = (self.first + one.steps, self.steps - one.steps);
        } else {
            one.units = random.below(self.units);
            other.units = self.units - one.units;
        }
        let least = PACKED.0 / UNIT * PACKED.1 / 4096;
        let is_large = |part: &Part| part.steps * part.units >= least;
        (is_large(&one) && is_large(&other)).then_some((one, other))
    }
}

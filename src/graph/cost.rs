//! An estimate of how long operations take. It decides what is worth doing, never what is computed,
//! and knows nothing of the machine, so that the same recording always gives the same graph.

use crate::ops::Prepared;

/// What the call of a kernel takes at least, in nanoseconds.
const CALL: f64 = 100.0;
/// Bytes that a thread moves in a nanosecond while they are in the caches, and beyond that.
const NEAR: f64 = 32.0;
/// See `NEAR`.
const FAR: f64 = 12.0;
/// Bytes of an operation that are taken to be in the caches.
const CACHED: f64 = (8 << 20) as f64;
/// Floating-point operations that a thread computes in a nanosecond where they are many for each
/// byte, as in matrix products and convolutions, once these are large enough.
const DENSE: f64 = 128.0;
/// The same elsewhere, where they stand for exponential functions and the like, and in small products.
const SPARSE: f64 = 16.0;
/// The operations a byte from which on they are many: more than GELU has, the costliest of those
/// that go element by element.
const MANY: f64 = 8.0;
/// A product of fewer operations is small.
const SMALL: f64 = (64 << 10) as f64;

/// An estimate of an operation's time on one thread, in nanoseconds.
pub fn nanoseconds(op: &Prepared) -> f64 {
    CALL + work(op)
}

/// The part of it in which the kernel works. The constants are fitted to the kernels of an LSTM (in
/// the caches), a Transformer and a ResNet (not), on one processor; what counts are their ratios.
pub fn work(op: &Prepared) -> f64 {
    let cost = op.cost();
    let (bytes, flops) = (cost.bytes as f64, cost.flops as f64);
    let (near, far) = (bytes.min(CACHED), (bytes - CACHED).max(0.0));
    let (behind, made) = (cost.behind as f64, (cost.flops - cost.behind) as f64);
    let slow = behind + if made > MANY * bytes { made.min(SMALL) } else { made };
    near / NEAR + far / FAR + slow / SPARSE + (flops - slow) / DENSE
}

#[cfg(test)]
mod tests;

//! An estimate of how long operations take. It decides what is worth doing, never what is computed,
//! and does not depend on the machine, so that the same recording always gives the same graph.

use crate::ops::Call;

/// The minimum time of a kernel call, in nanoseconds.
const CALL: f64 = 100.0;
/// Bytes that a thread moves per nanosecond while they are in cache; `FAR` applies beyond that.
const NEAR: f64 = 32.0;
/// See `NEAR`.
const FAR: f64 = 12.0;
/// How many bytes of an operation are assumed to be in cache.
const CACHED: f64 = (8 << 20) as f64;
/// Floating-point operations per nanosecond and thread at high arithmetic intensity, as in matrix
/// products and convolutions that are large enough.
const DENSE: f64 = 128.0;
/// The same at low intensity, where operations stand for exponentials and the like, and in small
/// products.
const SPARSE: f64 = 16.0;
/// Operations per byte above which the intensity is high: more than GELU has, the costliest
/// elementwise operation.
const MANY: f64 = 8.0;
/// A product of fewer operations is small.
const SMALL: f64 = (64 << 10) as f64;

/// An estimate of an operation's time on one thread, in nanoseconds.
pub fn nanoseconds(call: &Call) -> f64 {
    CALL + work(call)
}

/// The same without the overhead of the call. The constants are fitted to the kernels of an LSTM
/// (in cache), a Transformer and a ResNet (beyond it) on one processor; only their ratios matter.
pub fn work(call: &Call) -> f64 {
    let cost = call.cost();
    let (bytes, flops) = (cost.bytes as f64, cost.flops as f64);
    let (near, far) = (bytes.min(CACHED), (bytes - CACHED).max(0.0));
    let (behind, made) = (cost.behind as f64, (cost.flops - cost.behind) as f64);
    let is_product = behind > 0.0 || made > MANY * bytes;
    let slow = behind + if is_product { made.min(SMALL) } else { made };
    near / NEAR + far / FAR + slow / SPARSE + (flops - slow) / DENSE
}

#[cfg(test)]
mod tests;

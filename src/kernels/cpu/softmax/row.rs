//! Steps of softmax over contiguous values.

use std::ops::Range;

use crate::kernels::cpu::isa::Level;
use crate::kernels::cpu::wide::Wide;

/// The number of a row's values that are buffered at a time.
pub const CHUNK: usize = 2048;
/// The number of independent partial results.
const LANES: usize = 16;

/// A row's values, or the buffered part of them.
pub type Buffer<W> = [W; CHUNK];

/// The chunks of a row of `len` values.
#[inline(always)]
pub fn chunks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(CHUNK).map(move |start| start..len.min(start + CHUNK))
}

/// The greater of `so_far` and the greatest value; NaNs are ignored.
#[inline(always)]
pub fn greatest<W: Wide>(values: &[W], so_far: W) -> W {
    let mut lanes = [so_far; LANES];
    let (full, rest) = values.as_chunks::<LANES>();
    for chunk in full {
        for l in 0..LANES {
            lanes[l] = greater(lanes[l], chunk[l]);
        }
    }
    let mut most = so_far;
    for &value in lanes.iter().chain(rest) {
        most = greater(most, value);
    }
    most
}

#[inline(always)]
fn greater<W: Wide>(a: W, b: W) -> W {
    if b > a { b } else { a }
}

/// The sum of `f` over pairs of values, in float64 and in a fixed order.
#[inline(always)]
pub fn sum<W: Wide>(a: &[W], b: &[W], f: impl Fn(W, W) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((full_a, rest_a), (full_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in full_a.iter().zip(full_b) {
        for l in 0..LANES {
            lanes[l] += f(a[l], b[l]);
        }
    }
    for (l, (&a, &b)) in rest_a.iter().zip(rest_b).enumerate() {
        lanes[l] += f(a, b);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] += lanes[l + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `values[i] = exp(values[i] - shift)`.
#[inline(always)]
pub fn exponentials<L: Level, W: Wide>(values: &mut [W], shift: W) {
    for value in values {
        *value = (*value - shift).exp::<L>();
    }
}

/// The greatest value of a row, and the sum of exp(value - greatest). `load` reads a chunk;
/// the exponentials of the last chunk stay in the buffer.
#[inline(always)]
pub fn scan<L: Level, W: Wide>(
    len: usize,
    buffer: &mut Buffer<W>,
    load: impl Fn(&Range<usize>, &mut [W]),
) -> (W, f64) {
    let mut most = W::of(f64::NEG_INFINITY);
    for chunk in chunks(len) {
        let values = &mut buffer[..chunk.len()];
        load(&chunk, values);
        most = greatest(values, most);
    }
    let mut total = 0.0;
    for chunk in chunks(len) {
        let values = &mut buffer[..chunk.len()];
        if len > CHUNK {
            load(&chunk, values);
        }
        exponentials::<L, W>(values, most);
        total += sum(values, values, |value, _| value.to_f64());
    }
    (most, total)
}

//! Layer and root mean square normalisation, and their gradients, row by row.
#![allow(unsafe_code)]

pub mod forward;
pub mod gradient;

use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};

/// The number of independent partial sums of a row.
const LANES: usize = 32;
/// So many elements of a row are added up in the type of the computation; such sums in float64.
const SHORT: usize = 1024;

/// Slices of one length in chunks of as many elements as there are partial sums, and what is left.
#[inline(always)]
fn chunks<W, const N: usize>(all: [&[W]; N]) -> ([&[[W; LANES]]; N], [&[W]; N]) {
    let count = all[0].len() / LANES;
    let full = all.map(|one| &one.as_chunks::<LANES>().0[..count]);
    (full, all.map(|one| &one[count * LANES..]))
}

/// Partial sums, added up in pairs.
#[inline(always)]
fn total<W: Wide>(mut lanes: [W; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = lanes[l] + lanes[l + half];
        }
        half /= 2;
    }
    lanes[0].to_f64()
}

/// Lets `fill` write a row of the first output: in place, unless one of these inputs, which it reads,
/// is there.
///
/// # Safety
/// The row is within the output, and belongs to one thread.
#[inline(always)]
unsafe fn write<W: Wide + Sum>(
    access: &Access<W>,
    io: &Io,
    inputs: &[usize],
    run: Run,
    buffer: &mut [W],
    fill: impl FnOnce(&mut [W]),
) {
    let to: *mut u8 = io.output(0);
    let is_read = inputs.iter().any(|&i| io.input(i) == to.cast_const());
    // SAFETY: by the caller's promise.
    unsafe { access.write(to, run, (buffer, !is_read), fill) };
}

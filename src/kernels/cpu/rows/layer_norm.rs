//! Layer and root mean square normalisation.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::{Known, LAST, RowFn, Rows};
use crate::error::Result;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::layer_norm::LayerNorm;
use crate::ops::rms_norm::RmsNorm;
use crate::ops::{Family, Meta};

/// Prepares (x, scale, bias) -> (y, mean, inverse); bias may be left out.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn layer_norm(op: &LayerNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (x, bias) = (io[0], io.len() - 4);
    match io.len() {
        6 => forward::<true, 3>(op.name(), op.eps.0, x, &[io[1], io[bias]], io[3], width),
        _ => forward::<true, 2>(op.name(), op.eps.0, x, &[io[1]], io[2], width),
    }
}

/// Prepares (x, scale) -> (y, inverse).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm(op: &RmsNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    forward::<false, 2>(op.name(), op.eps.0, io[0], &[io[1]], io[2], width)
}

/// The kernel of the forward pass of `I` inputs, with the rows' means subtracted if `CENTRED`.
fn forward<const CENTRED: bool, const I: usize>(
    name: &'static str,
    eps: f64,
    x: &Meta,
    vectors: &[&Meta],
    y: &Meta,
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let n = x.shape[1] as f64;
    let vectors = [vectors[0], vectors[vectors.len() - 1]].map(|vector| expanded(vector, x));
    crate::dispatch!(float x.dtype, T => {
        let inputs = [x, &vectors[0], &vectors[1]];
        let rows = Rows::new(y, &inputs, 1, 0, Access::of::<T>(), width).or_columns(false);
        Ok(kernel(0, move |io| rows.run::<I>(io, Forward::<CENTRED> { io, n, eps })))
    }, else => not_float(name, x))
}

/// A vector as rows that are all equal.
fn expanded(vector: &Meta, x: &Meta) -> Meta {
    Meta { strides: smallvec::smallvec![0, vector.strides[0]], ..x.clone() }
}

/// Known are the mean (0 unless `CENTRED`), and the inverse of the deviation from it.
#[derive(Clone, Copy)]
struct Forward<'a, const CENTRED: bool> {
    io: &'a Io<'a>,
    /// The number of elements of a row.
    n: f64,
    eps: f64,
}

impl<W: Wide, const C: bool, const I: usize> RowFn<W, I> for Forward<'_, C> {
    type Stat = W;

    #[inline(always)]
    fn sums(self) -> usize {
        1 + usize::from(C)
    }

    #[inline(always)]
    fn reads(self, pass: usize, input: usize) -> bool {
        input == 0 || pass == LAST
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, x: [W; I], [mean, ..]: Known<W>) -> f64 {
        let d = (x[0] - mean).to_f64();
        if C && P == 1 { d } else { d * d }
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        let mean = total / self.n;
        match C && P == 1 {
            true => known[0] = W::of(mean),
            false => known[1] = W::of(1.0 / (mean + self.eps).sqrt()),
        }
    }

    #[inline(always)]
    fn element<L: Level>(self, x: [W; I], [mean, inverse, ..]: Known<W>) -> W {
        let y = (x[0] - mean) * inverse * x[1];
        if I > 2 { y + x[2] } else { y }
    }

    #[inline(always)]
    fn done(self, row: usize, known: Known<W>) {
        let made = &known[usize::from(!C)..2];
        for (i, &value) in made.iter().enumerate() {
            // SAFETY: the statistics have an element for each row.
            unsafe { self.io.output::<W>(1 + i).add(row).write(value) };
        }
    }
}

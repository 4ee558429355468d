//! What the kernels share: sums by channel, and the coefficients computed from them.
#![allow(unsafe_code)]

use super::formulas::{COEFFICIENTS, Deviation};
use super::passes::{Out, Pass, sum};
use super::tiles::Tiles;
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::space;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::{Io, Width};
use crate::ops::Meta;

/// The most inputs of a kernel.
pub(super) const INPUTS: usize = 7;

/// The data a kernel is prepared with.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) tiles: Tiles,
    parts: usize,
    pub(super) eps: f64,
    /// Strides of the inputs that have one element per channel, by input number.
    steps: [isize; INPUTS],
}

impl Setup {
    /// The setup for x (or dx), dy and the result.
    pub(super) fn new(metas: [&Meta; 3], inputs: &[&Meta], eps: f64, width: Width) -> Setup {
        let tiles = Tiles::new(metas);
        let parts = width.seats(tiles.count());
        let step = |i: usize| inputs.get(i).map_or(0, |m| m.strides[0]);
        Setup { tiles, parts, eps, steps: std::array::from_fn(step) }
    }

    pub(super) fn pass<'a, A>(
        &'a self,
        access: Access<A>,
        io: &'a Io<'a>,
        x: usize,
        dy: usize,
    ) -> Pass<'a, A> {
        Pass { access, tiles: &self.tiles, parts: self.parts, io, x, dy }
    }

    /// Bytes of the sums, and of the coefficients that follow them.
    pub(super) fn space<A: Sum>(&self) -> [usize; 2] {
        let channels = self.tiles.channels;
        let sums = space::bytes::<f64>([2 * self.tiles.chunks * channels]);
        [sums, space::bytes::<A>([channels; COEFFICIENTS])]
    }

    /// Element `c` of input `i`, which has one element per channel.
    pub(super) fn parameter<A: Sum>(&self, io: &Io, i: usize, c: usize) -> f64 {
        // SAFETY: the input has an element for each channel, of the type that x computes in.
        unsafe { *io.input::<A>(i).offset(c as isize * self.steps[i]) }.to_f64()
    }

    /// The first element of a channel of input 0, the centre of the deviations.
    fn pivot<A: Sum>(&self, access: Access<A>, io: &Io, c: usize) -> f64 {
        // SAFETY: input 0 has elements in each channel.
        let first = unsafe { access.get(io.input(0), self.tiles.first(c)) }.to_f64();
        if first.is_finite() { first } else { 0.0 }
    }

    /// Both sums of a channel, adding the chunks in order.
    pub(super) fn totals(&self, io: &Io, c: usize) -> [f64; 2] {
        let Tiles { chunks, channels, .. } = self.tiles;
        // SAFETY: the scratch memory starts with the sums, which are complete.
        let sum = |place: usize| unsafe { *io.scratch::<f64>().add(place * channels + c) };
        [0, 1].map(|which| (0..chunks).map(|chunk| sum(which * chunks + chunk)).sum())
    }

    /// Computes each channel's coefficients.
    pub(super) fn coefficients<'a, A: Sum>(
        &self,
        io: &Io<'a>,
        of: impl Fn(usize) -> [f64; COEFFICIENTS] + Sync,
    ) -> Result<[&'a [A]; COEFFICIENTS]> {
        let channels = self.tiles.channels;
        // SAFETY: the coefficients follow the sums.
        let arrays = unsafe {
            let at = io.scratch::<u8>().add(self.space::<A>()[0]);
            space::arrays::<A, COEFFICIENTS>(at, [channels; COEFFICIENTS])
        };
        let out = arrays.map(|array| Out(array.as_mut_ptr()));
        team::ranges(channels, 1, self.parts, &|range, _| {
            for c in range {
                let values = of(c).map(A::from_f64);
                // SAFETY: each channel is in one range.
                out.into_iter().zip(values).for_each(|(out, value)| unsafe { out.set(c, value) });
            }
        })?;
        // SAFETY: the arrays have this length, and are complete.
        Ok(out.map(|out| unsafe { std::slice::from_raw_parts(out.0, channels) }))
    }

    /// The coefficients that map x to the wanted mean and variance; `keep` receives each channel's
    /// mean, variance, factor and term.
    pub(super) fn measure<'a, A: Wide + Sum>(
        &self,
        access: Access<A>,
        io: &'a Io<'a>,
        keep: impl Fn(usize, [f64; 4]) + Sync,
    ) -> Result<[&'a [A]; COEFFICIENTS]> {
        let (pass, n) = (self.pass(access, io, 0, 0), self.tiles.rows() as f64);
        let (sums, no_relu) = (Out(io.scratch::<f64>()), |_| [A::ZERO; 3]);
        // SAFETY: the scratch memory starts with the sums.
        unsafe { sum::<A, Deviation>(pass, sums, |c| self.pivot(access, io, c), no_relu) }?;
        self.coefficients::<A>(io, |c| {
            let (pivot, [first, second]) = (self.pivot(access, io, c), self.totals(io, c));
            let mean = pivot + first / n;
            let var = (second - first * (first / n)) / n;
            let var = if var < 0.0 { 0.0 } else { var };
            let factor = self.parameter::<A>(io, 1, c) / (var + self.eps).sqrt();
            // The term compensates for the rounding of the mean.
            let lost = (A::from_f64(mean).to_f64() - mean) * factor;
            let lost = if lost.is_finite() { lost } else { 0.0 };
            let term = self.parameter::<A>(io, 2, c) + lost;
            keep(c, [mean, var, factor, term]);
            [mean, factor, term, 0.0, 0.0, 0.0]
        })
    }
}

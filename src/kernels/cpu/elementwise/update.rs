//! One pass over a parameter, its gradient and up to two moments, updating all but the gradient.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::simd::wide::{Float, Wide, gather, scatter};
use crate::kernels::cpu::strided::walk::Walk;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::Meta;

/// The minimum number of elements per thread; a multiple of a cache line for every dtype.
const GRAIN: usize = 1024;
/// The number of elements gathered at a time where they are not contiguous.
const CHUNK: usize = 512;

/// The formula of an update, with its hyperparameters.
pub trait Formula: Sync {
    /// Updates a piece of the parameter `p` and its moments from the gradient `g`; moments that
    /// the formula does not have are empty.
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], moments: [&mut [A]; 2]);
}

/// The tensors of an update: the number of moments, and the common walk.
struct Operands {
    moments: usize,
    walk: Walk<4>,
    parts: usize,
}

/// Prepares the pass over inputs 0 (parameter), 1 (gradient) and `moments`, which are outputs 0 and
/// 1, 2; `read` reads the hyperparameters.
pub fn prepare<P: Float, R: Formula>(
    io: &[&Meta],
    moments: &[usize],
    width: Width,
    read: impl Fn(&Io) -> R + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    let input = |m: usize| moments.get(m).map_or(io[0], |&i| io[i]);
    let metas = [io[0], io[1], input(0), input(1)];
    let operands = Operands { moments: moments.len(), walk: Walk::in_tiles(metas), parts: width.0 };
    kernel(0, move |io| {
        let formula = read(io);
        team::ranges(operands.walk.elements(), GRAIN, operands.parts, &|range, _| {
            if operands.is_direct::<P>() {
                operands.direct::<P::Wide>(io, range, &formula);
            } else {
                operands.gathered::<P>(io, range, &formula);
            }
        })
    })
}

/// A formula and its operands: the only code compiled for each instruction set.
struct Apply<'a, R, A> {
    formula: &'a R,
    p: &'a mut [A],
    g: &'a [A],
    moments: [&'a mut [A]; 2],
}

impl<R: Formula, A: Wide> Body for Apply<'_, R, A> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        self.formula.step(self.p, self.g, self.moments);
    }
}

impl Operands {
    /// Whether the formula can work on the tensors in place.
    fn is_direct<P: Float>(&self) -> bool {
        let inner = self.walk.inner();
        let long = inner.extent >= 64 || inner.extent == self.walk.elements();
        P::IS_WIDE && long && inner.strides == [1; 4]
    }

    fn direct<A: Wide>(&self, io: &Io, range: Range<usize>, formula: &impl Formula) {
        for (at, n) in self.walk.runs(range) {
            let moment = |m: usize| -> &mut [A] {
                if m >= self.moments {
                    return &mut [];
                }
                // SAFETY: the run is within the moment, and this part of it belongs to this thread.
                unsafe {
                    std::slice::from_raw_parts_mut(io.output::<A>(m + 1).offset(at[m + 2]), n)
                }
            };
            // SAFETY: as above; state does not overlap any other input.
            let (p, g) = unsafe {
                let p = std::slice::from_raw_parts_mut(io.output::<A>(0).offset(at[0]), n);
                (p, std::slice::from_raw_parts(io.input::<A>(1).offset(at[1]), n))
            };
            isa::run(Isa::active(), Apply { formula, p, g, moments: [moment(0), moment(1)] });
        }
    }

    fn gathered<P: Float>(&self, io: &Io, range: Range<usize>, formula: &impl Formula) {
        let mut buffers = [[P::Wide::default(); CHUNK]; 4];
        for start in range.clone().step_by(CHUNK) {
            let chunk = start..range.end.min(start + CHUNK);
            let n = chunk.len();
            self.load::<P>(io, chunk.clone(), &mut buffers);
            let [p, g, a, b] = &mut buffers;
            let kept = |m: usize| if m < self.moments { n } else { 0 };
            let moments = [&mut a[..kept(0)], &mut b[..kept(1)]];
            isa::run(Isa::active(), Apply { formula, p: &mut p[..n], g: &g[..n], moments });
            self.store::<P>(io, chunk, &buffers);
        }
    }

    fn load<P: Float>(&self, io: &Io, chunk: Range<usize>, to: &mut [[P::Wide; CHUNK]; 4]) {
        let strides = self.walk.inner().strides;
        let mut done = 0;
        for (at, n) in self.walk.runs(chunk) {
            let here = done..done + n;
            // SAFETY: the runs are within the tensors.
            unsafe {
                gather(io.output::<P>(0).offset(at[0]), strides[0], &mut to[0][here.clone()]);
                gather(io.input::<P>(1).offset(at[1]), strides[1], &mut to[1][here.clone()]);
                for m in 0..self.moments {
                    let from = io.output::<P::Wide>(m + 1).offset(at[m + 2]);
                    gather(from, strides[m + 2], &mut to[m + 2][here.clone()]);
                }
            }
            done += n;
        }
    }

    fn store<P: Float>(&self, io: &Io, chunk: Range<usize>, from: &[[P::Wide; CHUNK]; 4]) {
        let strides = self.walk.inner().strides;
        let mut done = 0;
        for (at, n) in self.walk.runs(chunk) {
            let here = done..done + n;
            // SAFETY: the runs are within the tensors, and this part belongs to this thread.
            unsafe {
                scatter(&from[0][here.clone()], io.output::<P>(0).offset(at[0]), strides[0]);
                for m in 0..self.moments {
                    let to = io.output::<P::Wide>(m + 1).offset(at[m + 2]);
                    scatter(&from[m + 2][here.clone()], to, strides[m + 2]);
                }
            }
            done += n;
        }
    }
}

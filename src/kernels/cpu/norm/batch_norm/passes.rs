//! The two passes over the data: sums of each channel, and a formula for each element.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use super::formulas::{COEFFICIENTS, Formula, Term};
use super::tiles::{LANES, Tile, Tiles};
use crate::device::team;
use crate::error::Result;
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;

/// The tensors of a pass: the input numbers of x (or whatever takes its place) and dy.
#[derive(Clone, Copy)]
pub struct Pass<'a, A> {
    pub access: Access<A>,
    pub tiles: &'a Tiles,
    pub parts: usize,
    pub io: &'a Io<'a>,
    pub x: usize,
    pub dy: usize,
}

/// Runs a body for every tile.
fn for_tiles<A: Wide, B: Body<Output = ()>>(
    pass: Pass<A>,
    make: impl Fn(Tile) -> B + Sync,
) -> Result<()> {
    let count = pass.tiles.count();
    team::ranges(count, 1, pass.parts, &|range, _| {
        for index in range {
            A::Reach::run(Isa::active(), make(pass.tiles.get(index)));
        }
    })
}

/// For each channel and chunk, with `d` the deviation of x from the channel's centre: sums of the
/// term u and of u times d, in float64. `sums` holds them as two matrices, chunks x channels.
///
/// # Safety
/// The inputs have the metas that the tiles were made for; `sums` has room for all the sums.
pub unsafe fn sum<A: Wide + Sum, T: Term + Send + Sync>(
    pass: Pass<A>,
    sums: Out<f64>,
    centre: impl Fn(usize) -> f64 + Sync,
    relu: impl Fn(usize) -> [A; 3] + Sync,
) -> Result<()> {
    let (centre, relu, term) = (&centre, &relu, PhantomData::<T>);
    for_tiles(pass, |tile| SumTile { pass, tile, sums, centre, relu, term })
}

/// An address that several threads write to, each at its own places.
pub struct Out<A>(pub *mut A);

impl<A> Clone for Out<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Out<A> {}

// SAFETY: only an address; `set` is responsible for exclusive access.
unsafe impl<A> Send for Out<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Out<A> {}

impl<A> Out<A> {
    /// # Safety
    /// The place can be written, and nothing else accesses it.
    #[inline(always)]
    pub unsafe fn set(self, place: usize, value: A) {
        // SAFETY: by the caller's promise.
        unsafe { self.0.add(place).write(value) };
    }
}

struct SumTile<'a, A, F, G, T> {
    pass: Pass<'a, A>,
    tile: Tile,
    sums: Out<f64>,
    centre: &'a F,
    relu: &'a G,
    term: PhantomData<T>,
}

impl<A, F, G, T> Body for SumTile<'_, A, F, G, T>
where
    A: Wide + Sum,
    F: Fn(usize) -> f64,
    G: Fn(usize) -> [A; 3],
    T: Term,
{
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Pass { access, tiles, io, x, dy, .. } = self.pass;
        let (mut centres, mut relus) = ([0.0; LANES], [[A::default(); LANES]; 3]);
        let mut sums = [[0.0; LANES]; 2];
        let mut buffers = [[A::default(); LANES]; 2];
        tiles.spread(&self.tile, &mut centres, self.centre);
        if T::IS_RECTIFIED {
            for (which, lanes) in relus.iter_mut().enumerate() {
                tiles.spread(&self.tile, lanes, |c| (self.relu)(c)[which]);
            }
        }
        tiles.pieces(&self.tile, |piece| {
            let [for_x, for_dy] = &mut buffers;
            // SAFETY: the pieces are within the inputs; dy is read only if the term uses it.
            let (x, dy) = unsafe {
                let x = access.read(io.input(x), piece.run(0), for_x);
                (x, if T::READS_DY { access.read(io.input(dy), piece.run(1), for_dy) } else { x })
            };
            add::<A, T>(&mut sums, x, dy, &centres, &relus);
        });
        let (chunk, channels) = (self.tile.chunk, tiles.channels);
        for (which, lanes) in sums.iter().enumerate() {
            let row = (which * tiles.chunks + chunk) * channels;
            // SAFETY: each tile has its own sums.
            tiles.collect(&self.tile, lanes, |c, sum| unsafe { self.sums.set(row + c, sum) });
        }
    }
}

#[inline(always)]
fn add<A: Wide + Sum, T: Term>(
    [first, second]: &mut [[f64; LANES]; 2],
    x: &[A],
    dy: &[A],
    centres: &[f64; LANES],
    relus: &[[A; LANES]; 3],
) {
    // Written out, since loops over `array::map` are not vectorised.
    let [a, b, c] = relus;
    let relus = a.iter().zip(b).zip(c);
    let lanes = first.iter_mut().zip(second).zip(centres.iter().zip(relus));
    for (((first, second), (centre, ((a, b), c))), (x, dy)) in lanes.zip(x.iter().zip(dy)) {
        let d = x.to_f64() - centre;
        let u = T::of(*x, *dy, d, [*a, *b, *c]);
        *first += u;
        *second += u * d;
    }
}

/// Computes output 0 by a formula; each array of `coefficients` has one element per channel.
///
/// # Safety
/// The tensors have the metas that the tiles were made for.
pub unsafe fn map<A: Wide + Sum, F: Formula + Send + Sync>(
    pass: Pass<A>,
    coefficients: [&[A]; COEFFICIENTS],
) -> Result<()> {
    for_tiles(pass, |tile| Map::<A, F> { pass, tile, coefficients, formula: PhantomData })
}

struct Map<'a, A, F> {
    pass: Pass<'a, A>,
    tile: Tile,
    coefficients: [&'a [A]; COEFFICIENTS],
    formula: PhantomData<F>,
}

impl<A: Wide + Sum, F: Formula> Body for Map<'_, A, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Pass { access, tiles, io, x, dy, .. } = self.pass;
        let mut lanes = [[A::default(); LANES]; COEFFICIENTS];
        let mut buffers = [[A::default(); LANES]; 3];
        for (lanes, values) in lanes.iter_mut().zip(self.coefficients) {
            tiles.spread(&self.tile, lanes, |c| values[c]);
        }
        tiles.pieces(&self.tile, |piece| {
            let [for_x, for_dy, to] = &mut buffers;
            let [reads_x, reads_dy] = F::READS;
            // SAFETY: the pieces are within the tensors; a formula that does not read an input gets
            // the other one instead.
            unsafe {
                let x = if reads_x { access.read(io.input(x), piece.run(0), for_x) } else { &[] };
                let dy = if reads_dy { access.read(io.input(dy), piece.run(1), for_dy) } else { x };
                let x = if reads_x { x } else { dy };
                access.write(io.output(0), piece.run(2), (to, true), |to| {
                    formula::<F, _>(to, x, dy, &lanes)
                });
            }
        });
    }
}

#[inline(always)]
fn formula<F: Formula, A: Wide>(
    to: &mut [A],
    x: &[A],
    dy: &[A],
    lanes: &[[A; LANES]; COEFFICIENTS],
) {
    let n = to.len();
    // Written out, since loops over `array::map` are not vectorised.
    let [a, b, c, d, e, f] = lanes;
    let (x, dy, a, b, c) = (&x[..n], &dy[..n], &a[..n], &b[..n], &c[..n]);
    let (d, e, f) = (&d[..n], &e[..n], &f[..n]);
    for i in 0..n {
        to[i] = F::of(x[i], dy[i], [a[i], b[i], c[i], d[i], e[i], f[i]]);
    }
}

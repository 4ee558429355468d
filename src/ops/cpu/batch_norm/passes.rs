//! The two passes over the data: sums of each channel, and a formula for each element.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use super::super::access::Access;
use super::super::isa::{self, Body, Isa, Level};
use super::super::tile::Sum;
use super::super::wide::Wide;
use super::formulas::{COEFFICIENTS, Formula, Term};
use super::tiles::{LANES, Tile, Tiles};
use crate::device::team;
use crate::error::Result;
use crate::ops::Io;

/// The tensors of a pass: x (or what stands for it) and dy among the inputs.
#[derive(Clone, Copy)]
pub struct Pass<'a, A> {
    pub access: Access<A>,
    pub tiles: &'a Tiles,
    pub parts: usize,
    pub io: &'a Io<'a>,
    pub x: usize,
    pub dy: usize,
}

/// Runs a piece of work for every tile.
fn for_tiles<A: Sum, B: Body<Output = ()>>(
    pass: Pass<A>,
    make: impl Fn(Tile) -> B + Sync,
) -> Result<()> {
    let count = pass.tiles.count();
    team::parallel(pass.parts, &|part| {
        for index in team::share(count, 1, pass.parts, part) {
            isa::run(Isa::active(), make(pass.tiles.get(index)));
        }
    })
}

/// For each channel and chunk of it, where `d` is x less the channel's centre: sums of u and of u
/// times d, in float64. `sums` holds them as two matrices, chunks x channels.
///
/// # Safety
/// The inputs have the metas that the tiles were made for; `sums` addresses as many float64.
pub unsafe fn sum<A: Wide + Sum, T: Term + Send + Sync>(
    pass: Pass<A>,
    sums: Out<f64>,
    centre: impl Fn(usize) -> f64 + Sync,
    relu: impl Fn(usize) -> [A; 3] + Sync,
) -> Result<()> {
    let (centre, relu, term) = (&centre, &relu, PhantomData::<T>);
    for_tiles(pass, |tile| SumTile { pass, tile, sums, centre, relu, term })
}

/// An address that parts write to, each in places of its own.
pub struct Out<A>(pub *mut A);

impl<A> Clone for Out<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Out<A> {}

// SAFETY: an address only; who writes takes care.
unsafe impl<A> Send for Out<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Out<A> {}

impl<A> Out<A> {
    /// # Safety
    /// The place can be written, and nobody else accesses it.
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
            // SAFETY: the pieces lie in the inputs, of which dy is read where it matters.
            let (x, dy) = unsafe {
                let x = access.read(io.input(x), piece.run(0), for_x);
                (x, if T::READS_DY { access.read(io.input(dy), piece.run(1), for_dy) } else { x })
            };
            add::<A, T>(&mut sums, x, dy, &centres, &relus);
        });
        let (chunk, channels) = (self.tile.chunk, tiles.channels);
        for (which, lanes) in sums.iter().enumerate() {
            let row = (which * tiles.chunks + chunk) * channels;
            // SAFETY: each tile has sums of its own.
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
    // Spelled out, since loops over `array::map` are not vectorised.
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

/// Computes output 0 by a formula; `coefficients` are arrays of one a channel each.
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
            // SAFETY: the pieces lie in the tensors; a formula that does not read an input gets
            // the other one.
            unsafe {
                let x = if reads_x { access.read(io.input(x), piece.run(0), for_x) } else { &[] };
                let dy = if reads_dy { access.read(io.input(dy), piece.run(1), for_dy) } else { x };
                let x = if reads_x { x } else { dy };
                access
                    .write(io.output(0), piece.run(2), to, |to| formula::<F, _>(to, x, dy, &lanes));
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
    // Spelled out, since loops over `array::map` are not vectorised.
    let [a, b, c, d, e, f] = lanes;
    let (x, dy, a, b, c) = (&x[..n], &dy[..n], &a[..n], &b[..n], &c[..n]);
    let (d, e, f) = (&d[..n], &e[..n], &f[..n]);
    for i in 0..n {
        to[i] = F::of(x[i], dy[i], [a[i], b[i], c[i], d[i], e[i], f[i]]);
    }
}

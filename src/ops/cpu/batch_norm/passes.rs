//! The two passes over the data: sums of each channel, and a formula for each element.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use super::super::access::Access;
use super::super::isa::{self, Body, Isa, Level};
use super::super::tile::Sum;
use super::super::wide::Wide;
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

/// For each channel and chunk of it, where `d` is x less the channel's centre: sums of d and of
/// d squared, or (`GRADIENT`) of dy and of dy times d; in float64. `sums` holds them as two
/// matrices, chunks x channels.
///
/// # Safety
/// The inputs have the metas that the tiles were made for; `sums` addresses as many float64.
pub unsafe fn sum<A: Sum, const GRADIENT: bool>(
    pass: Pass<A>,
    sums: Out<f64>,
    centre: impl Fn(usize) -> f64 + Sync,
) -> Result<()> {
    let centre = &centre;
    for_tiles(pass, |tile| SumTile::<A, _, GRADIENT> { pass, tile, sums, centre })
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

struct SumTile<'a, A, F, const GRADIENT: bool> {
    pass: Pass<'a, A>,
    tile: Tile,
    sums: Out<f64>,
    centre: &'a F,
}

impl<A: Sum, F: Fn(usize) -> f64, const GRADIENT: bool> Body for SumTile<'_, A, F, GRADIENT> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Pass { access, tiles, io, x, dy, .. } = self.pass;
        let (mut centres, mut sums) = ([0.0; LANES], [[0.0; LANES]; 2]);
        let mut buffers = [[A::default(); LANES]; 2];
        tiles.spread(&self.tile, &mut centres, self.centre);
        tiles.pieces(&self.tile, |piece| {
            let [for_x, for_dy] = &mut buffers;
            // SAFETY: the pieces lie in the inputs, of which dy is read where it matters.
            let (x, dy) = unsafe {
                let x = access.read(io.input(x), piece.run(0), for_x);
                (x, if GRADIENT { access.read(io.input(dy), piece.run(1), for_dy) } else { x })
            };
            let [first, second] = &mut sums;
            let lanes = first.iter_mut().zip(second).zip(&centres);
            for (((first, second), centre), (x, dy)) in lanes.zip(x.iter().zip(dy)) {
                let d = x.to_f64() - centre;
                let u = if GRADIENT { dy.to_f64() } else { d };
                *first += u;
                *second += u * d;
            }
        });
        let (chunk, channels) = (self.tile.chunk, tiles.channels);
        for (which, lanes) in sums.iter().enumerate() {
            let row = (which * tiles.chunks + chunk) * channels;
            // SAFETY: each tile has sums of its own.
            tiles.collect(&self.tile, lanes, |c, sum| unsafe { self.sums.set(row + c, sum) });
        }
    }
}

/// What is computed for each element.
pub trait Formula {
    /// Whether it reads x, and dy.
    const READS: [bool; 2];
    /// The element, given the channel's coefficients.
    fn of<A: Wide>(x: A, dy: A, coefficients: [A; 4]) -> A;
}

/// y = (x - mean) * scale + shift.
pub struct Normalize;

impl Formula for Normalize {
    const READS: [bool; 2] = [true, false];
    #[inline(always)]
    fn of<A: Wide>(x: A, _: A, [mean, scale, shift, _]: [A; 4]) -> A {
        (x - mean) * scale + shift
    }
}

/// dx = dy * scale + (x - mean) * slope + shift.
pub struct Gradient;

impl Formula for Gradient {
    const READS: [bool; 2] = [true, true];
    #[inline(always)]
    fn of<A: Wide>(x: A, dy: A, [mean, scale, shift, slope]: [A; 4]) -> A {
        dy * scale + ((x - mean) * slope + shift)
    }
}

/// dx = dy * scale.
pub struct Scale;

impl Formula for Scale {
    const READS: [bool; 2] = [false, true];
    #[inline(always)]
    fn of<A: Wide>(_: A, dy: A, [_, scale, _, _]: [A; 4]) -> A {
        dy * scale
    }
}

/// Computes output 0 by a formula; `coefficients` are four arrays of one a channel each.
///
/// # Safety
/// The tensors have the metas that the tiles were made for.
pub unsafe fn map<A: Wide + Sum, F: Formula + Send + Sync>(
    pass: Pass<A>,
    coefficients: [&[A]; 4],
) -> Result<()> {
    for_tiles(pass, |tile| Map::<A, F> { pass, tile, coefficients, formula: PhantomData })
}

struct Map<'a, A, F> {
    pass: Pass<'a, A>,
    tile: Tile,
    coefficients: [&'a [A]; 4],
    formula: PhantomData<F>,
}

impl<A: Wide + Sum, F: Formula> Body for Map<'_, A, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Pass { access, tiles, io, x, dy, .. } = self.pass;
        let mut lanes = [[A::default(); LANES]; 4];
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
fn formula<F: Formula, A: Wide>(to: &mut [A], x: &[A], dy: &[A], lanes: &[[A; LANES]; 4]) {
    let n = to.len();
    let [a, b, c, d] = lanes;
    let (x, dy, a, b, c, d) = (&x[..n], &dy[..n], &a[..n], &b[..n], &c[..n], &d[..n]);
    for i in 0..n {
        to[i] = F::of(x[i], dy[i], [a[i], b[i], c[i], d[i]]);
    }
}

//! The passes over a row, or over several of them.
#![allow(unsafe_code)]

use std::ops::Range;

use super::{CHUNK, Known, LAST, RowFn, Rows, TENSORS};
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Run;
use crate::kernels::cpu::strided::walk::Dim;

/// The number of independent partial results of a row.
const LANES: usize = 16;

/// Rows cut into pieces of evenly spaced elements: of a single row, or one of each row.
#[derive(Default)]
pub(super) struct Pieces {
    at: [isize; TENSORS],
    /// From piece to piece, and from element to element.
    steps: [[isize; TENSORS]; 2],
    /// The number of elements, and of those of each piece but the last.
    elements: usize,
    full: usize,
    /// The number of pieces.
    count: usize,
}

impl Pieces {
    #[inline(always)]
    pub(super) fn of_row(at: [isize; TENSORS], axis: Dim<TENSORS>) -> Self {
        let steps = [axis.strides.map(|s| s * CHUNK as isize), axis.strides];
        let (elements, count) = (axis.extent, axis.extent.div_ceil(CHUNK));
        Pieces { at, steps, elements, full: CHUNK, count }
    }

    #[inline(always)]
    pub(super) fn of_tile(
        at: [isize; TENSORS],
        axis: Dim<TENSORS>,
        steps: [isize; TENSORS],
        width: usize,
    ) -> Self {
        let (steps, elements) = ([axis.strides, steps], axis.extent * width);
        Pieces { at, steps, elements, full: width, count: axis.extent }
    }

    /// The elements of piece `p`.
    #[inline(always)]
    fn range(&self, p: usize) -> Range<usize> {
        p * self.full..self.elements.min((p + 1) * self.full)
    }

    /// Where piece `p` of tensor `t` is.
    #[inline(always)]
    fn run(&self, p: usize, t: usize) -> Run {
        let start = self.at[t] + p as isize * self.steps[0][t];
        Run { start, step: self.steps[1][t], length: self.range(p).len() }
    }
}

/// What is known of each row.
type Columns<S, const C: usize> = Known<[S; C]>;

/// One row (`C` is 1), or up to `C` of them.
pub(super) struct Block<'a, W, F: RowFn<W, I>, const I: usize, const C: usize>
where
    W: Wide + Sum,
{
    rows: &'a Rows<W>,
    io: &'a Io<'a>,
    f: F,
    /// The number of the first row.
    row: usize,
    pieces: Pieces,
    values: [&'a mut [W]; I],
    /// Where the current piece of the second and of the third input is: in the buffer, or in place.
    others: [*const W; 2],
    known: Columns<F::Stat, C>,
    /// Whether the values of all pieces fit the buffers; then, which inputs are there.
    is_held: bool,
    loaded: [bool; 3],
}

impl<'a, W, F: RowFn<W, I>, const I: usize, const C: usize> Block<'a, W, F, I, C>
where
    W: Wide + Sum,
{
    #[inline(always)]
    pub(super) fn new(rows: &'a Rows<W>, io: &'a Io<'a>, f: F, values: [&'a mut [W]; I]) -> Self {
        let known = Known::<F::Stat>::default().map(|s| [s; C]);
        let (pieces, others, loaded) = (Pieces::default(), [std::ptr::null(); 2], [false; 3]);
        Block { rows, io, f, row: 0, pieces, values, others, known, is_held: false, loaded }
    }

    #[inline(always)]
    pub(super) fn run<L: Level>(&mut self, row: usize, pieces: Pieces) {
        (self.row, self.pieces, self.loaded) = (row, pieces, [false; 3]);
        // Only the current piece of other inputs is known.
        let room = if I == 1 { self.values[0].len() } else { self.pieces.full };
        self.is_held = self.pieces.elements <= room;
        let [a, b, c, d] = self.f.start(row);
        self.known = [[a; C], [b; C], [c; C], [d; C]];
        if F::SEEKS {
            self.seek::<L>();
        }
        self.sum::<L, 1>();
        self.sum::<L, 2>();
        self.sum::<L, 3>();
        if F::MAPS {
            self.map::<L>();
        }
        for c in 0..self.pieces.full.min(C) {
            self.f.done(row + c, at(&self.known, c));
        }
    }

    /// Reads piece `p` of input `i`, if a pass reads it and it is not there.
    #[inline(always)]
    fn load(&mut self, i: usize, pass: usize, p: usize, here: &Range<usize>) {
        if !self.f.reads(pass, i) || self.loaded[i] {
            return;
        }
        let (to, access) = (&mut self.values[i][here.clone()], self.rows.access);
        let is_made = self.f.makes(i, self.row, self.pieces.range(p), to);
        let (from, run) = (self.io.input(self.rows.first_input + i), self.pieces.run(p, i + 1));
        // SAFETY: the piece is within the input.
        unsafe {
            match i {
                0 => access.copy(from, run, to),
                _ if is_made => self.others[i - 1] = to.as_ptr(),
                _ => self.others[i - 1] = access.read(from, run, to).as_ptr(),
            }
        }
    }

    /// The place of piece `p` in the buffers, with what a pass reads of it.
    #[inline(always)]
    fn fetch<L: Level>(&mut self, pass: usize, p: usize) -> Range<usize> {
        let range = self.pieces.range(p);
        let here = if self.is_held { range } else { 0..range.len() };
        // Written out, so that the buffers are addressed by constants.
        self.load(0, pass, p, &here);
        if I > 1 {
            self.load(1, pass, p, &here);
        }
        if I > 2 {
            self.load(2, pass, p, &here);
        }
        if pass == 1 || pass > 1 && !self.is_held && self.f.keeps() {
            prepare::<W, F, L, I, C>(self.f, &mut self.values[0][here.clone()], &self.known);
        }
        here
    }

    #[inline(always)]
    fn pass_ends(&mut self, pass: usize) {
        let loads = |i: usize| {
            let is_kept = i > 0 || pass != 1 || self.f.keeps();
            is_kept && self.is_held && (self.loaded[i] || self.f.reads(pass, i))
        };
        self.loaded = [loads(0), loads(1), loads(2)];
    }

    /// Pass 0: the greatest values.
    #[inline(always)]
    fn seek<L: Level>(&mut self) {
        let mut most = [W::LOWEST; C];
        for p in 0..self.pieces.count {
            let here = self.fetch::<L>(0, p);
            raise(&mut most, &self.values[0][here]);
        }
        self.pass_ends(0);
        (0..C).for_each(|c| self.known[0][c] = self.f.greatest(most[c]));
    }

    /// Pass `P`: a sum.
    #[inline(always)]
    fn sum<L: Level, const P: usize>(&mut self) {
        if P > self.f.sums() {
            return;
        }
        let mut totals = [0.0; C];
        for p in 0..self.pieces.count {
            let here = self.fetch::<L>(P, p);
            let x = &self.values[0][here];
            let is_read = I > 1 && self.f.reads(P, I - 1);
            // SAFETY: the inputs are loaded.
            let yz = unsafe { is_read.then(|| slices::<W, I>(self.others, x.len())) };
            let [y, z] = yz.unwrap_or([x; 2]);
            total::<W, F, L, I, C, P>(self.f, [x, y, z], &self.known, &mut totals);
        }
        self.pass_ends(P);
        for c in 0..C {
            let mut known = at(&self.known, c);
            self.f.summed::<P>(totals[c], &mut known);
            self.known.iter_mut().zip(known).for_each(|(to, s)| to[c] = s);
        }
    }

    /// The last pass: the result.
    #[inline(always)]
    fn map<L: Level>(&mut self) {
        for p in 0..self.pieces.count {
            let here = self.fetch::<L>(LAST, p);
            // SAFETY: the inputs are loaded.
            let yz = (I > 1).then(|| unsafe { slices::<W, I>(self.others, here.len()) });
            let yz = yz.unwrap_or_default();
            let x = &mut self.values[0][here.clone()];
            map::<W, F, L, I, C>(self.f, x, yz, &self.known);
            let (to, run) = (self.io.output(0), self.pieces.run(p, 0));
            // SAFETY: the piece is within the output, and belongs to one thread.
            unsafe { self.rows.access.store(&self.values[0][here], to, run) };
        }
    }
}

/// `n` elements of the second and of the third input; the second stands in for the third.
///
/// # Safety
/// There are so many, which are not written meanwhile.
#[inline(always)]
unsafe fn slices<'a, W, const I: usize>(at: [*const W; 2], n: usize) -> [&'a [W]; 2] {
    // SAFETY: by the caller's promise.
    [at[0], at[if I > 2 { 1 } else { 0 }]].map(|at| unsafe { std::slice::from_raw_parts(at, n) })
}

/// What is known of column `c`.
#[inline(always)]
fn at<S: Copy + Default, const C: usize>(known: &Columns<S, C>, c: usize) -> Known<S> {
    debug_assert!(C == 1 || c < C);
    let mut column = Known::default();
    for s in 0..column.len() {
        // SAFETY: a piece of several rows has at most `C` elements.
        column[s] = unsafe { *known[s].get_unchecked(if C == 1 { 0 } else { c }) };
    }
    column
}

#[inline(always)]
fn prepare<W: Wide, F: RowFn<W, I>, L: Level, const I: usize, const C: usize>(
    f: F,
    values: &mut [W],
    known: &Columns<F::Stat, C>,
) {
    let one = at(known, 0);
    for (c, x) in values.iter_mut().enumerate() {
        *x = f.prepared::<L>(*x, if C == 1 { one } else { at(known, c) });
    }
}

/// Raises each row's greatest value, or the row's.
#[inline(always)]
fn raise<W: Wide, const C: usize>(most: &mut [W; C], values: &[W]) {
    if C == 1 {
        most[0] = greatest(values, most[0]);
    } else {
        most.iter_mut().zip(values).for_each(|(most, &value)| *most = greater(*most, value));
    }
}

/// Adds the terms to each row's total, or to the row's.
#[inline(always)]
fn total<W: Wide, F: RowFn<W, I>, L: Level, const I: usize, const C: usize, const P: usize>(
    f: F,
    [x, y, z]: [&[W]; 3],
    known: &Columns<F::Stat, C>,
    totals: &mut [f64; C],
) {
    if C == 1 {
        let known = at(known, 0);
        totals[0] += sum([x, y, z], |x, y, z| f.term::<L, P>(inputs(x, y, z), known));
        return;
    }
    let (n, totals) = (x.len(), &mut totals[..x.len()]);
    let (y, z) = (&y[..n], &z[..n]);
    for c in 0..n {
        totals[c] += f.term::<L, P>(inputs(x[c], y[c], z[c]), at(known, c));
    }
}

/// Puts the result in the place of the first input.
#[inline(always)]
fn map<W: Wide, F: RowFn<W, I>, L: Level, const I: usize, const C: usize>(
    f: F,
    x: &mut [W],
    [y, z]: [&[W]; 2],
    known: &Columns<F::Stat, C>,
) {
    let one = at(known, 0);
    let known = |c| if C == 1 { one } else { at(known, c) };
    if I == 1 {
        x.iter_mut().enumerate().for_each(|(c, x)| *x = f.element::<L>([*x; I], known(c)));
        return;
    }
    let n = x.len();
    let (y, z) = (&y[..n], &z[..n]);
    for c in 0..n {
        x[c] = f.element::<L>(inputs(x[c], y[c], z[c]), known(c));
    }
}

/// The first of these elements.
#[inline(always)]
fn inputs<W: Copy, const I: usize>(x: W, y: W, z: W) -> [W; I] {
    let mut all = [x; I];
    if I > 1 {
        all[1] = y;
    }
    if I > 2 {
        all[2] = z;
    }
    all
}

/// The greater of `so_far` and the greatest value; NaNs are ignored.
#[inline(always)]
fn greatest<W: Wide>(values: &[W], so_far: W) -> W {
    let mut lanes = [so_far; LANES];
    let (full, rest) = values.as_chunks::<LANES>();
    for chunk in full {
        for l in 0..LANES {
            lanes[l] = greater(lanes[l], chunk[l]);
        }
    }
    lanes.iter().chain(rest).fold(so_far, |most, &value| greater(most, value))
}

#[inline(always)]
fn greater<W: Wide>(a: W, b: W) -> W {
    if b > a { b } else { a }
}

/// The sum of the terms, in a fixed order.
#[inline(always)]
fn sum<W: Wide>([x, y, z]: [&[W]; 3], term: impl Fn(W, W, W) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let n = x.len();
    let (y, z) = (&y[..n], &z[..n]);
    let full = n / LANES;
    for chunk in 0..full {
        let [x, y, z] = [x, y, z].map(|values| &values.as_chunks::<LANES>().0[chunk]);
        for l in 0..LANES {
            lanes[l] += term(x[l], y[l], z[l]);
        }
    }
    for (l, i) in (full * LANES..n).enumerate() {
        lanes[l] += term(x[i], y[i], z[i]);
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

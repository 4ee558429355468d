//! Dropout: masks drawn and applied in one pass.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::philox::{BLOCKS, State};
use super::random::{Bernoulli, MOST};
use super::walk::Walk;
use super::wide::{Float, Wide, gather};
use crate::device::team;
use crate::dtype::Bool;
use crate::ops::{Io, Kernel, Meta, Width, kernel};

/// Groups of [`MOST`] elements that a thread takes at least.
const GRAIN: usize = 16;

/// Prepares (x, state) -> (y, mask), both outputs dense in one order.
pub fn forward<T: Float>(io: &[&Meta], ratio: f64, width: Width) -> Arc<dyn Kernel> {
    let pass = Pass { walk: Walk::in_memory_order([io[2], io[0]]), scale: 1.0 / (1.0 - ratio) };
    let drop = Bernoulli::new(ratio);
    kernel(0, move |io| {
        let state = State::read(io, 1);
        team::parallel(width.0, &|part| {
            let range = team::share(pass.walk.elements(), MOST * GRAIN, width.0, part);
            isa::run(
                Isa::active(),
                Forward::<T> { io, pass: &pass, range, state, drop, like: PhantomData },
            );
        })
    })
}

/// Prepares (dy, mask) -> dx, dense.
pub fn backward<T: Float>(io: &[&Meta], ratio: f64, width: Width) -> Arc<dyn Kernel> {
    let walk = Walk::in_memory_order([io[2], io[0], io[1]]);
    let pass = Pass { walk, scale: 1.0 / (1.0 - ratio) };
    kernel(0, move |io| {
        team::parallel(width.0, &|part| {
            let range = team::share(pass.walk.elements(), MOST * GRAIN, width.0, part);
            isa::run(Isa::active(), Backward::<T> { io, pass: &pass, range, like: PhantomData });
        })
    })
}

/// How output and inputs lie, and what kept elements are multiplied with.
struct Pass<const N: usize> {
    walk: Walk<N>,
    scale: f64,
}

impl<const N: usize> Pass<N> {
    /// The elements of input 0 in a group, widened.
    #[inline(always)]
    fn load<T: Float>(&self, io: &Io, group: Range<usize>) -> [T::Wide; MOST] {
        let mut values = [T::Wide::default(); MOST];
        let (step, mut done) = (self.walk.inner().strides[1], 0);
        self.walk.runs(group, |at, n| {
            // SAFETY: the run lies within the input.
            unsafe { gather(io.input::<T>(0).offset(at[1]), step, &mut values[done..done + n]) };
            done += n;
        });
        values
    }

    /// Writes the scaled elements of a group to output 0, and zero where they are not kept.
    #[inline(always)]
    fn store<T: Float>(
        &self,
        io: &Io,
        group: Range<usize>,
        values: [T::Wide; MOST],
        keep: [bool; MOST],
    ) {
        let scale = T::Wide::of(self.scale);
        let zero = T::Wide::default();
        let scaled: [T::Wide; MOST] =
            std::array::from_fn(|i| if keep[i] { values[i] * scale } else { zero });
        let n = group.len();
        // SAFETY: the output is dense in walking order, and this thread has this part of it.
        let out = unsafe { std::slice::from_raw_parts_mut(io.output::<T>(0).add(group.start), n) };
        T::narrow_slice(&scaled[..n], out);
    }
}

/// The groups that elements `range`, whose start is a group's, are made of.
#[inline(always)]
fn groups(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(MOST).map(move |start| start..range.end.min(start + MOST))
}

struct Forward<'a, T> {
    io: &'a Io<'a>,
    pass: &'a Pass<2>,
    range: Range<usize>,
    state: State,
    drop: Bernoulli,
    like: PhantomData<T>,
}

impl<T: Float> Body for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        for group in groups(self.range) {
            let words = self.state.blocks(group.start / (4 * BLOCKS));
            let keep = self.drop.truths(&words).map(|dropped| !dropped);
            // SAFETY: the mask is dense in walking order, and this thread has this part of it.
            let mask = unsafe {
                let first = self.io.output::<Bool>(1).add(group.start);
                std::slice::from_raw_parts_mut(first, group.len())
            };
            mask.iter_mut().zip(keep).for_each(|(mask, keep)| *mask = keep.into());
            let values = self.pass.load::<T>(self.io, group.clone());
            self.pass.store::<T>(self.io, group, values, keep);
        }
    }
}

struct Backward<'a, T> {
    io: &'a Io<'a>,
    pass: &'a Pass<3>,
    range: Range<usize>,
    like: PhantomData<T>,
}

impl<T: Float> Body for Backward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let step = self.pass.walk.inner().strides[2];
        for group in groups(self.range) {
            let (mut keep, mut done) = ([false; MOST], 0);
            self.pass.walk.runs(group.clone(), |at, n| {
                for i in 0..n {
                    // SAFETY: the run lies within the mask.
                    let kept =
                        unsafe { *self.io.input::<Bool>(1).offset(at[2] + i as isize * step) };
                    keep[done + i] = kept.get();
                }
                done += n;
            });
            let values = self.pass.load::<T>(self.io, group.clone());
            self.pass.store::<T>(self.io, group, values, keep);
        }
    }
}

//! Tiles: the computation of an elementwise loop, built from functions of one element.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::dtype::Element;
use crate::kernels::cpu::isa::{Body, Isa, Level, Reach};

/// A function of contiguous elements: `M - 1` inputs and an output.
pub trait Tile<const M: usize>: Send + Sync {
    /// Computes `len` elements.
    ///
    /// # Safety
    /// `at` are the inputs and the output, each `len` elements of the type that the tile was made
    /// for, and the output does not overlap the inputs.
    unsafe fn run(&self, at: &[*mut u8; M], len: usize);

    /// Whether it only copies, so that the loop may move elements itself.
    fn is_identity(&self) -> bool {
        false
    }
}

/// A function of one element. All its callees must be `#[inline(always)]`.
pub trait Map1<A, O>: Send + Sync + 'static {
    /// The instruction sets it is compiled for.
    type Reach: Reach;

    /// The result.
    fn at<L: Level>(&self, a: A) -> O;
}

/// A function of two elements. All its callees must be `#[inline(always)]`.
pub trait Map2<A, B, O>: Send + Sync + 'static {
    /// The instruction sets it is compiled for.
    type Reach: Reach;

    /// The result.
    fn at<L: Level>(&self, a: A, b: B) -> O;
}

/// A function of three elements. All its callees must be `#[inline(always)]`.
pub trait Map3<A, B, C, O>: Send + Sync + 'static {
    /// The instruction sets it is compiled for.
    type Reach: Reach;

    /// The result.
    fn at<L: Level>(&self, a: A, b: B, c: C) -> O;
}

struct Each<F, T> {
    f: F,
    isa: Isa,
    types: PhantomData<fn() -> T>,
}

impl<F, T> Each<F, T> {
    fn new(f: F, isa: Isa) -> Box<Self> {
        Box::new(Each { f, isa, types: PhantomData })
    }
}

/// A tile from a function of one element.
pub fn map1<A: Element, O: Element>(isa: Isa, f: impl Map1<A, O>) -> Box<dyn Tile<2>> {
    Each::<_, (A, O)>::new(f, isa)
}

/// A tile from a function of two elements.
pub fn map2<A: Element, B: Element, O: Element>(
    isa: Isa,
    f: impl Map2<A, B, O>,
) -> Box<dyn Tile<3>> {
    Each::<_, (A, B, O)>::new(f, isa)
}

/// A tile from a function of three elements.
pub fn map3<A: Copy + 'static, B: Copy + 'static, C: Copy + 'static, O: Copy + 'static>(
    isa: Isa,
    f: impl Map3<A, B, C, O>,
) -> Box<dyn Tile<4>> {
    Each::<_, (A, B, C, O)>::new(f, isa)
}

struct Run<'a, F, I, O> {
    f: &'a F,
    inputs: I,
    output: &'a mut [O],
}

impl<F: Map1<A, O>, A: Copy, O> Body for Run<'_, F, &[A], O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for (o, a) in self.output.iter_mut().zip(self.inputs) {
            *o = self.f.at::<L>(*a);
        }
    }
}

impl<F: Map2<A, B, O>, A: Copy, B: Copy, O> Body for Run<'_, F, (&[A], &[B]), O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for ((o, a), b) in self.output.iter_mut().zip(self.inputs.0).zip(self.inputs.1) {
            *o = self.f.at::<L>(*a, *b);
        }
    }
}

impl<F: Map3<A, B, C, O>, A: Copy, B: Copy, C: Copy, O> Body for Run<'_, F, (&[A], &[B], &[C]), O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let (a, b, c) = self.inputs;
        for (((o, a), b), c) in self.output.iter_mut().zip(a).zip(b).zip(c) {
            *o = self.f.at::<L>(*a, *b, *c);
        }
    }
}

/// # Safety
/// There are `len` elements at `at`.
unsafe fn slice<'a, T>(at: *mut u8, len: usize) -> &'a [T] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

/// # Safety
/// There are `len` elements at `at`, which nothing else accesses.
unsafe fn slice_mut<'a, T>(at: *mut u8, len: usize) -> &'a mut [T] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), len) }
}

impl<F: Map1<A, O>, A: Copy, O> Tile<2> for Each<F, (A, O)> {
    unsafe fn run(&self, at: &[*mut u8; 2], len: usize) {
        // SAFETY: by the caller's promise.
        let (inputs, output) = unsafe { (slice::<A>(at[0], len), slice_mut::<O>(at[1], len)) };
        F::Reach::run(self.isa, Run { f: &self.f, inputs, output })
    }
}

impl<F: Map2<A, B, O>, A: Copy, B: Copy, O> Tile<3> for Each<F, (A, B, O)> {
    unsafe fn run(&self, at: &[*mut u8; 3], len: usize) {
        // SAFETY: by the caller's promise.
        let (a, b) = unsafe { (slice::<A>(at[0], len), slice::<B>(at[1], len)) };
        // SAFETY: as above.
        let output = unsafe { slice_mut::<O>(at[2], len) };
        F::Reach::run(self.isa, Run { f: &self.f, inputs: (a, b), output })
    }
}

impl<F, A: Copy, B: Copy, C: Copy, O> Tile<4> for Each<F, (A, B, C, O)>
where
    F: Map3<A, B, C, O>,
{
    unsafe fn run(&self, at: &[*mut u8; 4], len: usize) {
        // SAFETY: by the caller's promise.
        let inputs = unsafe { (slice(at[0], len), slice(at[1], len), slice(at[2], len)) };
        // SAFETY: as above.
        let output = unsafe { slice_mut::<O>(at[3], len) };
        F::Reach::run(self.isa, Run { f: &self.f, inputs, output })
    }
}

/// A tile that copies elements of `size` bytes.
pub fn identity(size: usize) -> Box<dyn Tile<2>> {
    Box::new(Identity { size })
}

struct Identity {
    size: usize,
}

impl Tile<2> for Identity {
    unsafe fn run(&self, at: &[*mut u8; 2], len: usize) {
        // SAFETY: by the caller's promise.
        unsafe { at[1].copy_from_nonoverlapping(at[0], len * self.size) };
    }

    fn is_identity(&self) -> bool {
        true
    }
}

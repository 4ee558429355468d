//! Tiles: the computation of an elementwise loop, built from functions of one element.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::strided::access::copy;

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

/// A function of one element of each input, given as a tuple. All its callees must be
/// `#[inline(always)]`.
pub trait Map<I, O>: Copy + Send + Sync + 'static {
    /// The instruction sets it is compiled for.
    type Reach: Reach;

    /// The result.
    fn at<L: Level>(&self, inputs: I) -> O;
}

/// A [`Map`] as a tile.
struct Each<F, I, O> {
    f: F,
    isa: Isa,
    types: PhantomData<fn(I) -> O>,
}

/// A tile from a function of one element of each input.
#[allow(private_bounds)]
pub fn map<I: 'static, O: 'static, const M: usize, F: Map<I, O>>(f: F) -> Box<dyn Tile<M>>
where
    Each<F, I, O>: Tile<M>,
{
    Box::new(Each { f, isa: Isa::active(), types: PhantomData })
}

struct Run<'a, F, I, O> {
    f: &'a F,
    inputs: I,
    output: &'a mut [O],
}

macro_rules! tiles {
    ($operands:literal: $($A:ident $a:ident),* => $o:ident in $each:pat) => {
        impl<F: Map<($($A,)*), O>, $($A: Copy,)* O> Body for Run<'_, F, ($(&[$A],)*), O> {
            type Output = ();
            #[inline(always)]
            fn run<L: Level>(self) {
                // A copy of its own cannot be overwritten by what the loop writes.
                let (f, ($($a,)*)) = (*self.f, self.inputs);
                for $each in self.output.iter_mut()$(.zip($a))* {
                    *$o = f.at::<L>(($(*$a,)*));
                }
            }
        }

        impl<F: Map<($($A,)*), O>, $($A: Copy,)* O> Tile<$operands> for Each<F, ($($A,)*), O> {
            unsafe fn run(&self, at: &[*mut u8; $operands], len: usize) {
                let [$($a,)* output] = *at;
                // SAFETY: by the caller's promise.
                let (inputs, output) = unsafe {
                    let inputs = ($(std::slice::from_raw_parts($a.cast::<$A>(), len),)*);
                    (inputs, std::slice::from_raw_parts_mut(output.cast::<O>(), len))
                };
                F::Reach::run(self.isa, Run { f: &self.f, inputs, output })
            }
        }
    };
}
tiles!(2: A a => o in (o, a));
tiles!(3: A a, B b => o in ((o, a), b));
tiles!(4: A a, B b, C c => o in (((o, a), b), c));

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
        unsafe { copy(at[0].cast_const(), at[1], len * self.size) };
    }

    fn is_identity(&self) -> bool {
        true
    }
}

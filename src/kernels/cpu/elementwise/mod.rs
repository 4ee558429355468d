//! Elementwise operations: the functions of the tables in `ops`, compiled into tiles for
//! [`loops`](crate::kernels::cpu::strided::loops).

mod binary;
pub mod optimizers;
mod unary;
pub mod update;

use std::sync::Arc;

pub use binary::{binary, binary_scalar};
pub use unary::{unary, unary_grad};

use crate::dtype::Bool;
use crate::kernels::cpu::simd::isa::{Least, Level};
use crate::kernels::cpu::strided::loops::{Loop, Map, Operand, Tile, map};
use crate::kernels::{Kernel, Width};
use crate::ops::Meta;

/// The loop of a tile that computes in float32 on elements of half precision.
fn looped<const M: usize>(tile: Box<dyn Tile<M>>, io: &[&Meta], width: Width) -> Arc<dyn Kernel> {
    Arc::new(Loop::new(tile, std::array::from_fn(|i| Operand::widened(io[i])), width))
}

/// Prepares (condition, a, b) -> a where the condition holds, b elsewhere.
pub fn select(io: &[&Meta], width: Width) -> Arc<dyn Kernel> {
    // Only bits are moved, so the size of the dtype is all that matters.
    let tile = by_size!(io[1].dtype.size(), T => map::<(Bool, T, T), T, 4, _>(Choose));
    Arc::new(Loop::new(tile, [0, 1, 2, 3].map(|i| Operand::plain(io[i])), width))
}

#[derive(Clone, Copy)]
struct Choose;

impl<T: Copy> Map<(Bool, T, T), T> for Choose {
    type Reach = Least;
    #[inline(always)]
    fn at<L: Level>(&self, (condition, a, b): (Bool, T, T)) -> T {
        if condition.get() { a } else { b }
    }
}

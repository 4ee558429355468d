//! How the CPU runs operations: loops, portable kernels, and a library for convolutions and
//! products.

/// `by_size!(size, T => f::<T>())` for an unsigned `T` of `size` bytes: code that only moves elements.
macro_rules! by_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

mod attention;
pub mod conv;
pub mod copy;
mod cumulative;
mod dispatch;
pub mod elementwise;
mod exchange;
pub mod host;
mod linalg;
pub mod matmul;
pub mod norm;
pub mod onednn;
pub mod packed;
pub mod pooling;
pub mod random;
mod recurrent;
pub mod reduce;
pub mod region;
mod rows;
pub mod simd;
mod sort;
pub mod space;
pub mod statistics;
pub mod strided;
mod volume;

mod target;

use dispatch::{packing, prepare};
pub use target::Cpu;

use crate::error::{Error, Result};
use crate::ops::Meta;

/// The error of a kernel for floats only.
fn not_float<T>(op: &'static str, x: &Meta) -> Result<T> {
    Err(Error::dtype(op, [x.dtype], "a float dtype"))
}

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

pub mod access;
pub mod batch_norm;
pub mod blocks;
pub mod convolution;
pub mod copy;
mod dispatch;
pub mod dropout;
pub mod elementwise;
pub mod fold;
pub mod gather;
pub mod host;
mod indices;
pub mod isa;
pub mod loops;
pub mod math;
pub mod matrices;
pub mod number;
pub mod onednn;
pub mod optimizers;
pub mod packed;
pub mod panels;
pub mod philox;
pub mod pooling;
pub mod portable_conv;
pub mod portable_gemm;
pub mod product;
pub mod product_add;
pub mod random;
pub mod reduce;
pub mod region;
pub mod row_blocks;
mod rows;
pub mod running_average;
pub mod scan;
pub mod space;
pub mod statistics;
pub mod tile;
pub mod update;
pub mod walk;
pub mod wide;

#[cfg(test)]
pub mod conv_case;

mod target;

use dispatch::{packing, prepare};
pub use target::Cpu;

use crate::error::{Error, Result};
use crate::ops::Meta;

/// The error of a kernel for floats only.
fn not_float<T>(op: &'static str, x: &Meta) -> Result<T> {
    Err(Error::dtype(op, [x.dtype], "a float dtype"))
}

//! Elementwise operations: the functions of the tables in `ops`, compiled into tiles for
//! [`loops`](super::loops).

mod binary;
mod select;
mod unary;

pub use binary::{binary, binary_scalar};
pub use select::select;
pub use unary::{unary, unary_grad};

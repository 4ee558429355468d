//! Products of matrices.

pub mod matrices;
pub mod panels;
pub mod portable_gemm;
pub mod product;
pub mod product_add;
mod row;
pub mod small;
pub mod tile;

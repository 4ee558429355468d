//! Reading and writing elements of any strides: walks, loops, scans.

pub mod access;
pub mod loops;
pub mod scan;
pub mod walk;

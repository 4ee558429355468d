//! Numbers as loops compute with them, on whichever instruction set there is.

pub mod dot;
pub mod isa;
pub mod math;
pub mod number;
pub mod wide;

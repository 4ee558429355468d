//! What follows from a queue alone: hazards, lifetimes, in-place sharing, and estimates of time.

pub mod cost;
pub mod csr;
pub mod hazard;
pub mod timeline;

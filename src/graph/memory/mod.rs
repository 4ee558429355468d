//! How much memory a graph needs, and where in the arena its blocks lie: the order of operations,
//! recomputation, and offsets.

pub mod budget;
pub mod layout;
pub mod live;
pub mod order;
pub mod recompute;

//! What is done with many operations: a queue of them, its analysis, its plan, its replay.
//! Nothing here knows a particular operation; blocks are known by number.

pub mod queue;

pub use queue::{Node, Place, Queue};

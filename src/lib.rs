//! singa_rs: a deep-learning training engine.
//!
//! A model is written imperatively; each operation is data ([`ops::Call`]) that the [`engine`]
//! prepares and runs. Modules in dependency order, each of which may use only the earlier ones:
//! `error, dtype, shape, packing` → `device` → `block, view` → `comm` → `ops` → `kernels` → `graph` →
//! `rewrite` → `engine` → `step` → `capi` → `python`.

pub mod block;
pub mod capi;
pub mod comm;
pub mod device;
pub mod dtype;
pub mod engine;
pub mod error;
pub mod graph;
pub mod kernels;
pub mod ops;
pub mod packing;
#[cfg(feature = "python")]
mod python;
pub mod rewrite;
pub mod shape;
pub mod step;
pub mod view;

pub use error::{Error, Result};

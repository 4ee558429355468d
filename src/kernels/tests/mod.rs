//! Operations, run: what they compute, in every layout and dtype and on any number of threads.

mod binary;

mod conv;
mod copy;
mod cross_entropy;
mod fold;
mod gated;
mod gemm;
mod host;
mod index;
mod linalg;
mod optim;
mod packed;
mod producer;
mod random;
mod recurrent;
mod reduce;
mod reduced;
mod region;
mod scan;
mod select;
mod softmax;
mod sort;
mod threads;
mod unary;

use std::sync::Arc;

use super::testing::{
    Random, Tensor, apply, apply_any_width, assert_near, layouts, noise, run, tolerance,
};
use super::{Target, Width, cpu};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::ops::{Family, Kind, Meta, Metas, Real, Scalar};
use crate::shape::Shape;

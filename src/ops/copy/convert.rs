//! Changing the element type without losing a value.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Cast;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::cpu::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::{Catalog, Family, Meta, Metas};

/// The elements as another dtype, which must represent them: floats round to floats, and stay
/// finite; everything else is exact. An element that the dtype cannot represent is an
/// [`Error::DType`], before anything is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Convert {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Catalog for Convert {
    fn names() -> Vec<&'static str> {
        vec!["convert"]
    }
}

impl Family for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        self.cast().infer(inputs)
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn checked(&self) -> &'static [usize] {
        &[0]
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let (kernel, scan) = (self.cast().cpu(io, width)?, Scan::new(0, io[0], width));
        let (holds, to) = (crate::dispatch!(self.dtype, D => Holds::of::<D>()), self.dtype);
        Ok(crate::dispatch!(io[0].dtype, S => {
            checked(move |run: &Io| holds.every::<S>(&scan, run, to), kernel)
        }))
    }
}

impl Convert {
    fn cast(&self) -> Cast {
        Cast { dtype: self.dtype }
    }
}

/// Whether a dtype represents an integer, or a float.
#[derive(Clone, Copy)]
struct Holds {
    integer: fn(i64) -> bool,
    real: fn(f64) -> bool,
}

impl Holds {
    fn of<D: Element>() -> Holds {
        Holds { integer: integer::<D>, real: real::<D> }
    }

    fn one<S: Element>(self, element: S) -> bool {
        match S::DTYPE.is_float() {
            true => (self.real)(element.to_f64()),
            false => (self.integer)(element.to_i64()),
        }
    }

    /// Fails with an error that names the first element that cannot be represented.
    fn every<S: Element>(self, scan: &Scan, io: &Io, to: DType) -> Result<()> {
        if scan.largest(io, |element: S| !self.one(element) as u32)? == 0 {
            return Ok(());
        }
        let lost = scan.find(io, |element: S| !self.one(element));
        let got = lost.map_or(String::new(), |element| match S::DTYPE.is_float() {
            true => format!(", not {}", element.to_f64()),
            false => format!(", not {}", element.to_i64()),
        });
        Err(Error::dtype("convert", [S::DTYPE], format!("values that {to} holds{got}")))
    }
}

fn integer<D: Element>(value: i64) -> bool {
    let made = D::from_i64(value);
    // Compared as integers so wide that no float of either type is rounded or clamped.
    match D::DTYPE.is_float() {
        true => made.to_f64() as i128 == value as i128,
        false => made.to_i64() == value,
    }
}

fn real<D: Element>(value: f64) -> bool {
    if D::DTYPE.is_float() {
        return !value.is_finite() || D::from_f64(value).to_f64().is_finite();
    }
    // 2^63 is not an int64, but rounds to the largest one.
    value < 9_223_372_036_854_775_808.0 && D::from_f64(value).to_f64() == value
}

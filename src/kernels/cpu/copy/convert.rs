//! Changing the element type without losing a value.

use std::sync::Arc;

use super::cast;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::cpu::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::Meta;

/// Prepares a cast that runs only if the new dtype represents every element.
pub fn convert(from: &Meta, to: &Meta, width: Width) -> Arc<dyn Kernel> {
    let (kernel, scan) = (cast(from, to, width), Scan::new(0, from, width));
    let (holds, to) = (crate::dispatch!(to.dtype, D => Holds::of::<D>()), to.dtype);
    crate::dispatch!(from.dtype, S => {
        checked(move |run: &Io| holds.every::<S>(&scan, run, to), kernel)
    })
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
        Err(Error::dtype("convert", [S::DTYPE], format!("values that {to} can hold{got}")))
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

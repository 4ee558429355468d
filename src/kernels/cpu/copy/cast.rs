//! Changing the element type, and doing so without losing a value.

use std::sync::Arc;

use half::{bf16, f16};

use super::mover;
use crate::dtype::{Bool, DType, Element, half_from_u64};
use crate::error::{Error, Result};
use crate::kernels::cpu::simd::isa::{Least, Level};
use crate::kernels::cpu::strided::loops::{Loop, Map, Operand, Tile, identity, map};
use crate::kernels::cpu::strided::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::Meta;

/// Prepares copying elements into another layout or dtype.
pub fn cast(from: &Meta, to: &Meta, width: Width) -> Arc<dyn Kernel> {
    if from.dtype == to.dtype {
        return Arc::new(mover(from, to, width));
    }
    let input = Operand::widened(from);
    // From types this wide, going through float32 would round twice.
    let wide = from.dtype.size() >= 4 && from.dtype != DType::Float32;
    let output = if wide { Operand::plain(to) } else { Operand::widened(to) };
    let into = if wide { to.dtype } else { widened(to.dtype) };
    let tile = crate::dispatch!(wide from.dtype, S => tile_from::<S>(into),
        else => crate::dispatch!(storage from.dtype, S => tile_from::<S>(into),
            else => tile_from::<Bool>(into)));
    Arc::new(Loop::new(tile, [input, output], width))
}

/// The type of a dtype's elements in tiles, unless these hold half precision itself.
fn widened(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        other => other,
    }
}

fn tile_from<S: Source>(to: DType) -> Box<dyn Tile<2>> {
    match to == S::DTYPE {
        true => identity(to.size()),
        false => crate::dispatch!(to, D => map::<(S,), D, 2, _>(Convert)),
    }
}

#[derive(Clone, Copy)]
struct Convert;

impl<S: To<D> + Element, D: Element> Map<(S,), D> for Convert {
    type Reach = Least;
    #[inline(always)]
    fn at<L: Level>(&self, (a,): (S,)) -> D {
        a.to()
    }
}

/// A type that converts to `D`.
trait To<D> {
    fn to(self) -> D;
}

/// A type that converts to every dtype.
trait Source:
    Element
    + To<f32>
    + To<f64>
    + To<f16>
    + To<bf16>
    + To<Bool>
    + To<i64>
    + To<i32>
    + To<i16>
    + To<i8>
    + To<u64>
    + To<u32>
    + To<u16>
    + To<u8>
{
}

macro_rules! numbers {
    ($($from:ty)*) => {$(
        numbers!(@plain $from, f32 f64 i64 i32 i16 i8 u64 u32 u16 u8);
        impl To<Bool> for $from {
            #[inline(always)]
            fn to(self) -> Bool { (self != 0 as $from).into() }
        }
        numbers!(@half $from, f16 bf16);
        impl Source for $from {}
    )*};
    (@plain $from:ty, $($to:ty)*) => {
        $(impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to { self as $to }
        })*
    };
    (@half $from:ty, $($to:ty)*) => {
        $(impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to {
                match <$from>::DTYPE {
                    DType::Float32 | DType::Float64 => Element::from_f64(self as f64),
                    DType::UInt64 => half_from_u64(self as u64),
                    _ => Element::from_i64(self as i64),
                }
            }
        })*
    };
}
numbers!(f32 f64 i64 i32 i16 i8 u64 u32 u16 u8);

impl<D: Element> To<D> for Bool {
    #[inline(always)]
    fn to(self) -> D {
        D::from_i64(self.get() as i64)
    }
}

impl Source for Bool {}

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
    integer: fn(i128) -> bool,
    real: fn(f64) -> bool,
}

impl Holds {
    fn of<D: Element>() -> Holds {
        Holds { integer: integer::<D>, real: real::<D> }
    }

    fn one<S: Element>(self, element: S) -> bool {
        match S::DTYPE.is_float() {
            true => (self.real)(element.to_f64()),
            false => (self.integer)(element.to_i128()),
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
            false => format!(", not {}", element.to_i128()),
        });
        Err(Error::dtype("convert", [S::DTYPE], format!("values that {to} can hold{got}")))
    }
}

fn integer<D: Element>(value: i128) -> bool {
    // What a float type holds, float64 holds; what wraps or rounds is another integer.
    let made =
        if D::DTYPE.is_float() { D::from_f64(value as f64) } else { D::from_i64(value as i64) };
    made.to_i128() == value
}

fn real<D: Element>(value: f64) -> bool {
    if D::DTYPE.is_float() {
        return !value.is_finite() || D::from_f64(value).to_f64().is_finite();
    }
    value.trunc() == value && D::from_f64(value).to_i128() == value as i128
}

//! Changing the element type.

use std::sync::Arc;

use half::{bf16, f16};

use super::mover;
use crate::dtype::{Bool, DType, Element};
use crate::kernels::cpu::isa::{Isa, Least, Level};
use crate::kernels::cpu::loops::{Loop, Map1, Operand, Tile, identity, map1};
use crate::kernels::{Kernel, Width};
use crate::ops::Meta;

/// Prepares copying elements into another layout or dtype.
pub fn cast(from: &Meta, to: &Meta, width: Width) -> Arc<dyn Kernel> {
    if from.dtype == to.dtype {
        return Arc::new(mover(from, to, width));
    }
    let input = Operand::widened(from);
    // From these types, going through float32 would round twice.
    let wide = matches!(from.dtype, DType::Float64 | DType::Int32 | DType::Int64);
    let output = if wide { Operand::plain(to) } else { Operand::widened(to) };
    Arc::new(Loop::new(tile(from.dtype, to.dtype, wide), [input, output], width))
}

/// The type of a dtype's elements in tiles, unless these hold half precision itself.
fn widened(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        other => other,
    }
}

fn tile(from: DType, to: DType, wide: bool) -> Box<dyn Tile<2>> {
    match widened(from) {
        DType::Float32 => tile_from::<f32>(to, wide),
        DType::Float64 => tile_from::<f64>(to, wide),
        DType::Int32 => tile_from::<i32>(to, wide),
        DType::Int64 => tile_from::<i64>(to, wide),
        DType::Int8 => tile_from::<i8>(to, wide),
        DType::UInt8 => tile_from::<u8>(to, wide),
        _ => tile_from::<Bool>(to, wide),
    }
}

fn tile_from<S: Source>(to: DType, wide: bool) -> Box<dyn Tile<2>> {
    let isa = Isa::active();
    match if wide { to } else { widened(to) } {
        to if to == S::DTYPE => identity(to.size()),
        DType::Float32 => map1::<S, f32>(isa, Convert),
        DType::Float64 => map1::<S, f64>(isa, Convert),
        DType::Int32 => map1::<S, i32>(isa, Convert),
        DType::Int64 => map1::<S, i64>(isa, Convert),
        DType::Int8 => map1::<S, i8>(isa, Convert),
        DType::UInt8 => map1::<S, u8>(isa, Convert),
        DType::Bool => map1::<S, Bool>(isa, Convert),
        DType::Float16 => map1::<S, f16>(isa, Convert),
        DType::BFloat16 => map1::<S, bf16>(isa, Convert),
    }
}

struct Convert;

impl<S: To<D> + Element, D: Element> Map1<S, D> for Convert {
    type Reach = Least;
    #[inline(always)]
    fn at<L: Level>(&self, a: S) -> D {
        a.to()
    }
}

/// A type that converts to `D`.
trait To<D> {
    fn to(self) -> D;
}

/// A type that converts to every dtype.
trait Source:
    Element + To<f32> + To<f64> + To<i32> + To<i64> + To<i8> + To<u8> + To<Bool> + To<f16> + To<bf16>
{
}

macro_rules! numbers {
    ($($from:ty => ($($to:ty),*);)*) => {$(
        $(impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to { self as $to }
        })*
        impl To<Bool> for $from {
            #[inline(always)]
            fn to(self) -> Bool { (self != 0 as $from).into() }
        }
        numbers!(@half $from, f16 bf16);
    )*};
    (@half $from:ty, $($to:ty)*) => {
        $(impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to {
                match <$from>::DTYPE.is_float() {
                    true => Element::from_f64(self as f64),
                    false => Element::from_i64(self as i64),
                }
            }
        })*
        impl Source for $from {}
    };
}
numbers! {
    f32 => (f32, f64, i32, i64, i8, u8);
    f64 => (f32, f64, i32, i64, i8, u8);
    i32 => (f32, f64, i32, i64, i8, u8);
    i64 => (f32, f64, i32, i64, i8, u8);
    i8 => (f32, f64, i32, i64, i8, u8);
    u8 => (f32, f64, i32, i64, i8, u8);
}

impl<D: Element> To<D> for Bool {
    #[inline(always)]
    fn to(self) -> D {
        D::from_i64(self.get() as i64)
    }
}

impl Source for Bool {}

//! Element types, and the macro that dispatches on a run-time [`DType`] to a Rust type.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
#[allow(missing_docs)]
pub enum DType {
    Float32,
    Float64,
    Float16,
    BFloat16,
    Int32,
    Int64,
    Int8,
    UInt8,
    Bool,
    Int16,
    UInt16,
    UInt32,
    UInt64,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 13] = [
        DType::Float32,
        DType::Float64,
        DType::Float16,
        DType::BFloat16,
        DType::Int32,
        DType::Int64,
        DType::Int8,
        DType::UInt8,
        DType::Bool,
        DType::Int16,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
    ];

    /// The types that are computed with.
    #[cfg(test)]
    pub const COMPUTED: [DType; 9] = *DType::ALL.first_chunk().expect("they come first");

    /// The float type that sums of elements are kept in.
    pub const fn wide(self) -> DType {
        match self {
            DType::Float64 => DType::Float64,
            _ => DType::Float32,
        }
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Float64 | DType::Int64 | DType::UInt64 => 8,
            DType::Float32 | DType::Int32 | DType::UInt32 => 4,
            DType::Float16 | DType::BFloat16 | DType::Int16 | DType::UInt16 => 2,
            DType::Int8 | DType::UInt8 | DType::Bool => 1,
        }
    }

    /// NumPy's name (`bfloat16` as ml_dtypes spells it).
    pub const fn name(self) -> &'static str {
        match self {
            DType::Float32 => "float32",
            DType::Float64 => "float64",
            DType::Float16 => "float16",
            DType::BFloat16 => "bfloat16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::Int8 => "int8",
            DType::UInt8 => "uint8",
            DType::Bool => "bool",
            DType::Int16 => "int16",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
        }
    }

    /// Whether this is one of the four floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::Float32 | DType::Float64 | DType::Float16 | DType::BFloat16)
    }

    /// Whether it is a float that is computed in as it is: 16-bit floats are computed in float32.
    pub fn is_wide_float(self) -> bool {
        matches!(self, DType::Float32 | DType::Float64)
    }

    /// Whether this is an integer type (bool is not).
    pub const fn is_int(self) -> bool {
        matches!(self, DType::Int32 | DType::Int64 | DType::Int8 | DType::UInt8)
            || self.is_storage()
    }

    /// Whether elements of this type are kept, moved and converted, but not computed with.
    pub const fn is_storage(self) -> bool {
        matches!(self, DType::Int16 | DType::UInt16 | DType::UInt32 | DType::UInt64)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A one-byte truth value; any non-zero byte is true.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// The truth value.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool(value as u8)
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// A Rust type that stores one element. Every bit pattern is a valid value.
pub trait Element: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// The element type that this Rust type stores.
    const DTYPE: DType;
    /// The value as float64 (int64 beyond 2^53 rounds).
    fn to_f64(self) -> f64;
    /// The nearest value; floats truncate into integers and saturate, as Rust's `as` does.
    fn from_f64(value: f64) -> Self;
    /// The value as int64 (floats truncate and saturate, uint64 wraps).
    fn to_i64(self) -> i64;
    /// The value from int64; narrower integers wrap, as NumPy's casts do.
    fn from_i64(value: i64) -> Self;
    /// The value as an integer that is wide enough for all integer types (floats truncate).
    fn to_i128(self) -> i128;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $rust }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $rust }
            #[inline(always)]
            fn to_i128(self) -> i128 { self as i128 }
        }
    )*};
}
element!(f32 => Float32, f64 => Float64, i32 => Int32, i64 => Int64, i8 => Int8, u8 => UInt8);
element!(i16 => Int16, u16 => UInt16, u32 => UInt32, u64 => UInt64);

/// A float32 that rounds to the same half-precision number as `x` does (round to odd): if inexact,
/// the neighbour whose last bit is odd, which is never a tie (Boldo and Melquiond, Emulation of FMA
/// and correctly rounded sums, 2008).
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let exact = nearest as f64 == x || x.is_nan();
    let towards_zero = nearest.to_bits() - ((nearest as f64).abs() > x.abs()) as u32;
    if exact { nearest } else { f32::from_bits(towards_zero | 1) }
}

/// The same for the size of an integer, as a float64: its last ten bits are more than 24 below the
/// first if they are lost.
#[inline(always)]
fn size_to_odd(size: u64) -> f64 {
    // Of 64 bits, 54 would remain, one more than a float64 has.
    let shift = if size >> 63 == 0 { 10 } else { 11 };
    let lost = u64::from(size & ((1 << shift) - 1) != 0);
    match size >> 53 {
        0 => size as f64,
        _ => (size >> shift | lost) as f64 * (1u64 << shift) as f64,
    }
}

/// The same for an integer.
#[inline(always)]
fn integer_to_odd(x: i64) -> f64 {
    let odd = size_to_odd(x.unsigned_abs());
    if x < 0 { -odd } else { odd }
}

/// The half-precision number nearest to an unsigned integer.
#[inline(always)]
pub fn half_from_u64<T: Element>(value: u64) -> T {
    T::from_f64(size_to_odd(value))
}

macro_rules! half_element {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f64() }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { <$rust>::from_f32(to_odd(value)) }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.to_f64() as i64 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { <Self as Element>::from_f64(integer_to_odd(value)) }
            #[inline(always)]
            fn to_i128(self) -> i128 { self.to_f64() as i128 }
        }
    )*};
}
half_element!(f16 => Float16, bf16 => BFloat16);

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.get() as u8 as f64
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        (value != 0.0).into()
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.get() as i64
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        (value != 0).into()
    }
    #[inline(always)]
    fn to_i128(self) -> i128 {
        self.get() as i128
    }
}

/// Runs `$body` with the type alias `$T` set to the Rust type of `$dtype`.
///
/// `dispatch!(dtype, T => f::<T>())` covers every type. With a class in front, types outside the class
/// run `else => $other`: `float`; `int` and `number`, those that are computed with; `computed`, the
/// numbers and bool; `storage`; `wide` is `number` with float32 in place of half precision.
#[macro_export]
macro_rules! dispatch {
    (@arms $dtype:expr, $T:ident => $body:expr, [$($variant:ident $rust:ty),*] $(, else => $other:expr)?) => {
        match $dtype {
            $($crate::dtype::DType::$variant => { #[allow(dead_code)] type $T = $rust; $body })*
            $(_ => $other,)?
        }
    };
    (float $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Float32 f32, Float64 f64, Float16 half::f16, BFloat16 half::bf16], else => $other)
    };
    (int $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Int32 i32, Int64 i64, Int8 i8, UInt8 u8], else => $other)
    };
    (number $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Float32 f32, Float64 f64, Float16 half::f16, BFloat16 half::bf16,
             Int32 i32, Int64 i64, Int8 i8, UInt8 u8], else => $other)
    };
    (wide $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Float32 f32, Float64 f64, Float16 f32, BFloat16 f32,
             Int32 i32, Int64 i64, Int8 i8, UInt8 u8], else => $other)
    };
    (computed $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Float32 f32, Float64 f64, Float16 half::f16, BFloat16 half::bf16,
             Int32 i32, Int64 i64, Int8 i8, UInt8 u8, Bool $crate::dtype::Bool], else => $other)
    };
    (storage $dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Int16 i16, UInt16 u16, UInt32 u32, UInt64 u64], else => $other)
    };
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body,
            [Float32 f32, Float64 f64, Float16 half::f16, BFloat16 half::bf16,
             Int32 i32, Int64 i64, Int8 i8, UInt8 u8, Bool $crate::dtype::Bool,
             Int16 i16, UInt16 u16, UInt32 u32, UInt64 u64])
    };
}

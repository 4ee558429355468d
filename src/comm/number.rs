//! Folding elements of any type, as bytes.

use half::{bf16, f16};

use super::Fold;
use crate::dtype::DType;

/// An element that ranks fold; short floats are folded in float32 and rounded once.
trait Number: Copy {
    /// Bytes of an element.
    const BYTES: usize;
    /// What it is folded in.
    type Wide: Copy;
    fn read(bytes: &[u8]) -> Self::Wide;
    fn write(value: Self::Wide, bytes: &mut [u8]);
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn larger(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn smaller(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn divide(sum: Self::Wide, by: usize) -> Self::Wide;
}

macro_rules! number {
    ($($own:ty, $wide:ty, $add:expr, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $own {
            const BYTES: usize = size_of::<$own>();
            type Wide = $wide;

            #[inline(always)]
            fn read(bytes: &[u8]) -> $wide {
                $widen(<$own>::from_ne_bytes(bytes.try_into().expect("an element's bytes")))
            }

            #[inline(always)]
            fn write(value: $wide, bytes: &mut [u8]) {
                let own: $own = $narrow(value);
                bytes.copy_from_slice(&own.to_ne_bytes());
            }

            #[inline(always)]
            fn add(a: $wide, b: $wide) -> $wide {
                $add(a, b)
            }

            #[inline(always)]
            fn larger(a: $wide, b: $wide) -> $wide {
                larger(a, b)
            }

            #[inline(always)]
            fn smaller(a: $wide, b: $wide) -> $wide {
                smaller(a, b)
            }

            #[inline(always)]
            fn divide(sum: $wide, by: usize) -> $wide {
                sum / by as $wide
            }
        }
    )*};
}

/// The larger one, or NaN if there is one.
#[inline(always)]
fn larger<T: PartialOrd + Copy>(a: T, b: T) -> T {
    #[allow(clippy::eq_op)]
    if a >= b || a != a { a } else { b }
}

/// The smaller one, or NaN if there is one.
#[inline(always)]
fn smaller<T: PartialOrd + Copy>(a: T, b: T) -> T {
    #[allow(clippy::eq_op)]
    if a <= b || a != a { a } else { b }
}

macro_rules! floats {
    ($($own:ty => $wide:ty, $widen:expr, $narrow:expr;)*) => {
        number! {$(
            $own, $wide, std::ops::Add::add, $widen, $narrow;
        )*}
    };
}
floats! {
    f32 => f32, std::convert::identity, std::convert::identity;
    f64 => f64, std::convert::identity, std::convert::identity;
    f16 => f32, f16::to_f32, f16::from_f32;
    bf16 => f32, bf16::to_f32, bf16::from_f32;
}

macro_rules! integers {
    ($($own:ident),*) => {
        number! {$(
            $own, $own, $own::wrapping_add, std::convert::identity, std::convert::identity;
        )*}
    };
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Elements folded at a time, which stay in the cache.
const BLOCK: usize = 4 << 10;

/// Folds the ranks' elements, in the order of the ranks, into `to`, which has as many bytes as each
/// of them. The type must be one that [`super::Exchange::check`] admits.
pub fn fold(dtype: DType, how: Fold, ranks: &[&[u8]], to: &mut [u8]) {
    let fold = match dtype {
        DType::Float32 => fold_as::<f32>,
        DType::Float64 => fold_as::<f64>,
        DType::Float16 => fold_as::<f16>,
        DType::BFloat16 => fold_as::<bf16>,
        DType::Int8 => fold_as::<i8>,
        DType::Int16 => fold_as::<i16>,
        DType::Int32 => fold_as::<i32>,
        DType::Int64 => fold_as::<i64>,
        DType::UInt8 | DType::Bool => fold_as::<u8>,
        DType::UInt16 => fold_as::<u16>,
        DType::UInt32 => fold_as::<u32>,
        DType::UInt64 => fold_as::<u64>,
    };
    fold(how, ranks, to);
}

fn fold_as<T: Number>(how: Fold, ranks: &[&[u8]], to: &mut [u8]) {
    let mut folded: Vec<T::Wide> = Vec::with_capacity(BLOCK);
    for start in (0..to.len()).step_by(BLOCK * T::BYTES) {
        let block = start..to.len().min(start + BLOCK * T::BYTES);
        let elements = |rank: usize| ranks[rank][block.clone()].chunks_exact(T::BYTES).map(T::read);
        folded.clear();
        folded.extend(elements(0));
        for rank in 1..ranks.len() {
            let pairs = folded.iter_mut().zip(elements(rank));
            match how {
                Fold::Sum | Fold::Mean => pairs.for_each(|(sum, more)| *sum = T::add(*sum, more)),
                Fold::Max => pairs.for_each(|(sum, more)| *sum = T::larger(*sum, more)),
                Fold::Min => pairs.for_each(|(sum, more)| *sum = T::smaller(*sum, more)),
            }
        }
        if how == Fold::Mean {
            folded.iter_mut().for_each(|sum| *sum = T::divide(*sum, ranks.len()));
        }
        let places = to[block].chunks_exact_mut(T::BYTES).zip(&folded);
        places.for_each(|(place, value)| T::write(*value, place));
    }
}

/// Float32 elements rounded to float16 or bfloat16.
pub fn narrowed(to: DType, elements: &[u8]) -> Vec<u8> {
    let narrow = match to {
        DType::Float16 => |x: f32| f16::from_f32(x).to_ne_bytes(),
        _ => |x: f32| bf16::from_f32(x).to_ne_bytes(),
    };
    elements.chunks_exact(f32::BYTES).flat_map(|bytes| narrow(f32::read(bytes))).collect()
}

/// The reverse of [`narrowed`], into `to`.
pub fn widen(from: DType, elements: &[u8], to: &mut [u8]) {
    let read = if from == DType::Float16 { f16::read } else { bf16::read };
    let places = to.chunks_exact_mut(f32::BYTES).zip(elements.chunks_exact(f16::BYTES));
    places.for_each(|(place, bytes)| f32::write(read(bytes), place));
}

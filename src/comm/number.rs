//! Folding elements of any type, as bytes.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Fold;
use crate::dtype::DType;

/// An element that ranks fold; short floats are folded in float32 and rounded once.
trait Number: Copy {
    /// Bytes of an element.
    const BYTES: usize;
    /// What it is folded in.
    type Wide: Copy + Default;
    /// Reads as many elements as there are.
    fn read(bytes: &[u8], to: &mut [Self::Wide]);
    fn write(values: &[Self::Wide], bytes: &mut [u8]);
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn larger(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn smaller(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn divide(sum: Self::Wide, by: usize) -> Self::Wide;
}

macro_rules! number {
    ($($own:ty, $wide:ty, $add:expr, $read:expr, $write:expr;)*) => {$(
        impl Number for $own {
            const BYTES: usize = size_of::<$own>();
            type Wide = $wide;

            #[inline(always)]
            fn read(bytes: &[u8], to: &mut [$wide]) {
                $read(bytes, to)
            }

            #[inline(always)]
            fn write(values: &[$wide], bytes: &mut [u8]) {
                $write(values, bytes)
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

/// `read` and `write` of numbers that are folded as they are.
macro_rules! plain {
    ($own:ident) => {
        |bytes: &[u8], to: &mut [$own]| {
            let elements = bytes.chunks_exact(size_of::<$own>()).map(|bytes| bytes.try_into());
            let places = to.iter_mut().zip(elements);
            places.for_each(|(to, bytes)| *to = $own::from_ne_bytes(bytes.expect("its bytes")));
        }
    };
    ($own:ident, write) => {
        |values: &[$own], bytes: &mut [u8]| {
            let places = bytes.chunks_exact_mut(size_of::<$own>()).zip(values);
            places.for_each(|(place, value)| place.copy_from_slice(&value.to_ne_bytes()));
        }
    };
}

macro_rules! floats {
    ($($own:ident),*) => {
        number! {$($own, $own, std::ops::Add::add, plain!($own), plain!($own, write);)*}
    };
}
floats!(f32, f64);
number! {
    f16, f32, std::ops::Add::add, read_short::<f16>, write_short::<f16>;
    bf16, f32, std::ops::Add::add, read_short::<bf16>, write_short::<bf16>;
}

macro_rules! integers {
    ($($own:ident),*) => {
        number! {$($own, $own, $own::wrapping_add, plain!($own), plain!($own, write);)*}
    };
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Short floats, as bits; converted many at a time, which processors have instructions for.
trait Short: Copy {
    const ZERO: Self;
    fn of(bits: u16) -> Self;
    fn bits(self) -> u16;
}

macro_rules! short {
    ($($own:ident),*) => {$(
        impl Short for $own {
            const ZERO: Self = $own::ZERO;

            #[inline(always)]
            fn of(bits: u16) -> Self {
                $own::from_bits(bits)
            }

            #[inline(always)]
            fn bits(self) -> u16 {
                self.to_bits()
            }
        }
    )*};
}
short!(f16, bf16);

/// Short floats converted at a time.
const GROUP: usize = 64;

#[inline(always)]
fn read_short<S: Short>(bytes: &[u8], to: &mut [f32])
where
    [S]: HalfFloatSliceExt,
{
    let mut own = [S::ZERO; GROUP];
    for (bytes, to) in bytes.chunks(2 * GROUP).zip(to.chunks_mut(GROUP)) {
        let own = &mut own[..to.len()];
        let bits = bytes.chunks_exact(2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
        own.iter_mut().zip(bits).for_each(|(own, bits)| *own = S::of(bits));
        own.convert_to_f32_slice(to);
    }
}

#[inline(always)]
fn write_short<S: Short>(values: &[f32], bytes: &mut [u8])
where
    [S]: HalfFloatSliceExt,
{
    let mut own = [S::ZERO; GROUP];
    for (values, bytes) in values.chunks(GROUP).zip(bytes.chunks_mut(2 * GROUP)) {
        let own = &mut own[..values.len()];
        own.convert_from_f32_slice(values);
        let places = bytes.chunks_exact_mut(2).zip(own.iter());
        places.for_each(|(place, own)| place.copy_from_slice(&own.bits().to_ne_bytes()));
    }
}

/// Elements folded at a time, which stay in the cache.
const BLOCK: usize = 1 << 10;

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
    let [mut folded, mut more] = [[T::Wide::default(); BLOCK]; 2];
    for start in (0..to.len()).step_by(BLOCK * T::BYTES) {
        let block = start..to.len().min(start + BLOCK * T::BYTES);
        let count = block.len() / T::BYTES;
        let (folded, more) = (&mut folded[..count], &mut more[..count]);
        T::read(&ranks[0][block.clone()], folded);
        for rank in &ranks[1..] {
            T::read(&rank[block.clone()], more);
            let pairs = folded.iter_mut().zip(&*more);
            match how {
                Fold::Sum | Fold::Mean => pairs.for_each(|(sum, more)| *sum = T::add(*sum, *more)),
                Fold::Max => pairs.for_each(|(sum, more)| *sum = T::larger(*sum, *more)),
                Fold::Min => pairs.for_each(|(sum, more)| *sum = T::smaller(*sum, *more)),
            }
        }
        if how == Fold::Mean {
            folded.iter_mut().for_each(|sum| *sum = T::divide(*sum, ranks.len()));
        }
        T::write(folded, &mut to[block]);
    }
}

/// Float32 elements rounded to float16 or bfloat16.
pub fn narrowed(to: DType, elements: &[u8]) -> Vec<u8> {
    let write = if to == DType::Float16 { f16::write } else { bf16::write };
    let (mut made, mut values) = (vec![0; elements.len() / 2], [0.0; GROUP]);
    for (from, to) in elements.chunks(4 * GROUP).zip(made.chunks_mut(2 * GROUP)) {
        let values = &mut values[..from.len() / 4];
        f32::read(from, values);
        write(values, to);
    }
    made
}

/// The reverse of [`narrowed`], into `to`.
pub fn widen(from: DType, elements: &[u8], to: &mut [u8]) {
    let read = if from == DType::Float16 { f16::read } else { bf16::read };
    let mut values = [0.0; GROUP];
    for (from, to) in elements.chunks(2 * GROUP).zip(to.chunks_mut(4 * GROUP)) {
        let values = &mut values[..from.len() / 2];
        read(from, values);
        f32::write(values, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(bytes: &[u8]) -> Vec<u32> {
        let bits = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
        bytes.chunks_exact(4).map(bits).collect()
    }

    #[test]
    fn short_floats_are_rounded_one_by_one() {
        let special = [0.0, -0.0, 1e-8, -6e-8, 65504.0, 65520.0, 1e38, f32::INFINITY, f32::MIN];
        let all: Vec<f32> = special.into_iter().chain((0..190).map(|i| i as f32 * 0.37)).collect();
        let given: Vec<u8> = all.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let check = |dtype, round: fn(f32) -> f32| {
            let (short, mut back) = (narrowed(dtype, &given), vec![0; given.len()]);
            widen(dtype, &short, &mut back);
            assert_eq!(short.len(), given.len() / 2);
            assert_eq!(floats(&back), all.iter().map(|x| round(*x).to_bits()).collect::<Vec<_>>());
        };
        check(DType::Float16, |x| f16::from_f32(x).to_f32());
        check(DType::BFloat16, |x| bf16::from_f32(x).to_f32());
    }

    #[test]
    fn the_mean_of_short_floats_is_rounded_once() {
        let [a, b] = [2049.0f32, 0.0].map(|x| narrowed(DType::Float16, &x.to_ne_bytes()));
        let mut mean = vec![0; 2];
        fold(DType::Float16, Fold::Mean, &[&a, &b], &mut mean);
        assert_eq!(mean, f16::from_f32(1024.0).to_ne_bytes());
    }
}

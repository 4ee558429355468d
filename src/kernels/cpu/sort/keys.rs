//! Sort keys: unsigned integers in the order of the elements, and entries of a key and a place.

use half::{bf16, f16};

use crate::dtype::{Bool, Element};
use crate::kernels::cpu::simd::isa::{Least, Narrow, Reach};

/// A key and the place of its element. Entries of equal keys have the order of their places, so
/// that any way to sort entries is stable.
pub trait Entry: Copy + Ord + Send + Sync + Default + 'static {
    /// The number of bits of a key.
    const KEY_BITS: u32;
    /// The instruction sets that sorting is compiled for.
    type Reach: Reach;

    /// Puts a key before a place.
    fn new(key: u64, place: usize) -> Self;

    /// The place.
    fn place(self) -> usize;

    /// Bits of the key, counted from its lowest, as an index of `1 << bits` buckets.
    fn digit(self, from: u32, bits: u32) -> usize;
}

/// Keys of 32 bits, of axes of less than 2^32 elements.
impl Entry for u64 {
    const KEY_BITS: u32 = 32;
    type Reach = Narrow;

    #[inline(always)]
    fn new(key: u64, place: usize) -> u64 {
        key << 32 | place as u64
    }

    #[inline(always)]
    fn place(self) -> usize {
        self as u32 as usize
    }

    #[inline(always)]
    fn digit(self, from: u32, bits: u32) -> usize {
        (self >> (32 + from)) as usize & ((1 << bits) - 1)
    }
}

/// No instruction set has vectors of them.
impl Entry for u128 {
    const KEY_BITS: u32 = 64;
    type Reach = Least;

    #[inline(always)]
    fn new(key: u64, place: usize) -> u128 {
        (key as u128) << 64 | place as u128
    }

    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }

    #[inline(always)]
    fn digit(self, from: u32, bits: u32) -> usize {
        ((self >> 64) as u64 >> from) as usize & ((1 << bits) - 1)
    }
}

/// An element with a sort key. -0 has that of 0, NaN the greatest.
pub trait Ordered: Element {
    /// Entries with room for the key.
    type Entry: Entry;
    /// The bits of a key.
    const MASK: u64;

    /// The key.
    fn key(self) -> u64;
}

macro_rules! floats {
    ($($rust:ty as $wide:ty, $bits:ty, $entry:ty);*) => {$(
        impl Ordered for $rust {
            type Entry = $entry;
            const MASK: u64 = <$bits>::MAX as u64;

            #[inline(always)]
            fn key(self) -> u64 {
                let value = <$wide>::from(self) + 0.0; // -0 becomes 0
                let (bits, sign) = (value.to_bits(), 1 << (<$bits>::BITS - 1));
                let ordered = if bits & sign == 0 { bits | sign } else { !bits };
                (if value.is_nan() { <$bits>::MAX } else { ordered }) as u64
            }
        }
    )*};
}
floats!(
    f32 as f32, u32, u64;
    f64 as f64, u64, u128;
    f16 as f32, u32, u64;
    bf16 as f32, u32, u64
);

macro_rules! integers {
    ($($rust:ty, $bits:ty, $entry:ty);*) => {$(
        impl Ordered for $rust {
            type Entry = $entry;
            const MASK: u64 = <$bits>::MAX as u64;

            #[inline(always)]
            fn key(self) -> u64 {
                (self as $bits ^ <$rust>::MIN as $bits) as u64
            }
        }
    )*};
}
integers!(i32, u32, u64; i64, u64, u128; i8, u8, u64; u8, u8, u64);

impl Ordered for Bool {
    type Entry = u64;
    const MASK: u64 = 1;

    #[inline(always)]
    fn key(self) -> u64 {
        self.get() as u64
    }
}

//! Moving boxes of elements between strided memory and tiles, and converting half precision to and
//! from float32.
#![allow(unsafe_code)]

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::boxes::Shape2;
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::strided::access;

/// Copies a box of elements of `size` bytes.
///
/// # Safety
/// The box can be read from `from` on and written from `to` on, with these strides in bytes from
/// row to row and from column to column; the two do not overlap.
pub unsafe fn copy(
    size: usize,
    from: *const u8,
    from_strides: [isize; 2],
    to: *mut u8,
    to_strides: [isize; 2],
    shape: Shape2,
) {
    let mut walk = Walk { from: from_strides, to: to_strides, count: [shape.rows, shape.columns] };
    // Runs the inner loop along the dimension with the strided side's smaller step.
    let turned = |s: [isize; 2]| s[0] != 0 && s[0].unsigned_abs() < s[1].unsigned_abs();
    if shape.rows > 1 && (turned(walk.from) || turned(walk.to)) {
        walk = walk.turned();
    }
    // SAFETY: by the caller's promise.
    unsafe { by_size!(size, T => walk.run::<T>(from, to)) }
}

/// What short rows are copied in, and the bytes of a row that is no longer short.
type Unit = [u8; 16];
const MOST: usize = 512;
/// Rows and columns of a block that is transposed in registers.
const SIDE: usize = 4;

#[derive(Clone, Copy)]
struct Walk {
    from: [isize; 2],
    to: [isize; 2],
    count: [usize; 2],
}

impl Walk {
    /// The same with rows as columns.
    fn turned(self) -> Walk {
        let Walk { from, to, count } = self;
        Walk { from: [from[1], from[0]], to: [to[1], to[0]], count: [count[1], count[0]] }
    }

    /// Whether rows are read, and columns written, as their elements follow one another.
    fn transposes(&self, size: isize) -> bool {
        self.from[1] == size && self.to[0] == size && self.count.iter().all(|&n| n >= SIDE)
    }

    unsafe fn run<T: Copy>(&self, from: *const u8, to: *mut u8) {
        let (size, bytes) = (size_of::<T>() as isize, self.count[1] * size_of::<T>());
        let is_dense = self.from[1] == size && self.to[1] == size;
        if is_dense && bytes <= MOST && bytes.is_multiple_of(size_of::<Unit>()) {
            // SAFETY: by the promise of `copy`.
            return unsafe { self.units(from, to, bytes / size_of::<Unit>()) };
        }
        // SAFETY: by the promise of `copy`.
        unsafe {
            match [*self, self.turned()].into_iter().find(|walk| walk.transposes(size)) {
                Some(walk) => walk.blocks::<T>(from, to),
                None => self.lines::<T>(from, to),
            }
        }
    }

    /// Transposes block by block: a line of the cache is written in a few stores that follow one
    /// another, where one element at a time would touch as many lines as there are columns.
    unsafe fn blocks<T: Copy>(&self, from: *const u8, to: *mut u8) {
        let [rows, columns] = self.count.map(|n| n / SIDE * SIDE);
        for column in (0..columns).step_by(SIDE) {
            for row in (0..rows).step_by(SIDE) {
                let (from, to) = self.places(from, to, [row, column]);
                // SAFETY: by the promise of `copy`.
                unsafe { self.block::<T>(from.cast(), to.cast()) };
            }
        }
        let (right, below) = ([0, columns], [rows, 0]);
        for (at, count) in [
            (right, [rows, self.count[1] - columns]),
            (below, [self.count[0] - rows, self.count[1]]),
        ] {
            let (from, to) = self.places(from, to, at);
            // SAFETY: by the promise of `copy`.
            unsafe { Walk { count, ..*self }.lines::<T>(from, to) };
        }
    }

    #[inline(always)]
    unsafe fn block<T: Copy>(&self, from: *const [T; SIDE], to: *mut [T; SIDE]) {
        // SAFETY: by the promise of `copy`.
        unsafe {
            let rows: [[T; SIDE]; SIDE] =
                std::array::from_fn(|row| from.byte_offset(row as isize * self.from[0]).read());
            let column = |i: usize| rows.map(|row| row[i]);
            for i in 0..SIDE {
                to.byte_offset(i as isize * self.to[1]).write(column(i));
            }
        }
    }

    /// The addresses of an element.
    #[inline(always)]
    fn places(
        &self,
        from: *const u8,
        to: *mut u8,
        [row, column]: [usize; 2],
    ) -> (*const u8, *mut u8) {
        let offset = |s: [isize; 2]| row as isize * s[0] + column as isize * s[1];
        (from.wrapping_offset(offset(self.from)), to.wrapping_offset(offset(self.to)))
    }

    unsafe fn lines<T: Copy>(&self, from: *const u8, to: *mut u8) {
        for row in 0..self.count[0] {
            let (from, to) = self.places(from, to, [row, 0]);
            // SAFETY: by the promise of `copy`.
            unsafe { self.line::<T>(from.cast(), to.cast()) };
        }
    }

    /// Copies rows of a few units, for which a call of a function would take too long.
    unsafe fn units(&self, from: *const u8, to: *mut u8, count: usize) {
        for row in 0..self.count[0] {
            let (from, to) = self.places(from, to, [row, 0]);
            for k in 0..count {
                // SAFETY: by the promise of `copy`.
                unsafe { to.cast::<Unit>().add(k).write(from.cast::<Unit>().add(k).read()) };
            }
        }
    }

    #[inline(always)]
    unsafe fn line<T: Copy>(&self, from: *const T, to: *mut T) {
        let size = size_of::<T>() as isize;
        let ([_, n], [_, from_step], [_, to_step]) = (self.count, self.from, self.to);
        // SAFETY: by the promise of `copy`.
        unsafe {
            match (from_step, to_step) {
                (f, t) if f == size && t == size => access::copy(from, to, n),
                (0, t) if t == size => {
                    let value = from.read();
                    (0..n).for_each(|i| to.add(i).write(value));
                }
                (f, t) if t == size => {
                    (0..n).for_each(|i| to.add(i).write(from.byte_offset(i as isize * f).read()));
                }
                (f, t) => (0..n as isize)
                    .for_each(|i| to.byte_offset(i * t).write(from.byte_offset(i * f).read())),
            }
        }
    }
}

/// A two-byte type whose arithmetic is done in float32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// 5 bits of exponent.
    Float16,
    /// 8 bits of exponent.
    BFloat16,
}

impl Half {
    /// Widens `len` elements, exactly.
    ///
    /// # Safety
    /// The elements can be read and written, and do not overlap.
    pub unsafe fn widen(self, isa: Isa, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: by the caller's promise.
        let (from, to) = unsafe { slices::<u16, u32>(from, to, len) };
        match self {
            // SAFETY: same size and alignment, and every bit pattern is valid.
            Half::Float16 => unsafe { cast::<u16, f16>(from) }
                .convert_to_f32_slice(unsafe { cast_mut::<u32, f32>(to) }),
            Half::BFloat16 => isa::run(isa, WidenBf16(from, to)),
        }
    }

    /// Rounds `len` float32 to the nearest, ties to even.
    ///
    /// # Safety
    /// The elements can be read and written, and do not overlap.
    pub unsafe fn narrow(self, isa: Isa, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: by the caller's promise.
        let (from, to) = unsafe { slices::<u32, u16>(from, to, len) };
        match self {
            // SAFETY: same size and alignment, and every bit pattern is valid.
            Half::Float16 => unsafe { cast_mut::<u16, f16>(to) }
                .convert_from_f32_slice(unsafe { cast::<u32, f32>(from) }),
            Half::BFloat16 => isa::run(isa, NarrowBf16(from, to)),
        }
    }
}

unsafe fn slices<'a, A, B>(from: *const u8, to: *mut u8, len: usize) -> (&'a [A], &'a mut [B]) {
    // SAFETY: by the caller's promise.
    unsafe {
        (
            std::slice::from_raw_parts(from.cast(), len),
            std::slice::from_raw_parts_mut(to.cast(), len),
        )
    }
}

unsafe fn cast<A, B>(a: &[A]) -> &[B] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(a.as_ptr().cast(), a.len()) }
}

unsafe fn cast_mut<A, B>(a: &mut [A]) -> &mut [B] {
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(a.as_mut_ptr().cast(), a.len()) }
}

struct WidenBf16<'a>(&'a [u16], &'a mut [u32]);

impl Body for WidenBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for (to, from) in self.1.iter_mut().zip(self.0) {
            *to = (*from as u32) << 16;
        }
    }
}

struct NarrowBf16<'a>(&'a [u32], &'a mut [u16]);

impl Body for NarrowBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for (to, &bits) in self.1.iter_mut().zip(self.0) {
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            let quiet = bits >> 16 | 0x40;
            let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
            *to = (if is_nan { quiet } else { rounded }) as u16;
        }
    }
}

const _: () = assert!(size_of::<bf16>() == 2 && size_of::<f16>() == 2);

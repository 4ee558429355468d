//! Cutting scratch memory into arrays.
#![allow(unsafe_code)]

/// Arrays start at multiples of this many bytes: a cache line.
const LINE: usize = 64;

fn stride<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(LINE)
}

/// The number of bytes that arrays of these lengths take.
pub fn bytes<T>(lengths: impl IntoIterator<Item = usize>) -> usize {
    lengths.into_iter().map(stride::<T>).sum()
}

/// Consecutive arrays of these lengths.
///
/// # Safety
/// `at` is aligned to a cache line and addresses [`bytes`] of these lengths, which nothing else
/// uses while the arrays live. `T` is a plain number: the contents are arbitrary.
pub unsafe fn arrays<'a, T, const N: usize>(at: *mut u8, lengths: [usize; N]) -> [&'a mut [T]; N] {
    let mut next = at;
    lengths.map(|len| {
        // SAFETY: by the caller's promise; the arrays do not overlap.
        let array = unsafe { std::slice::from_raw_parts_mut(next.cast::<T>(), len) };
        next = next.wrapping_add(stride::<T>(len));
        array
    })
}

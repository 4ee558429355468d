//! Scanning the values of an input.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::device::team;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::strided::walk::Walk;
use crate::kernels::{Io, Width};
use crate::ops::Meta;

/// The minimum number of elements per thread.
const GRAIN: usize = 4096;

/// The elements of an input, skipping broadcast repetitions.
pub struct Scan {
    input: usize,
    walk: Walk<1>,
    width: Width,
}

impl Scan {
    /// The scan of input `input`, on `width` threads.
    pub fn new(input: usize, meta: &Meta, width: Width) -> Scan {
        Scan { input, walk: Walk::without_repeats(meta), width }
    }

    /// The largest `key` of an element, 0 if there is none.
    ///
    /// # Errors
    /// [`crate::Error::Internal`] where `key` panics.
    pub fn largest<T: Element>(&self, io: &Io, key: impl Fn(T) -> u32 + Sync) -> Result<u32> {
        let (largest, Width(width)) = (AtomicU32::new(0), self.width);
        let from = |io: &Io| io.input::<T>(self.input);
        team::ranges(self.walk.elements(), GRAIN, width, &|range, _| {
            // SAFETY: the element is within the input, whose elements are of type `T`.
            let keys = self.walk.offsets(range).map(|[at]| key(unsafe { *from(io).offset(at) }));
            let most = keys.fold(0, u32::max);
            largest.fetch_max(most, Relaxed);
        })?;
        Ok(largest.into_inner())
    }

    /// The first element that satisfies `sought`.
    pub fn find<T: Element>(&self, io: &Io, sought: impl Fn(T) -> bool) -> Option<T> {
        // SAFETY: the element is within the input, whose elements are of type `T`.
        let element = |[at]: [isize; 1]| unsafe { *io.input::<T>(self.input).offset(at) };
        self.walk.offsets(0..self.walk.elements()).map(element).find(|&element| sought(element))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::kernels::testing::{Tensor, layouts};

    fn largest(array: &mut Tensor, width: usize) -> u32 {
        let scan = Scan::new(0, &array.meta, Width(width));
        let inputs = [array.address().cast_const()];
        // SAFETY: the array has the memory of its meta.
        let io = unsafe { Io::new(&inputs, &[], std::ptr::null_mut()) };
        scan.largest(&io, |x: i32| x as u32).unwrap()
    }

    #[test]
    fn every_element_of_every_layout_is_seen() {
        let shape = [3, 7, 500];
        for strides in layouts(&shape) {
            for place in [0, 5000, 10_499] {
                let mut values = vec![1.0; 10_500];
                values[place] = 9.0;
                let mut array = Tensor::strided(DType::Int32, &shape, &strides, &values);
                assert_eq!([1, 3].map(|width| largest(&mut array, width)), [9, 9]);
            }
        }
    }

    #[test]
    fn expanded_and_empty_inputs() {
        let mut one = Tensor::one(DType::Int32, 4.0);
        one.meta =
            Meta { strides: smallvec::smallvec![0; 2], ..Meta::new(DType::Int32, [1 << 30; 2]) };
        assert_eq!(largest(&mut one, 2), 4);
        one.meta.shape = [0, 1 << 30].into();
        assert_eq!(largest(&mut one, 2), 0);
    }
}

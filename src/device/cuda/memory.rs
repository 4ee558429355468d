//! The memory of a GPU.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use super::Driver;
use crate::device::Backend;
use crate::error::{Result, locked};

/// Addresses are as plentiful as a GPU's page tables have it: 47 bits.
const ADDRESSES: usize = 1 << 47;

/// A GPU's memory. Reserved addresses are backed by whole granules, each as long as any of its bytes
/// is asked for.
pub struct Memory {
    driver: &'static dyn Driver,
    /// How many bytes are asked for of each granule that is backed, by its address.
    granules: Mutex<HashMap<usize, usize>>,
}

impl Memory {
    /// The memory that a driver gives.
    pub fn new(driver: &'static dyn Driver) -> Memory {
        Memory { driver, granules: Mutex::default() }
    }

    fn granules(&self) -> MutexGuard<'_, HashMap<usize, usize>> {
        locked(&self.granules)
    }

    /// The granules that hold a range, each with the number of its bytes there.
    fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize)> + use<> {
        let granule = self.driver.granule();
        let first = range.start - range.start % granule;
        (first..range.end)
            .step_by(granule)
            .map(move |at| (at, range.end.min(at + granule) - range.start.max(at)))
    }
}

fn addresses(start: NonNull<u8>, bytes: usize) -> Range<usize> {
    start.addr().get()..start.addr().get() + bytes
}

impl Backend for Memory {
    fn is_host(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.driver.allocate(bytes)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, _bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.driver.free(pointer) }
    }

    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.driver.fill(start, value, bytes) }
    }

    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.driver.download(from, to) }
    }

    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.driver.upload(from, to) }
    }

    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.driver.reserve(bytes.next_multiple_of(self.driver.granule()))
    }

    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller; what is still backed is released first.
        unsafe {
            self.decommit(start, bytes);
            self.driver.unreserve(start, bytes.next_multiple_of(self.driver.granule()));
        }
    }

    unsafe fn commit(&self, start: NonNull<u8>, bytes: usize) -> bool {
        let mut granules = self.granules();
        let mut fresh = Vec::new();
        for (at, _) in self.parts(addresses(start, bytes)) {
            if granules.contains_key(&at) {
                continue;
            }
            // SAFETY: the caller's range is reserved, and the granule is not backed.
            let granted = unsafe { self.driver.map(place(at)) };
            if !granted {
                // SAFETY: these have just been backed.
                fresh.into_iter().for_each(|at| unsafe { self.driver.unmap(place(at)) });
                return false;
            }
            fresh.push(at);
        }
        for (at, part) in self.parts(addresses(start, bytes)) {
            *granules.entry(at).or_default() += part;
        }
        // SAFETY: all of it is backed.
        unsafe { self.driver.fill(start, 0, bytes) };
        true
    }

    unsafe fn decommit(&self, start: NonNull<u8>, bytes: usize) {
        let mut granules = self.granules();
        for (at, part) in self.parts(addresses(start, bytes)) {
            let Some(left) = granules.get_mut(&at) else { continue };
            *left = left.saturating_sub(part);
            if *left == 0 {
                granules.remove(&at);
                // SAFETY: it is backed, and nobody uses any of its bytes.
                unsafe { self.driver.unmap(place(at)) };
            }
        }
    }

    fn available(&self, _wanted: usize) -> usize {
        self.driver.memory().0
    }

    fn fillable(&self, _wanted: usize) -> usize {
        self.driver.memory().0
    }

    fn addresses(&self) -> usize {
        ADDRESSES
    }

    fn total(&self) -> usize {
        self.driver.memory().1
    }
}

fn place(address: usize) -> NonNull<u8> {
    let pointer = std::ptr::with_exposed_provenance_mut(address);
    NonNull::new(pointer).expect("the driver reserves no address 0")
}

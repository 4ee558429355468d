//! The memory that the ranks share, and its layout.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::described::Descriptions;
use super::peers::Identity;
use super::report::Report;
use super::signal::Signal;

/// The bytes that a rank shows to all others at once: few enough to stay in a cache until the others
/// have read them.
pub const CHUNK: usize = 256 << 10;
/// The most ranks of a group. Memory for pairs grows with the square of the number.
pub const MAX_RANKS: usize = 256;
/// The first bytes of the file, of which this module knows nothing.
pub const PREAMBLE: usize = 64;
/// Alignment of what follows the header, and of the slots.
const PAGE: usize = 4 << 10;
/// Parts of a chunk begin at multiples of a cache line.
const LINE: usize = 64;

/// What concerns all ranks.
#[repr(C, align(128))]
struct Header {
    preamble: [u8; PREAMBLE],
    attached: AtomicU32,
    report: Report,
}

/// What one rank shows to all others.
#[repr(C, align(128))]
pub struct Member {
    /// The number of chunks that it has published.
    pub published: Signal,
    /// The operations of the last two.
    pub descriptions: Descriptions,
    /// Whose process it is.
    pub identity: Identity,
    /// The number + 1 of the rank that it waits for, or 0.
    awaited: AtomicU32,
}

impl Member {
    /// Says which rank this one waits for.
    pub fn set_awaited(&self, rank: Option<usize>) {
        self.awaited.store(rank.map_or(0, |rank| rank as u32 + 1), Relaxed);
    }

    /// Which rank this one waits for.
    pub fn awaited(&self) -> Option<usize> {
        (self.awaited.load(Relaxed) as usize).checked_sub(1)
    }
}

/// What goes from one rank to another.
#[repr(C, align(128))]
pub struct Ring {
    /// How many parts the sender has written.
    pub sent: Signal,
    /// How many parts the receiver has read.
    pub taken: Signal,
    /// The operations of the last two.
    pub descriptions: Descriptions,
}

/// The mapped memory of a group: the header, a [`Member`] for each rank, a [`Ring`] for each pair,
/// two slots of [`CHUNK`] bytes for each rank, and two of [`Segment::part`] bytes for each pair.
/// Slots belong to numbers by turns, an even and an odd one.
pub struct Segment {
    start: NonNull<u8>,
    size: usize,
    layout: Layout,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Segment {}

/// Where each kind of contents starts in the segment of a group, and where it ends.
struct Layout {
    members: usize,
    rings: usize,
    slots: usize,
    parts: usize,
    end: usize,
}

impl Layout {
    const fn of(size: usize) -> Self {
        let members = size_of::<Header>().next_multiple_of(PAGE);
        let rings = members + size * size_of::<Member>();
        let slots = (rings + size * size * size_of::<Ring>()).next_multiple_of(PAGE);
        let parts = slots + size * 2 * CHUNK;
        Layout { members, rings, slots, parts, end: parts + size * size * 2 * part(size) }
    }
}

/// The bytes that a rank shows to one other at once: all its parts fit a chunk.
const fn part(size: usize) -> usize {
    CHUNK / size / LINE * LINE
}

impl Segment {
    /// The bytes of the segment of a group.
    pub fn bytes(size: usize) -> usize {
        Layout::of(size).end
    }

    /// Maps the segment of a group of `size` ranks; the file has [`Segment::bytes`].
    ///
    /// # Errors
    /// The system's.
    pub fn map(file: &File, size: usize) -> std::io::Result<Self> {
        let (access, bytes) = (libc::PROT_READ | libc::PROT_WRITE, Self::bytes(size));
        let (anywhere, file) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping at an address chosen by the kernel.
        let start = unsafe { libc::mmap(anywhere, bytes, access, libc::MAP_SHARED, file, 0) };
        match NonNull::new(start.cast()) {
            Some(first) if start != libc::MAP_FAILED => {
                Ok(Segment { start: first, size, layout: Layout::of(size) })
            }
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes of a part of a chunk.
    pub fn part(&self) -> usize {
        part(self.size)
    }

    /// The report of what has ended the group.
    pub fn report(&self) -> &Report {
        // SAFETY: the header is there.
        unsafe { &self.at::<Header>(0, 0).report }
    }

    /// Counts one more rank that is attached; how many are.
    pub fn attach(&self) -> usize {
        // SAFETY: the header is there.
        unsafe { self.at::<Header>(0, 0) }.attached.fetch_add(1, Relaxed) as usize + 1
    }

    /// What a rank shows to all.
    pub fn member(&self, rank: usize) -> &Member {
        assert!(rank < self.size);
        // SAFETY: there is one for each rank.
        unsafe { self.at(self.layout.members, rank) }
    }

    /// What goes from one rank to another.
    pub fn ring(&self, from: usize, to: usize) -> &Ring {
        // SAFETY: there is one for each pair.
        unsafe { self.at(self.layout.rings, self.pair(from, to)) }
    }

    /// Wakes all who sleep on a number of this segment.
    pub fn wake(&self) {
        let ranks = || 0..self.size;
        ranks().for_each(|rank| self.member(rank).published.wake());
        for ring in ranks().flat_map(|from| ranks().map(move |to| self.ring(from, to))) {
            ring.sent.wake();
            ring.taken.wake();
        }
    }

    /// A rank's chunk of a number.
    ///
    /// # Safety
    /// The number is published, and its rank has not come to the next but one.
    pub unsafe fn slot(&self, rank: usize, number: u32) -> &[u8] {
        // SAFETY: in the mapping, and nobody writes it meanwhile, says the caller.
        unsafe { self.chunk(rank, number).as_ref() }
    }

    /// A rank's chunk of a number, to be written.
    ///
    /// # Safety
    /// The number is the rank's next, and nobody reads the one before the last any more.
    #[expect(clippy::mut_from_ref, reason = "each slot has one writer at a time, says the caller")]
    pub unsafe fn slot_mut(&self, rank: usize, number: u32) -> &mut [u8] {
        // SAFETY: in the mapping, and nobody else accesses it meanwhile, says the caller.
        unsafe { self.chunk(rank, number).as_mut() }
    }

    /// A pair's part of a number.
    ///
    /// # Safety
    /// The number is sent, and not yet taken.
    pub unsafe fn pair_slot(&self, from: usize, to: usize, number: u32) -> &[u8] {
        // SAFETY: in the mapping, and nobody writes it meanwhile, says the caller.
        unsafe { self.pair_part(from, to, number).as_ref() }
    }

    /// A pair's part of a number, to be written.
    ///
    /// # Safety
    /// The number is the sender's next, and the one before the last is taken.
    #[expect(clippy::mut_from_ref, reason = "each slot has one writer at a time, says the caller")]
    pub unsafe fn pair_slot_mut(&self, from: usize, to: usize, number: u32) -> &mut [u8] {
        // SAFETY: in the mapping, and nobody else accesses it meanwhile, says the caller.
        unsafe { self.pair_part(from, to, number).as_mut() }
    }

    fn chunk(&self, rank: usize, number: u32) -> NonNull<[u8]> {
        assert!(rank < self.size);
        let index = 2 * rank + number as usize % 2;
        self.range(self.layout.slots + index * CHUNK, CHUNK)
    }

    fn pair_part(&self, from: usize, to: usize, number: u32) -> NonNull<[u8]> {
        let index = 2 * self.pair(from, to) + number as usize % 2;
        self.range(self.layout.parts + index * self.part(), self.part())
    }

    fn pair(&self, from: usize, to: usize) -> usize {
        assert!(from < self.size && to < self.size);
        from * self.size + to
    }

    fn range(&self, start: usize, bytes: usize) -> NonNull<[u8]> {
        // SAFETY: the layout's places are in the mapping.
        NonNull::slice_from_raw_parts(unsafe { self.start.byte_add(start) }, bytes)
    }

    /// The `T` of an index among those that start at a place.
    ///
    /// # Safety
    /// There are such in the layout.
    unsafe fn at<T>(&self, start: usize, index: usize) -> &T {
        // SAFETY: in the mapping, and aligned as its start is. What others change there is in atomics
        // and cells, and zeros are a value of it.
        unsafe { self.start.byte_add(start + index * size_of::<T>()).cast().as_ref() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and what it lent has ended.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.layout.end) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_a_chunk_but_for_a_line_each() {
        for size in 1..=MAX_RANKS {
            let all = part(size) * size;
            assert!(part(size) >= LINE && all <= CHUNK && all + size * LINE > CHUNK, "{size}");
        }
    }

    #[test]
    fn contents_are_aligned() {
        for size in [1, 2, 3, 7, MAX_RANKS] {
            let layout = Layout::of(size);
            assert_eq!([layout.members % 128, layout.rings % 128, layout.slots % PAGE], [0; 3]);
        }
        assert_eq!([size_of::<Member>() % 128, size_of::<Ring>() % 128], [0; 2]);
    }
}

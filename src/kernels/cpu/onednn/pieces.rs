//! A primitive's work in pieces, which the threads of the team claim one by one. Pieces depend on
//! sizes alone, so the same bits follow from any number of threads.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use crate::device::onednn::{Choice, Primitive};
use crate::device::{ALIGNMENT, team};
use crate::error::Result;
use crate::kernels::cpu::strided::access;

/// Multiplications and additions that make a piece worthwhile: some 40 microseconds of a thread.
const WORTHWHILE: u64 = 4 << 20;
/// Bytes that make a piece worthwhile where there is little to compute, as in depthwise convolutions
/// and those of a pixel.
const MOVED: u64 = 128 << 10;
/// Pieces of this many multiplications and additions are large enough for any number of them.
const LARGE: u64 = 256 << 20;
/// The most pieces of an operation.
const MOST: usize = 64;

/// How many pieces an operation of this many multiplications and additions, which moves so many
/// bytes, is cut into: `usual` at most unless they are large.
pub fn count(flops: u64, bytes: usize, usual: usize) -> usize {
    let computing = flops / WORTHWHILE;
    let wanted = if computing > 1 { computing } else { bytes as u64 / MOVED };
    let usual = wanted.min(usual as u64);
    usual.max(flops / LARGE).clamp(1, MOST as u64) as usize
}

/// As many pieces, or a few less, as two or four threads get equal parts of.
pub fn balanced(pieces: usize) -> usize {
    match pieces {
        0..2 => 1,
        2..4 => 2,
        _ => pieces & !3,
    }
}

/// Columns of a matrix that are copied into contiguous scratch memory, or back from there.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The number of rows.
    pub rows: usize,
    /// Bytes of the columns in a row.
    pub bytes: usize,
    /// Bytes from row to row.
    pub pitch: usize,
    /// The same in the copy, whose rows may be longer than what is copied.
    pub width: usize,
}

/// The part of a tensor that belongs to a piece.
#[derive(Clone, Copy, Default, Debug)]
pub struct Part {
    /// Its offset in bytes.
    pub start: usize,
    /// How it is copied for the primitive; `None` if it is used in place.
    pub columns: Option<Columns>,
}

impl Part {
    /// A part that is used in place.
    pub fn at(start: usize) -> Self {
        Part { start, columns: None }
    }
}

/// A part of each tensor, in the order of the primitive's arguments; the result is the last.
pub type Parts = SmallVec<[Part; 4]>;

struct Piece {
    primitive: usize,
    parts: Parts,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Pieces {
    primitives: Vec<Primitive>,
    pieces: Vec<Piece>,
    /// How many results of the pieces are to be added, and the bytes of each; they follow one
    /// another.
    sums: Option<(usize, usize)>,
    seats: usize,
    /// Bytes of scratch memory for each seat.
    scratch: usize,
    clears: bool,
}

/// Pieces while they are collected. Those of one size, which `S` tells apart, share a primitive.
pub struct Collected<S> {
    pieces: Pieces,
    sizes: Vec<S>,
}

impl<S: PartialEq> Collected<S> {
    /// No pieces yet, for this many threads.
    pub fn new(seats: usize) -> Self {
        Collected { pieces: Pieces { seats, ..Pieces::default() }, sizes: Vec::new() }
    }

    /// Adds a piece, with oneDNN's choice for pieces of its size; false if that is `None`.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn add<'a>(
        &mut self,
        size: S,
        choice: impl FnOnce() -> Result<Option<Choice<'a>>>,
        parts: Parts,
    ) -> Result<bool> {
        let known = self.sizes.iter().position(|known| *known == size);
        let primitive = known.unwrap_or(self.sizes.len());
        if known.is_none() {
            let Some(choice) = choice()? else { return Ok(false) };
            self.pieces.primitives.push(choice.build()?);
            self.sizes.push(size);
        }
        self.pieces.pieces.push(Piece { primitive, parts });
        Ok(true)
    }

    /// All that were added.
    pub fn done(self) -> Pieces {
        self.pieces.measured()
    }
}

impl Pieces {
    /// A single piece.
    pub fn whole(primitive: Primitive) -> Self {
        Pieces::equal(primitive, [Parts::new()], 1)
    }

    /// Pieces of one size, for this many threads.
    pub fn equal(
        primitive: Primitive,
        parts: impl IntoIterator<Item = Parts>,
        seats: usize,
    ) -> Self {
        let pieces = parts.into_iter().map(|parts| Piece { primitive: 0, parts }).collect();
        Pieces { primitives: vec![primitive], pieces, seats, ..Pieces::default() }.measured()
    }

    /// With the scratch memory that its pieces need.
    fn measured(self) -> Self {
        let primitives = self.primitives.iter().map(Primitive::scratch).max().unwrap_or(0);
        let copies = self.pieces.iter().map(Piece::copies).max().unwrap_or(0);
        Pieces { scratch: copies + primitives.next_multiple_of(ALIGNMENT), ..self }
    }

    /// The same, but each piece's result is one of `count` of this many bytes that are to be added.
    pub fn with_sums(self, count: usize, bytes: usize) -> Self {
        Pieces { sums: Some((count, bytes)), ..self }
    }

    /// The same for primitives that read scratch memory before they write it: it is zeroed first.
    pub fn clearing(self, clears: bool) -> Self {
        Pieces { clears, ..self }
    }

    /// Results to be added, and the bytes of each.
    pub fn sums(&self) -> Option<(usize, usize)> {
        self.sums
    }

    /// The implementation's name.
    pub fn implementation(&self) -> &str {
        self.primitives[0].implementation()
    }

    /// Bytes of scratch memory.
    pub fn scratch(&self) -> usize {
        self.seats() * self.scratch
    }

    /// The most threads that run them.
    pub fn seats(&self) -> usize {
        self.seats.min(self.pieces.len())
    }

    /// Runs all pieces on tensors at these addresses.
    ///
    /// # Errors
    /// [`crate::Error::Library`], and the errors of the team.
    ///
    /// # Safety
    /// As [`Primitive::run`], with [`Pieces::scratch`] bytes.
    pub unsafe fn run(&self, addresses: &[*mut u8], scratch: *mut u8) -> Result<()> {
        if let [piece] = &self.pieces[..] {
            // SAFETY: by the caller's promise.
            return unsafe { self.run_piece(piece, addresses, scratch) };
        }
        let shared = Shared(addresses, scratch);
        team::each(self.pieces.len(), self.seats(), |piece, seat| {
            let (addresses, scratch) = shared.get();
            let own = scratch.wrapping_add(seat * self.scratch);
            // SAFETY: by the caller's promise; pieces write different parts, and no other thread
            // has this seat.
            unsafe { self.run_piece(&self.pieces[piece], addresses, own) }
        })
    }

    /// # Safety
    /// As [`Pieces::run`], with a seat's scratch memory, which nothing else uses.
    unsafe fn run_piece(&self, piece: &Piece, whole: &[*mut u8], scratch: *mut u8) -> Result<()> {
        if self.clears {
            // SAFETY: by the caller's promise.
            unsafe { scratch.write_bytes(0, self.scratch) };
        }
        let (mut room, result) = (scratch, whole.len() - 1);
        let mut addresses: SmallVec<[*mut u8; 4]> = SmallVec::from_slice(whole);
        for (address, part) in addresses.iter_mut().zip(&piece.parts) {
            *address = address.wrapping_add(part.start);
        }
        let given = addresses.clone();
        for (i, part) in piece.parts.iter().enumerate() {
            let Some(columns) = part.columns else { continue };
            addresses[i] = room;
            room = room.wrapping_add(columns.room());
            if i != result {
                // SAFETY: by the caller's promise.
                unsafe { columns.copy((given[i], columns.pitch), (addresses[i], columns.width)) };
            }
        }
        // SAFETY: as above.
        unsafe { self.primitives[piece.primitive].run(&addresses, room) }?;
        if let Some(Part { columns: Some(columns), .. }) = piece.parts.get(result) {
            let (from, to) = (addresses[result], given[result]);
            // SAFETY: as above.
            unsafe { columns.copy((from, columns.width), (to, columns.pitch)) };
        }
        Ok(())
    }
}

impl Piece {
    /// Bytes of the copies of parts.
    fn copies(&self) -> usize {
        self.parts.iter().filter_map(|part| part.columns).map(|columns| columns.room()).sum()
    }
}

impl Columns {
    fn room(&self) -> usize {
        (self.rows * self.width).next_multiple_of(ALIGNMENT)
    }

    /// Copies the rows between places with these distances from row to row.
    ///
    /// # Safety
    /// Both are valid for all rows and do not overlap.
    unsafe fn copy(&self, (from, down): (*mut u8, usize), (to, below): (*mut u8, usize)) {
        for row in 0..self.rows {
            // SAFETY: by the caller's promise.
            unsafe {
                access::copy(from.add(row * down), to.add(row * below), self.bytes);
            }
        }
    }
}

/// Addresses that the threads of a region share.
struct Shared<'a>(&'a [*mut u8], *mut u8);

// SAFETY: pieces write different parts of what the addresses point to.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    fn get(&self) -> (&[*mut u8], *mut u8) {
        (self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_and_four_threads_get_equal_parts() {
        for (units, wanted) in (1..100).flat_map(|units| (1..=16).map(move |n| (units, n))) {
            let pieces = balanced(wanted.min(units));
            assert!(pieces <= wanted && wanted.min(units) < pieces + 4);
            for threads in [2, 4].into_iter().filter(|threads| pieces >= *threads) {
                let of = |n: usize| {
                    let own = (0..pieces).skip(n * pieces / threads).take(pieces / threads);
                    own.map(|piece| team::share(units, 1, pieces, piece).len()).sum::<usize>()
                };
                let parts: Vec<usize> = (0..threads).map(of).collect();
                let (least, most) = (parts.iter().min(), parts.iter().max());
                assert!(
                    most.zip(least).is_some_and(|(most, least)| most - least <= 1),
                    "{parts:?}"
                );
            }
        }
    }
}

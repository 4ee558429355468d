//! Best fit in the order of time, as an allocator would do it, in O(n log n).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Piece;

/// The offsets of pieces, which are sorted by the first node that needs them.
pub(super) fn forward(pieces: &[Piece]) -> Vec<usize> {
    Online::new(pieces, Vec::new()).forward((0..pieces.len() as u32).collect())
}

/// The same with time running backwards.
pub(super) fn backward(pieces: &[Piece]) -> Vec<usize> {
    Online::new(pieces, Vec::new()).backward((0..pieces.len() as u32).collect())
}

/// The same outward from a moment in both directions: at the peak nothing needs to be left free,
/// and away from it there is more and more room.
pub(super) fn outward(pieces: &[Piece], moment: u32) -> Vec<usize> {
    let is = |keep: &dyn Fn(&Piece) -> bool| -> Vec<u32> {
        (0..pieces.len() as u32).filter(|&p| keep(&pieces[p as usize])).collect()
    };
    let mut live = is(&|piece| piece.first <= moment && moment <= piece.last);
    live.sort_by_key(|&p| (Reverse(pieces[p as usize].last), pieces[p as usize].first));
    let after = Online::new(pieces, live.clone()).forward(is(&|piece| piece.first > moment));
    let mut offsets = Online::new(pieces, live).backward(is(&|piece| piece.last < moment));
    for (p, piece) in pieces.iter().enumerate() {
        if piece.first > moment {
            offsets[p] = after[p];
        }
    }
    offsets
}

/// A pass that places pieces one after the other, each after freeing those that are over by then.
struct Online<'a> {
    pieces: &'a [Piece],
    offsets: Vec<usize>,
    holes: Holes,
    /// Pieces that have been placed already.
    placed: Vec<u32>,
}

impl<'a> Online<'a> {
    /// Starts with the pieces in `live` stacked on each other.
    fn new(pieces: &'a [Piece], live: Vec<u32>) -> Self {
        let mut offsets = vec![0; pieces.len()];
        let mut holes = Holes::default();
        for &p in &live {
            offsets[p as usize] = holes.take(pieces[p as usize].size);
        }
        Online { pieces, offsets, holes, placed: live }
    }

    /// Places pieces in the order in which they begin, which is that of `starts`.
    fn forward(self, starts: Vec<u32>) -> Vec<usize> {
        let pieces = self.pieces;
        let mut ends = [&self.placed[..], &starts].concat();
        ends.sort_by_key(|&p| pieces[p as usize].last);
        self.place(&starts, &ends, |gone, next| gone.last < next.first)
    }

    /// Places pieces, given in the order in which they begin, by descending end.
    fn backward(self, mut starts: Vec<u32>) -> Vec<usize> {
        let pieces = self.pieces;
        let mut ends = [&self.placed[..], &starts].concat();
        ends.sort_by_key(|&p| Reverse(pieces[p as usize].first));
        let key = |&p: &u32| (pieces[p as usize].last, pieces[p as usize].size);
        starts.sort_by_key(|p| Reverse(key(p)));
        self.place(&starts, &ends, |gone, next| gone.first > next.last)
    }

    /// Places pieces in the order `starts`, after freeing those of `ends` that are over by then.
    fn place(
        mut self,
        starts: &[u32],
        ends: &[u32],
        is_over: impl Fn(&Piece, &Piece) -> bool,
    ) -> Vec<usize> {
        let mut freed = 0;
        for &p in starts {
            let piece = &self.pieces[p as usize];
            while is_over(&self.pieces[ends[freed] as usize], piece) {
                let gone = ends[freed] as usize;
                self.holes.free(self.offsets[gone], self.pieces[gone].size);
                freed += 1;
            }
            self.offsets[p as usize] = self.holes.take(piece.size);
        }
        self.offsets
    }
}
/// The free ranges below the top of what is in use.
#[derive(Default)]
struct Holes {
    by_offset: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    top: usize,
}

impl Holes {
    /// The offset of the smallest hole that is large enough, or the top.
    fn take(&mut self, size: usize) -> usize {
        let Some(&(room, offset)) = self.by_size.range((size, 0)..).next() else {
            self.top += size;
            return self.top - size;
        };
        self.remove(offset, room);
        if room > size {
            self.insert(offset + size, room - size);
        }
        offset
    }

    /// Frees a range and merges it with free neighbours.
    fn free(&mut self, mut offset: usize, mut size: usize) {
        if let Some((&before, &room)) = self.by_offset.range(..offset).next_back()
            && before + room == offset
        {
            self.remove(before, room);
            (offset, size) = (before, room + size);
        }
        if let Some(&room) = self.by_offset.get(&(offset + size)) {
            self.remove(offset + size, room);
            size += room;
        }
        match offset + size == self.top {
            true => self.top = offset,
            false => self.insert(offset, size),
        }
    }

    fn insert(&mut self, offset: usize, size: usize) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

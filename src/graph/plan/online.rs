//! Best fit in the order of time: what an allocator would do, at O(n log n).

use std::collections::{BTreeMap, BTreeSet};

use super::Piece;

/// Offsets of pieces that are sorted by the first node that needs them.
pub(super) fn forward(pieces: &[Piece]) -> Vec<usize> {
    let starts: Vec<u32> = (0..pieces.len() as u32).collect();
    let mut ends = starts.clone();
    ends.sort_by_key(|&p| pieces[p as usize].last);
    let begins = |p: u32| pieces[p as usize].first;
    place(pieces, &starts, &ends, |gone, next| pieces[gone as usize].last < begins(next))
}

/// The same with time running backwards.
pub(super) fn backward(pieces: &[Piece]) -> Vec<usize> {
    let mut starts: Vec<u32> = (0..pieces.len() as u32).collect();
    let mut ends = starts.clone();
    let key = |&p: &u32| (pieces[p as usize].last, pieces[p as usize].size);
    starts.sort_by_key(|p| std::cmp::Reverse(key(p)));
    ends.reverse();
    let begins = |p: u32| pieces[p as usize].last;
    place(pieces, &starts, &ends, |gone, next| pieces[gone as usize].first > begins(next))
}

/// Places pieces in the order `starts`, after freeing those of `ends` that are over by then.
fn place(
    pieces: &[Piece],
    starts: &[u32],
    ends: &[u32],
    is_over: impl Fn(u32, u32) -> bool,
) -> Vec<usize> {
    let mut offsets = vec![0; pieces.len()];
    let (mut holes, mut freed) = (Holes::default(), 0);
    for &p in starts {
        while is_over(ends[freed], p) {
            let gone = ends[freed] as usize;
            holes.free(offsets[gone], pieces[gone].size);
            freed += 1;
        }
        offsets[p as usize] = holes.take(pieces[p as usize].size);
    }
    offsets
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

    /// Gives a range back; it becomes one with free neighbours.
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

//! First fit in a given order: each piece goes to the lowest offset that those before it leave
//! free.

use super::Piece;

/// Places pieces repeatedly, in different orders.
pub(super) struct FirstFit<'a> {
    pieces: &'a [Piece],
    /// Placed pieces by offset: (start, end, piece).
    placed: Vec<(usize, usize, Piece)>,
    offsets: Vec<usize>,
}

impl<'a> FirstFit<'a> {
    pub(super) fn new(pieces: &'a [Piece]) -> Self {
        let placed = Vec::with_capacity(pieces.len());
        FirstFit { pieces, placed, offsets: vec![0; pieces.len()] }
    }

    /// Places all pieces in an order.
    ///
    /// # Errors
    /// The position in the order of the first piece that does not end below `limit`.
    pub(super) fn place(&mut self, order: &[u32], limit: usize) -> Result<&[usize], usize> {
        self.placed.clear();
        for (at, &p) in order.iter().enumerate() {
            let piece = self.pieces[p as usize];
            let start = self.lowest(&piece);
            let end = start + piece.size;
            if end >= limit {
                return Err(at);
            }
            let above = self.placed.partition_point(|&(other, _, _)| other < start);
            self.placed.insert(above, (start, end, piece));
            self.offsets[p as usize] = start;
        }
        Ok(&self.offsets)
    }

    /// The offsets of the latest placement.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The lowest offset with enough free room over the piece's lifetime.
    fn lowest(&self, piece: &Piece) -> usize {
        let mut lowest = 0;
        for (start, end, _) in self.placed.iter().filter(|(_, _, other)| other.meets(piece)) {
            if *start >= lowest + piece.size {
                break;
            }
            lowest = lowest.max(*end);
        }
        lowest
    }
}

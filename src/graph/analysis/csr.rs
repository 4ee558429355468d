//! Lists of different lengths in one array (compressed sparse rows).

/// Rows of items, all in one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr<T> {
    ends: Vec<usize>,
    items: Vec<T>,
}

/// The predecessors of each node, distinct and in ascending order.
pub type Edges = Csr<u32>;

impl<T> Csr<T> {
    /// No rows, with capacity for `rows` rows and `items` items.
    pub fn with_capacity(rows: usize, items: usize) -> Self {
        Csr { ends: Vec::with_capacity(rows), items: Vec::with_capacity(items) }
    }

    /// Adds an item to the current row.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Ends the current row.
    pub fn end_row(&mut self) {
        self.ends.push(self.items.len());
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The items of all rows.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items of one row.
    pub fn row(&self, row: usize) -> &[T] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.items[start..self.ends[row]]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.rows()).map(|row| self.row(row))
    }

    /// Releases spare capacity.
    pub fn shrink(&mut self) {
        self.ends.shrink_to_fit();
        self.items.shrink_to_fit();
    }
}

impl<T: Copy + Default> Csr<T> {
    /// Counting sort of (row, item) pairs into rows; items of a row keep their order.
    pub fn sorted<I: Iterator<Item = (usize, T)>>(rows: usize, items: impl Fn() -> I) -> Self {
        let mut ends = vec![0; rows];
        items().for_each(|(row, _)| ends[row] += 1);
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut sorted = vec![T::default(); total];
        for (row, item) in items() {
            sorted[ends[row]] = item;
            ends[row] += 1;
        }
        Csr { ends, items: sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_room_is_given_back() {
        let mut rows = Csr::with_capacity(1000, 1000);
        rows.push(7);
        rows.end_row();
        rows.shrink();
        assert!(rows.ends.capacity() < 10 && rows.items.capacity() < 10);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [[7]]);
    }
}

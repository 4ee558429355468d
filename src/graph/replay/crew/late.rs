//! Tasks that a worker skipped and that have become ready since.

/// A queue of tasks, in the order in which they became ready.
pub(super) struct Late {
    tasks: Box<[u32]>,
    first: usize,
    end: usize,
}

impl Late {
    /// Room for `most` tasks between two calls of `clear`.
    pub(super) fn new(most: usize) -> Late {
        Late { tasks: vec![0; most].into(), first: 0, end: 0 }
    }

    pub(super) fn clear(&mut self) {
        (self.first, self.end) = (0, 0);
    }

    pub(super) fn push(&mut self, seat: u32) {
        self.tasks[self.end] = seat;
        self.end += 1;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.first == self.end {
            return None;
        }
        self.first += 1;
        Some(self.tasks[self.first - 1])
    }
}

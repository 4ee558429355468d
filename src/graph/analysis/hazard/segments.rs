//! Ranges of a resource that have different last writers or readers.

use std::collections::BTreeMap;

use super::{Last, UNTOUCHED};
use crate::graph::access::Access;

/// Disjoint ranges by their start: (end, last accesses).
#[derive(Default)]
pub(super) struct Segments(BTreeMap<usize, (usize, Last)>);

impl Segments {
    /// Calls `touch` for each part of the range. A written range becomes one part.
    pub(super) fn touch(&mut self, access: &Access, mut touch: impl FnMut(&mut Last)) {
        let (start, end) = (access.start, access.end);
        self.cut(start);
        self.cut(end);
        self.fill(start, end);
        self.0.range_mut(start..end).for_each(|(_, (_, last))| touch(last));
        if access.is_write {
            self.join(start, end);
        }
    }

    /// Splits the range around `at`, if there is one.
    fn cut(&mut self, at: usize) {
        let Some((_, (end, last))) = self.0.range_mut(..at).next_back() else { return };
        if *end > at {
            let rest = (std::mem::replace(end, at), *last);
            self.0.insert(at, rest);
        }
    }

    /// Adds ranges for bytes that have not been touched yet.
    fn fill(&mut self, start: usize, end: usize) {
        let mut at = start;
        let mut gaps: smallvec::SmallVec<[(usize, usize); 4]> = smallvec::SmallVec::new();
        for (&next, &(after, _)) in self.0.range(start..end) {
            if next > at {
                gaps.push((at, next));
            }
            at = after;
        }
        if at < end {
            gaps.push((at, end));
        }
        self.0.extend(gaps.into_iter().map(|(start, end)| (start, (end, UNTOUCHED))));
    }

    /// Joins the ranges that a write has just made equal.
    fn join(&mut self, start: usize, end: usize) {
        while let Some((&next, _)) = self.0.range(start + 1..end).next() {
            self.0.remove(&next);
        }
        if let Some((first, _)) = self.0.get_mut(&start) {
            *first = end;
        }
    }
}

//! What each range of a memory holds.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each byte, kept by ranges.
#[derive(Clone, Debug)]
pub(super) struct Intervals<T> {
    /// From each key on, up to the next one.
    from: BTreeMap<usize, Option<T>>,
}

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Intervals { from: BTreeMap::from([(0, None)]) }
    }
}

impl<T: Copy> Intervals<T> {
    /// Sets all bytes of a range.
    pub(super) fn set(&mut self, range: Range<usize>, value: T) {
        if range.start >= range.end {
            return;
        }
        let after = self.at(range.end);
        let inside: Vec<usize> = self.from.range(range.clone()).map(|(&key, _)| key).collect();
        for key in inside {
            self.from.remove(&key);
        }
        self.from.insert(range.start, Some(value));
        self.from.insert(range.end, after);
    }

    /// The value of one byte.
    fn at(&self, byte: usize) -> Option<T> {
        self.from.range(..=byte).next_back().and_then(|(_, value)| *value)
    }

    /// The parts of a range and their values.
    pub(super) fn parts(&self, range: Range<usize>) -> Vec<(Range<usize>, Option<T>)> {
        if range.start >= range.end {
            return Vec::new();
        }
        let mut parts = vec![(range.clone(), self.at(range.start))];
        for (&key, &value) in self.from.range(range.start + 1..range.end) {
            if let Some((part, _)) = parts.last_mut() {
                part.end = key;
            }
            parts.push((key..range.end, value));
        }
        parts
    }
}

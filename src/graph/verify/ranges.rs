//! What each range of a memory holds.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each byte that was set, stored by ranges. Most memories are only ever set as a
/// whole.
#[derive(Clone, Debug, Default)]
pub(super) enum Ranges<T> {
    /// No byte is set.
    #[default]
    Nothing,
    /// One range.
    One(Range<usize>, T),
    /// Disjoint ranges by their start: (end, value).
    Many(BTreeMap<usize, (usize, T)>),
}

impl<T: Clone> Ranges<T> {
    /// Sets all bytes of a range.
    pub(super) fn set(&mut self, range: Range<usize>, value: T) {
        if range.is_empty() {
            return;
        }
        match self {
            Ranges::Nothing => *self = Ranges::One(range, value),
            Ranges::One(known, held) if range.start <= known.start && known.end <= range.end => {
                (*known, *held) = (range, value);
            }
            _ => {
                let map = self.split(&range);
                while let Some((&inside, _)) = map.range(range.clone()).next() {
                    map.remove(&inside);
                }
                map.insert(range.start, (range.end, value));
            }
        }
    }

    /// Passes each part of a range and its value to `show`, in order; None for bytes that are not
    /// set.
    pub(super) fn parts<E>(
        &self,
        range: Range<usize>,
        mut show: impl FnMut(Range<usize>, Option<&T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = range.start;
        let mut one = |start: usize, end: usize, value| {
            let (start, end) = (start.max(range.start), end.min(range.end));
            if start >= end {
                return Ok(());
            }
            if at < start {
                show(at..start, None)?;
            }
            at = end;
            show(start..end, Some(value))
        };
        match self {
            Ranges::Nothing => {}
            Ranges::One(known, value) => one(known.start, known.end, value)?,
            Ranges::Many(map) => {
                let before = map.range(..=range.start).next_back();
                let inside = map.range(range.start..range.end.max(range.start));
                let inside = inside.skip_while(|&(&start, _)| start == range.start);
                for (&start, (end, value)) in before.into_iter().chain(inside) {
                    one(start, *end, value)?;
                }
            }
        }
        if at < range.end { show(at..range.end, None) } else { Ok(()) }
    }

    /// Changes the value of each part of a range; bytes that are not set get the default value
    /// first.
    pub(super) fn update<E>(
        &mut self,
        range: Range<usize>,
        mut change: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Default,
    {
        if range.is_empty() {
            return Ok(());
        }
        if matches!(self, Ranges::Nothing) {
            *self = Ranges::One(range.clone(), T::default());
        }
        if let Ranges::One(known, value) = self
            && *known == range
        {
            return change(value);
        }
        let mut gaps = Vec::new();
        let note = |part: Range<usize>, value: Option<&T>| {
            gaps.extend(value.is_none().then_some(part));
            Ok::<_, E>(())
        };
        self.parts(range.clone(), note)?;
        let map = self.split(&range);
        map.extend(gaps.into_iter().map(|gap| (gap.start, (gap.end, T::default()))));
        map.range_mut(range).try_for_each(|(_, (_, value))| change(value))
    }

    /// All ranges, split so that none crosses an end of the given one.
    fn split(&mut self, range: &Range<usize>) -> &mut BTreeMap<usize, (usize, T)> {
        let mut map = match std::mem::take(self) {
            Ranges::Nothing => BTreeMap::new(),
            Ranges::One(known, value) => BTreeMap::from([(known.start, (known.end, value))]),
            Ranges::Many(map) => map,
        };
        for at in [range.start, range.end] {
            if let Some((_, (end, value))) = map.range_mut(..at).next_back()
                && *end > at
            {
                let rest = (std::mem::replace(end, at), value.clone());
                map.insert(at, rest);
            }
        }
        *self = Ranges::Many(map);
        let Ranges::Many(map) = self else { unreachable!("it was just made") };
        map
    }
}

//! The places of steps in an order that others can be inserted into, and sets of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use smallvec::SmallVec;

/// Labels ascend in the order; this much is free between those of recorded steps.
const GAP: u64 = 1 << 24;
/// A range of 2^k labels is spread if less than this to the power of k are taken; the least k leaves
/// several labels to each.
const ROOM: (f64, u32) = (1.5, 6);

/// The labels of numbers, after Bender et al. (2002, "Two simplified algorithms for maintaining
/// order in a list"): where they run out, those around are spread, so that an insertion changes few
/// labels on average, wherever it is.
pub(super) struct Sequence {
    /// By number.
    labels: Vec<u64>,
    order: BTreeMap<u64, u32>,
}

impl Sequence {
    /// The first numbers, in ascending order.
    pub(super) fn new(count: usize) -> Sequence {
        let labels: Vec<u64> = (1..=count as u64).map(|n| n * GAP).collect();
        Sequence { order: labels.iter().copied().zip(0..).collect(), labels }
    }

    /// All numbers in order.
    pub(super) fn numbers(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.order.values().map(|&n| n as usize)
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The number with its label, by which sets order their members.
    pub(super) fn member(&self, n: usize) -> Member {
        (self.labels[n], n as u32)
    }

    /// The labels between those of two numbers.
    pub(super) fn between(&self, first: usize, second: usize) -> Range<u64> {
        self.labels[first] + 1..self.labels[second]
    }

    /// The numbers after one, in order.
    pub(super) fn after(&self, n: usize) -> impl Iterator<Item = usize> {
        self.order.range(self.labels[n] + 1..).map(|(_, &n)| n as usize)
    }

    /// The labels around a number between which one that is to come right before or after it gets
    /// its own.
    pub(super) fn gap(&self, n: usize, is_after: bool) -> Range<u64> {
        let label = self.labels[n];
        match is_after {
            true => label..self.order.range(label + 1..).next().map_or(u64::MAX, |next| *next.0),
            false => self.order.range(..label).next_back().map_or(0, |last| *last.0)..label,
        }
    }

    /// Adds a number in a gap; None if no label is left there.
    pub(super) fn add(&mut self, gap: Range<u64>) -> Option<usize> {
        let label = gap.start + (gap.end - gap.start) / 2;
        (label > gap.start).then(|| {
            self.order.insert(label, self.labels.len() as u32);
            self.labels.push(label);
            self.labels.len() - 1
        })
    }

    /// The numbers around one that have to be spread to make room, and the labels that they then
    /// share.
    pub(super) fn crowd(&self, n: usize) -> (Vec<u32>, Range<u64>) {
        let label = self.labels[n];
        let range = |bits: u32| label >> bits << bits..=label | ((1 << bits) - 1);
        let has_room = |bits: &u32| {
            let taken = self.order.range(range(*bits)).count();
            (taken as f64) < ROOM.0.powi(*bits as i32)
        };
        let bits = (ROOM.1..63).find(has_room).unwrap_or(63);
        let crowd = self.order.range(range(bits)).map(|(_, &n)| n).collect();
        (crowd, *range(bits).start()..*range(bits).end())
    }

    /// Spreads numbers evenly over labels that no others have.
    pub(super) fn spread(&mut self, numbers: &[u32], labels: Range<u64>) {
        for &n in numbers {
            self.order.remove(&self.labels[n as usize]);
        }
        let step = (labels.end - labels.start) / numbers.len() as u64;
        for (&n, label) in numbers.iter().zip((labels.start + step / 2..).step_by(step as usize)) {
            self.labels[n as usize] = label;
            self.order.insert(label, n);
        }
    }
}

/// A set with more members than this is a tree, so that changing it never takes linear time.
const FEW: usize = 16;

/// A number behind its label.
pub(super) type Member = (u64, u32);

/// A set of steps in order: most have a few members, those of shared weights many.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// In order.
    Few(SmallVec<[(u64, u32); 2]>),
    /// In a tree.
    Many(BTreeSet<(u64, u32)>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Few(SmallVec::new())
    }
}

impl Numbers {
    /// Adds a number unless it is there.
    pub(super) fn insert(&mut self, n: Member) {
        match self {
            Numbers::Few(few) => {
                let Err(place) = few.binary_search(&n) else { return };
                few.insert(place, n);
                if few.len() > FEW {
                    *self = Numbers::Many(few.drain(..).collect());
                }
            }
            Numbers::Many(many) => drop(many.insert(n)),
        }
    }

    /// Removes a number.
    pub(super) fn remove(&mut self, n: Member) {
        match self {
            Numbers::Few(few) => few.retain(|one| *one != n),
            Numbers::Many(many) => drop(many.remove(&n)),
        }
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        let (few, many) = match self {
            Numbers::Few(few) => (&few[..], None),
            Numbers::Many(many) => (&[][..], Some(many)),
        };
        few.iter().chain(many.into_iter().flatten()).map(|&(_, n)| n as usize)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The first.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The last.
    pub fn last(&self) -> Option<usize> {
        self.iter().next_back()
    }

    /// The only one, if there is just one.
    pub fn only(&self) -> Option<usize> {
        self.first().filter(|first| self.last() == Some(*first))
    }

    /// Whether there is one with a label in a range.
    pub(super) fn has_within(&self, labels: Range<u64>) -> bool {
        let next = match self {
            Numbers::Few(few) => few.iter().find(|one| one.0 >= labels.start),
            Numbers::Many(many) => many.range((labels.start, 0)..).next(),
        };
        next.is_some_and(|next| labels.contains(&next.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_any_size_is_an_ascending_set(
            changes in proptest::collection::vec((0..60u32, 0..4u8), 0..120),
            start in 0..60u64,
        ) {
            let (mut got, mut want) = (Numbers::default(), BTreeSet::new());
            for (n, change) in changes {
                let member = (u64::from(n), n);
                match change {
                    0 => { got.remove(member); want.remove(&(n as usize)); }
                    _ => { got.insert(member); want.insert(n as usize); }
                }
                prop_assert!(got.iter().eq(want.iter().copied()));
                prop_assert!(got.iter().rev().eq(want.iter().rev().copied()));
                let [first, last] = [want.first(), want.last()].map(Option::<&usize>::copied);
                prop_assert_eq!((got.first(), got.last()), (first, last));
                prop_assert_eq!(got.is_empty(), want.is_empty());
                prop_assert_eq!(got.only(), first.filter(|_| want.len() == 1));
                let within = want.range(start as usize..start as usize + 9).next().is_some();
                prop_assert_eq!(got.has_within(start..start + 9), within);
            }
        }
    }
}

//! Ascending sets of the numbers of steps: most have a few members, those of shared weights many.

use std::collections::BTreeSet;
use std::ops::Range;

use smallvec::SmallVec;

/// A set with more members than this is a tree, so that changing it never takes linear time.
const FEW: usize = 16;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// In ascending order.
    Few(SmallVec<[usize; 2]>),
    /// In a tree.
    Many(BTreeSet<usize>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Few(SmallVec::new())
    }
}

impl Numbers {
    /// Adds a number unless it is there.
    pub(super) fn insert(&mut self, n: usize) {
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
    pub(super) fn remove(&mut self, n: usize) {
        match self {
            Numbers::Few(few) => few.retain(|one| *one != n),
            Numbers::Many(many) => drop(many.remove(&n)),
        }
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        let (few, many) = match self {
            Numbers::Few(few) => (&few[..], None),
            Numbers::Many(many) => (&[][..], Some(many)),
        };
        few.iter().chain(many.into_iter().flatten()).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The least.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The greatest.
    pub fn last(&self) -> Option<usize> {
        self.iter().next_back()
    }

    /// The only one, if there is just one.
    pub fn only(&self) -> Option<usize> {
        self.first().filter(|first| self.last() == Some(*first))
    }

    /// The least in a range.
    pub fn within(&self, range: Range<usize>) -> Option<usize> {
        let next = match self {
            Numbers::Few(few) => few.iter().find(|&&n| n >= range.start),
            Numbers::Many(many) => many.range(range.start..).next(),
        };
        next.copied().filter(|n| range.contains(n))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_any_size_is_an_ascending_set(
            changes in proptest::collection::vec((0..60usize, 0..4u8), 0..120),
            start in 0..60usize,
        ) {
            let (mut got, mut want) = (Numbers::default(), BTreeSet::new());
            for (n, change) in changes {
                match change {
                    0 => { got.remove(n); want.remove(&n); }
                    _ => { got.insert(n); want.insert(n); }
                }
                prop_assert!(got.iter().eq(want.iter().copied()));
                prop_assert!(got.iter().rev().eq(want.iter().rev().copied()));
                let [first, last] = [want.first(), want.last()].map(Option::<&usize>::copied);
                prop_assert_eq!((got.first(), got.last()), (first, last));
                prop_assert_eq!(got.is_empty(), want.is_empty());
                prop_assert_eq!(got.only(), first.filter(|_| want.len() == 1));
                let within = want.range(start..start + 9).next().copied();
                prop_assert_eq!(got.within(start..start + 9), within);
            }
        }
    }
}

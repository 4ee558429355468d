//! Partitions of the pieces that end and begin at a moment into groups of equal bytes.

/// Pieces that end at a moment, and pieces of the same total size that take their place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) ended: Vec<u32>,
    pub(super) begun: Vec<u32>,
}

/// A partition of a moment's pieces into groups.
pub(super) type Groups = Vec<Group>;

/// How many partitions are examined.
const MOST: usize = 256;
/// Of sets with more than `MOST_PIECES`, only subsets with or without at most `FEW` pieces are
/// examined.
const MOST_PIECES: u32 = 8;
const FEW: u32 = 3;
/// The prior probability that a moment has one more group.
const ANOTHER: f64 = 0.1;

/// The partitions into groups, likely ones first.
pub(super) fn ways(group: &Group, sizes: &[usize]) -> Vec<Groups> {
    let mut finder = Finder { sizes, group, found: Vec::new() };
    let all = |pieces: &[u32]| (1u64 << pieces.len()) - 1;
    finder.split(all(&group.ended), all(&group.begun), &mut Vec::new());
    let mut found: Vec<(f64, Vec<Masks>)> =
        finder.found.iter().map(|masks| (finder.likelihood(masks), masks.clone())).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.iter().map(|(_, masks)| finder.groups(masks)).collect()
}

/// A group as bit sets of the pieces that ended and of those that begun.
type Masks = (u64, u64);

struct Finder<'a> {
    sizes: &'a [usize],
    group: &'a Group,
    found: Vec<Vec<Masks>>,
}

impl Finder<'_> {
    /// Finds all partitions of the remaining pieces; `before` holds the groups split off so far.
    fn split(&mut self, ended: u64, begun: u64, before: &mut Vec<Masks>) {
        if self.found.len() >= MOST {
            return;
        }
        before.push((ended, begun));
        self.found.push(before.clone());
        before.pop();
        for (part, other) in self.parts(ended, begun) {
            before.push((part, other));
            self.split(ended & !part, begun & !other, before);
            before.pop();
        }
    }

    /// The proper subsets that contain the first piece of `ended` and have equal bytes on both
    /// sides, those of few pieces first.
    fn parts(&self, ended: u64, begun: u64) -> Vec<Masks> {
        let first = ended & ended.wrapping_neg();
        let mut others: Vec<(usize, u64)> = subsets(begun)
            .into_iter()
            .map(|mask| (self.bytes(&self.group.begun, mask), mask))
            .collect();
        others.sort_unstable();
        let mut parts = Vec::new();
        for part in subsets(ended).into_iter().filter(|mask| mask & first != 0) {
            let bytes = self.bytes(&self.group.ended, part);
            let from = others.partition_point(|other| other.0 < bytes);
            let equal = others[from..].iter().take_while(|other| other.0 == bytes);
            parts.extend(equal.map(|other| (part, other.1)));
        }
        parts.sort_by_key(|(part, other)| part.count_ones() + other.count_ones());
        parts
    }

    fn bytes(&self, pieces: &[u32], mask: u64) -> usize {
        let chosen = pieces.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        chosen.map(|(_, &piece)| self.sizes[piece as usize]).sum()
    }

    /// The log-likelihood of these groups relative to a single one: the prior probability of
    /// further groups, over the expected number of such subsets that match by chance.
    fn likelihood(&self, masks: &[Masks]) -> f64 {
        let largest = masks.iter().max_by_key(|(a, b)| a.count_ones() + b.count_ones());
        let rest = masks.iter().filter(|mask| Some(*mask) != largest);
        let (ended, begun) = (&self.group.ended, &self.group.begun);
        rest.map(|&(part, other)| {
            let range = self.bytes(ended, part) as f64 / 64.0;
            let ways = choose(ended.len(), part) + choose(begun.len(), other);
            (ANOTHER * range).ln() - ways
        })
        .sum()
    }

    fn groups(&self, masks: &[Masks]) -> Groups {
        let pick = |pieces: &[u32], mask: u64| {
            let chosen = pieces.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
            chosen.map(|(_, &piece)| piece).collect()
        };
        let group = |&(ended, begun): &Masks| Group {
            ended: pick(&self.group.ended, ended),
            begun: pick(&self.group.begun, begun),
        };
        masks.iter().map(group).collect()
    }
}

/// The proper non-empty subsets of a set; of a large set only those with, or all but, a few pieces.
fn subsets(set: u64) -> Vec<u64> {
    let mut found = vec![0u64];
    let mut from = 0;
    let is_large = set.count_ones() > MOST_PIECES;
    // Each round adds one piece, above the highest, to the subsets of the previous round.
    for _ in 0..if is_large { FEW } else { set.count_ones() } {
        let round = from..found.len();
        from = found.len();
        for at in round {
            let upto = u64::MAX.checked_shr(found[at].leading_zeros()).unwrap_or(0);
            let behind = set & !upto;
            found.extend(bits(behind).map(|bit| found[at] | bit).collect::<Vec<_>>());
        }
    }
    if is_large {
        found.extend(found.iter().map(|mask| set & !mask).collect::<Vec<_>>());
    }
    found.retain(|&mask| mask != 0 && mask != set);
    found
}

/// The bits of a set, one by one.
fn bits(mut set: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = set & set.wrapping_neg();
        set &= !bit;
        (bit != 0).then_some(bit)
    })
}

/// The logarithm of the number of ways to choose as many items of `count` as the mask has bits.
fn choose(count: usize, mask: u64) -> f64 {
    let chosen = mask.count_ones() as usize;
    (0..chosen).map(|i| ((count - i) as f64 / (i + 1) as f64).ln()).sum()
}

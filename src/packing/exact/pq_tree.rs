//! PQ-trees: all orders of pieces that keep certain sets adjacent (Booth and Lueker, "Testing for
//! the consecutive ones property", 1976). Plain recursion suffices, since a tree holds only the
//! pieces that are live at once.

/// A set of orders of its leaves.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// One piece.
    Leaf(u32),
    /// Its parts in any order (a P-node).
    Any(Vec<Tree>),
    /// Its parts in this order or in reverse (a Q-node).
    Row(Vec<Tree>),
}

/// How much of a tree belongs to a set.
#[derive(Clone, Copy, PartialEq)]
enum Share {
    None,
    Some,
    All,
}

impl Tree {
    /// Any order of some pieces.
    pub(super) fn any(pieces: &[u32]) -> Tree {
        Tree::of(pieces.iter().map(|&piece| Tree::Leaf(piece)).collect(), Tree::Any)
    }

    fn of(mut parts: Vec<Tree>, kind: impl FnOnce(Vec<Tree>) -> Tree) -> Tree {
        if parts.len() == 1 { parts.remove(0) } else { kind(parts) }
    }

    fn share(&self, set: &[u32]) -> Share {
        match self {
            Tree::Leaf(piece) if set.contains(piece) => Share::All,
            Tree::Leaf(_) => Share::None,
            Tree::Any(parts) | Tree::Row(parts) => {
                let mut shares = parts.iter().map(|part| part.share(set));
                let first = shares.next().unwrap_or(Share::None);
                if shares.all(|share| share == first) { first } else { Share::Some }
            }
        }
    }

    /// Keeps the orders in which the pieces of a set are adjacent, and puts `new` in the set's
    /// place; None if there is no such order. Every order of the result stems from an order of this
    /// tree.
    pub(super) fn replace(self, set: &[u32], new: Tree) -> Option<Tree> {
        if self.share(set) == Share::All {
            return Some(new);
        }
        let (Tree::Any(parts) | Tree::Row(parts)) = &self else { return None };
        let mut concerned = (0..parts.len()).filter(|&at| parts[at].share(set) != Share::None);
        let (first, last) = (concerned.next()?, concerned.next_back());
        match (self, last) {
            (Tree::Any(mut parts), None) => {
                let part = parts.swap_remove(first).replace(set, new)?;
                parts.push(part);
                Some(Tree::Any(parts))
            }
            (Tree::Row(mut parts), None) => {
                let part = std::mem::replace(&mut parts[first], Tree::Row(Vec::new()));
                parts[first] = part.replace(set, new)?;
                Some(Tree::Row(parts))
            }
            (Tree::Any(parts), Some(_)) => replace_among(parts, set, new),
            (Tree::Row(parts), Some(last)) => replace_between(parts, first, last, set, new),
            (Tree::Leaf(_), _) => None,
        }
    }

    /// The parts outside the set, as a row that has the set at its end; None if no order has it
    /// there.
    fn beside(self, set: &[u32]) -> Option<Vec<Tree>> {
        match self {
            Tree::Leaf(piece) if set.contains(&piece) => Some(Vec::new()),
            Tree::Leaf(piece) => Some(vec![Tree::Leaf(piece)]),
            Tree::Any(parts) => {
                let Shared { none, mut some } = shared(parts, set);
                let partial = some.pop();
                let mut beside = vec![Tree::of(none, Tree::Any)];
                beside.retain(|part| !matches!(part, Tree::Any(parts) if parts.is_empty()));
                beside.extend(partial.map_or(Some(Vec::new()), |part| part.beside(set))?);
                some.is_empty().then_some(beside)
            }
            Tree::Row(mut parts) => {
                let shares = [0, parts.len() - 1].map(|at| parts[at].share(set));
                if shares[0] == Share::All || shares[1] == Share::None {
                    parts.reverse();
                }
                let from = parts.iter().position(|part| part.share(set) != Share::None)?;
                let rest = parts.split_off(from);
                let are_all = rest[1..].iter().all(|part| part.share(set) == Share::All);
                parts.extend(rest.into_iter().next()?.beside(set)?);
                are_all.then_some(parts)
            }
        }
    }

    /// Arranges the tree so that ranks ascend, provided that one of its orders does; returns the
    /// least and the greatest rank.
    pub(super) fn arrange(&mut self, ranks: &[u32]) -> (u32, u32) {
        let is_row = matches!(self, Tree::Row(_));
        let parts = match self {
            Tree::Leaf(piece) => return (ranks[*piece as usize], ranks[*piece as usize]),
            Tree::Any(parts) | Tree::Row(parts) => parts,
        };
        let mut keyed: Vec<((u32, u32), Tree)> =
            parts.drain(..).map(|mut part| (part.arrange(ranks), part)).collect();
        if !is_row {
            keyed.sort_by_key(|part| part.0);
        } else if keyed[0].0 > keyed[keyed.len() - 1].0 {
            keyed.reverse();
        }
        let range = keyed.iter().map(|part| part.0);
        let range = range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
        parts.extend(keyed.into_iter().map(|part| part.1));
        range
    }

    /// Appends the pieces in their current order.
    pub(super) fn leaves(&self, into: &mut Vec<u32>) {
        match self {
            Tree::Leaf(piece) => into.push(*piece),
            Tree::Any(parts) | Tree::Row(parts) => parts.iter().for_each(|part| part.leaves(into)),
        }
    }
}

/// The trees without any leaf in a set, and those with some but not all.
struct Shared {
    none: Vec<Tree>,
    some: Vec<Tree>,
}

/// Sorts trees by their share in the set; those that belong to it completely are dropped.
fn shared(parts: Vec<Tree>, set: &[u32]) -> Shared {
    let mut shared = Shared { none: Vec::new(), some: Vec::new() };
    for part in parts {
        match part.share(set) {
            Share::None => shared.none.push(part),
            Share::Some => shared.some.push(part),
            Share::All => {}
        }
    }
    shared
}

/// [`Tree::replace`] for a set that is spread over several parts of a P-node.
fn replace_among(parts: Vec<Tree>, set: &[u32], new: Tree) -> Option<Tree> {
    let Shared { mut none, some } = shared(parts, set);
    let mut some = some.into_iter();
    let mut row = some.next().map_or(Some(Vec::new()), |part| part.beside(set))?;
    row.push(new);
    let after = some.next().map_or(Some(Vec::new()), |part| part.beside(set))?;
    row.extend(after.into_iter().rev());
    none.push(Tree::of(row, Tree::Row));
    some.next().is_none().then(|| Tree::of(none, Tree::Any))
}

/// [`Tree::replace`] for a set that spans the parts `first` to `last` of a Q-node.
fn replace_between(
    mut parts: Vec<Tree>,
    first: usize,
    last: usize,
    set: &[u32],
    new: Tree,
) -> Option<Tree> {
    let after = parts.split_off(last + 1);
    let mut concerned = parts.split_off(first);
    let (end, start) = (concerned.pop()?, concerned.remove(0));
    parts.extend(start.beside(set)?);
    parts.push(new);
    parts.extend(end.beside(set)?.into_iter().rev());
    parts.extend(after);
    let is_inner = concerned.iter().all(|part| part.share(set) == Share::All);
    is_inner.then(|| Tree::of(parts, Tree::Row))
}

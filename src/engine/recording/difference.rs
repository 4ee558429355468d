//! Comparing recordings as streams of operations.

use std::sync::Arc;

use crate::engine::recording::{Recording, Source};
use crate::graph::{Op, Place, Role};

impl Recording {
    /// The first difference from another recording, with the line of the user's program; `None` if
    /// a graph of one can replace a graph of the other. Both must be sealed.
    pub fn difference(&self, other: &Recording) -> Option<String> {
        self.different_operation(other)
            .or_else(|| self.different_ends(other))
            .or_else(|| self.different_role(other))
    }

    fn different_operation(&self, other: &Recording) -> Option<String> {
        let (ours, theirs) = (self.queue.ops(), other.queue.ops());
        for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
            if let Some(what) = self.different_node(a, other, b) {
                return Some(format!("operation {i}, {} {what}", self.at(a)));
            }
        }
        let longer = if ours.len() > theirs.len() { self } else { other };
        let node = longer.queue.ops().get(ours.len().min(theirs.len()))?;
        Some(format!(
            "operation {}, {}, is only in one of them",
            ours.len().min(theirs.len()),
            longer.at(node)
        ))
    }

    fn different_node(&self, a: &Op, other: &Recording, b: &Op) -> Option<String> {
        if a.call.kind != b.call.kind {
            return Some(match a.call.name() == b.call.name() {
                true => {
                    format!("differs in its attributes: {:?} and {:?}", a.call.kind, b.call.kind)
                }
                false => format!("is {} in the other", other.at(b)),
            });
        }
        let reads = self.different_places(&a.inputs, other, &b.inputs);
        let reads = reads.map(|(what, k)| format!("reads {what} as input {k}"));
        let writes = || self.different_places(&a.outputs, other, &b.outputs);
        reads.or_else(|| writes().map(|(what, k)| format!("writes {what} as output {k}")))
    }

    /// How the first of these places that differs does, and its index.
    fn different_places(
        &self,
        a: &[Place],
        other: &Recording,
        b: &[Place],
    ) -> Option<(&'static str, usize)> {
        let mut pairs = a.iter().zip(b).enumerate();
        let found = pairs.find_map(|(k, (x, y))| Some((self.different_place(x, other, y)?, k)));
        let count = a.len().min(b.len());
        found.or_else(|| (a.len() != b.len()).then_some(("what only one of them has", count)))
    }

    fn different_place(&self, a: &Place, other: &Recording, b: &Place) -> Option<&'static str> {
        if a.block != b.block || !self.is_same_block(a.block, other) {
            let is_constant = matches!(self.sources[a.block as usize], Source::Constant(_));
            return Some(if is_constant { "other values from NumPy" } else { "another tensor" });
        }
        let same = a.meta == b.meta && self.offset(a) == other.offset(b);
        (!same).then_some("a tensor of another shape, dtype or place in memory")
    }

    /// Where a place begins: in the memory of an argument, which each call has elsewhere, relative
    /// to the first argument there.
    fn offset(&self, place: &Place) -> usize {
        let first = self.arguments.iter().find(|argument| argument.block == place.block);
        place.offset.wrapping_sub(first.map_or(0, |argument| argument.offset))
    }

    fn is_same_block(&self, number: u32, other: &Recording) -> bool {
        let n = number as usize;
        match (&self.sources[n], &other.sources[n]) {
            (Source::Captured, Source::Captured) => {
                Arc::ptr_eq(&self.queue.blocks()[n], &other.queue.blocks()[n])
            }
            (Source::Made { .. }, Source::Made { .. }) => {
                self.queue.blocks()[n].bytes() == other.queue.blocks()[n].bytes()
            }
            (a, b) => a == b,
        }
    }

    fn different_ends(&self, other: &Recording) -> Option<String> {
        let results = self.results.iter().zip(&other.results);
        let differs =
            results.into_iter().position(|(a, b)| self.different_place(a, other, b).is_some());
        let count = self.results.len() != other.results.len();
        differs
            .map(|i| format!("result {i}"))
            .or_else(|| count.then(|| "the number of results".into()))
    }

    fn different_role(&self, other: &Recording) -> Option<String> {
        let differs = |&n: &usize| self.roles.get(n) != other.roles.get(n);
        let n = (0..self.roles.len().max(other.roles.len())).find(differs)?;
        let kept = if self.roles.get(n) == Some(&Role::Slot) { self } else { other };
        let maker = kept
            .queue
            .ops()
            .iter()
            .find(|op| op.outputs.iter().any(|place| place.block as usize == n));
        let what = maker.map_or_else(|| "a tensor".into(), |op| kept.at(op));
        Some(format!("the result of {what} is kept after one of them only"))
    }

    /// An operation's name and origin.
    fn at(&self, op: &Op) -> String {
        format!("{} at {}", op.call.name(), self.origin(op))
    }
}

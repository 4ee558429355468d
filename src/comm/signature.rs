//! What a recorded step does, for ranks to compare: where steps that were recorded for equal
//! arguments do other operations, the ranks do not train the same model.

use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::Fault;

/// An operation's name, and the line of the user's program that it comes from.
pub type Named = (&'static str, Arc<str>);

/// The operations of a recorded step.
pub struct Signature {
    code: u64,
    operations: Vec<Named>,
}

impl Signature {
    /// A step of these operations, recorded for arguments of which `shapes` is a hash.
    pub fn new(shapes: u64, operations: Vec<Named>) -> Self {
        let mut names = FxHasher::default();
        operations.iter().for_each(|(name, _)| name.hash(&mut names));
        let code = (shapes | 1) << 32 | names.finish() >> 32;
        Signature { code, operations }
    }

    /// What ranks show each other in every exchange: never 0, which is shown outside of steps. The
    /// upper half tells steps apart that are not compared, as their arguments differ.
    pub fn code(&self) -> u64 {
        self.code
    }

    /// The whole of it as text, for `difference`: the code, and then a line for each operation.
    pub fn text(&self) -> String {
        let mut text = format!("{:x}\n", self.code);
        for (name, line) in &self.operations {
            writeln!(text, "{name} ({line})").expect("writing to a string succeeds");
        }
        text
    }
}

/// Whether steps with these codes exclude each other.
fn differ(one: u64, other: u64) -> bool {
    one != 0 && other != 0 && one >> 32 == other >> 32 && one != other
}

/// Whether some ranks with these codes are in steps that exclude each other.
pub fn any_differ(mut codes: Vec<u64>) -> bool {
    codes.sort_unstable();
    codes.windows(2).any(|pair| differ(pair[0], pair[1]))
}

/// The first two ranks with steps that exclude each other, of the texts of all ranks: the fault as
/// rank `me` sees it.
pub fn difference(texts: &[&str], me: usize) -> Option<Fault> {
    let code = |text: &str| u64::from_str_radix(text.lines().next()?, 16).ok();
    let codes: Vec<u64> = texts.iter().map(|text| code(text).unwrap_or(0)).collect();
    let mut pairs = (0..codes.len()).flat_map(|one| (0..one).map(move |other| (other, one)));
    let (by, rank) = pairs.find(|(other, one)| differ(codes[*other], codes[*one]))?;
    let (ours, theirs) = first_difference(texts[by], texts[rank]);
    Some(Fault::Differs { rank, theirs, ours }.seen(by, me))
}

/// The first operations in which two texts differ, as words.
fn first_difference(one: &str, other: &str) -> (String, String) {
    let name = |line: Option<&str>| line.map(|line| line.split(' ').next().map(str::to_owned));
    let (mut ones, mut others) = (one.lines().skip(1), other.lines().skip(1));
    let mut number = 0;
    loop {
        let (one, other) = (ones.next(), others.next());
        if one.is_none() && other.is_none() || name(one) != name(other) {
            return (said(number, one), said(number, other));
        }
        number += 1;
    }
}

fn said(number: usize, line: Option<&str>) -> String {
    match line {
        Some(line) => format!("a recorded step whose operation {number} is {line}"),
        None => format!("a recorded step of {number} operations"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(shapes: u64, names: &[&'static str]) -> Signature {
        let line = |n: usize| Arc::from(format!("net.py:{n}"));
        Signature::new(shapes, names.iter().zip(1..).map(|(name, n)| (*name, line(n))).collect())
    }

    #[test]
    fn equal_steps_other_arguments_and_no_steps_agree() {
        let codes = [step(7, &["add", "tanh"]), step(7, &["add", "tanh"]), step(8, &["add"])];
        let codes: Vec<u64> = codes.iter().map(Signature::code).chain([0]).collect();
        assert!(codes[..3].iter().all(|code| *code != 0) && !any_differ(codes));
        assert!(any_differ(vec![step(0, &["add"]).code(), 0, step(0, &[]).code()]));
    }

    #[test]
    fn the_first_difference_is_told_to_all() {
        let steps = [step(7, &["add", "tanh"]), step(7, &["add", "relu"]), step(9, &["mul"])];
        let texts: Vec<String> = steps.iter().map(Signature::text).collect();
        let texts = [texts[0].as_str(), "", texts[1].as_str(), texts[2].as_str()];
        let words = |name: &str| format!("a recorded step whose operation 1 is {name} (net.py:2)");
        let (tanh, relu) = (words("tanh"), words("relu"));
        let differs = |rank, theirs: &str, ours: &str| {
            Some(Fault::Differs { rank, theirs: theirs.into(), ours: ours.into() })
        };
        assert_eq!(difference(&texts, 0), differs(2, &relu, &tanh));
        assert_eq!(difference(&texts, 2), differs(0, &tanh, &relu));
        let text = format!("it came with {tanh}, rank 2 with {relu}");
        assert_eq!(difference(&texts, 1), Some(Fault::Failed { rank: 0, text }));
        assert_eq!(difference(&texts[1..2], 0), None);
    }

    #[test]
    fn a_longer_step_is_told_by_its_next_operation() {
        let texts = [step(7, &["add"]).text(), step(7, &["add", "tanh"]).text()];
        let Some(Fault::Differs { theirs, ours, .. }) = difference(&[&texts[0], &texts[1]], 0)
        else {
            panic!("they differ")
        };
        assert_eq!(ours, "a recorded step of 1 operations");
        assert_eq!(theirs, "a recorded step whose operation 1 is tanh (net.py:2)");
    }
}

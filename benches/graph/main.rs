//! The cost of a graph: replay of operations that do nothing, compared with bare loops in the same
//! run; recording and analysis per node.
//! `cargo bench --no-default-features --bench graph [-- name]`.
#![allow(missing_docs, unsafe_code)]

mod measure;
mod parallel;
mod scaling;
mod serial;
mod step;
mod tasks;

use criterion::Criterion;

/// A name, and the function that runs the measurement.
type Measure = (&'static str, fn(&mut Criterion));

const ALL: [Measure; 5] = [
    ("replay", serial::replay),
    ("analysis", serial::analysis),
    ("scaling", |_| scaling::scaling()),
    ("tasks", |_| parallel::tasks()),
    ("sizes", |_| parallel::sizes()),
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let criterion = &mut Criterion::default();
    ALL.iter().filter(|(name, _)| is_wanted(name)).for_each(|(_, measure)| measure(criterion));
    criterion.final_summary();
}

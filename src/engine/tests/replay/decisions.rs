//! The same recording always gives the same graph, on every machine. Each number here is a
//! fingerprint of all decisions: if one changes, decisions have changed, which must be intended.

use super::*;
use crate::graph::Op;
use crate::graph::testing::{self, fingerprint, shown};

/// How many programs each fingerprint covers, except those left out; fewer with a memory budget,
/// which takes longer.
const SEEDS: [u64; 2] = [120, 30];

/// Operations left out: the memory use of products, attention and convolutions differs from machine
/// to machine, and user code has identifiers that differ from run to run.
const ELSEWHERE: [&str; 5] = ["attention", "conv", "pack", "host", "matmul"];

/// What `show` returns for the recording of a program, with random limits; None if the program has
/// operations whose names start with one of `left_out`.
fn told(
    seed: u64,
    options: &Options,
    left_out: &[&str],
    show: impl Fn(&Engine, &Recording, &Options) -> String,
) -> Option<String> {
    let program = Program::draw(seed);
    let world = World::new(&program, engine(BYTES));
    let arguments = program.arguments(&world.engine, &mut Random(seed));
    let (recording, _kept) = world.record(&program, &arguments);
    let (queue, _) = recording.operations();
    let is_left_out = |node: &Op| left_out.iter().any(|name| node.call.name().starts_with(name));
    let options = Options { limits: limits(&mut Random(!seed)), ..options.clone() };
    let has_none = !queue.ops().iter().any(is_left_out);
    has_none.then(|| show(&world.engine, &recording, &options))
}

/// The graph made from a recording, and its constants, as text.
fn made_of(engine: &Engine, recording: &Recording, options: &Options) -> String {
    match Executable::new(engine, recording, options) {
        Ok(made) => format!("{} {:?}", shown(made.graph()), made.constants()),
        Err(error) => error.to_string(),
    }
}

fn decided(options: &Options) -> u64 {
    let seeds = SEEDS[usize::from(options.budget.is_some())];
    fingerprint((0..seeds).filter_map(|seed| told(seed, options, &ELSEWHERE, made_of)))
}

#[test]
fn the_same_recording_always_gives_the_same_graph() {
    let kept = Options { recompute: false, ..Options::default() };
    let budget = |share| Options { budget: Some(Budget::Share(share)), ..Options::default() };
    let none_kept = Options { keep: false, ..Options::default() };
    let rounded = Options { exact: false, ..Options::default() };
    let ways = [Options::AS_RECORDED, Options::default(), kept, none_kept, rounded, parallel(3)];
    let budgets = [budget(0.9), budget(0.6), budget(0.3)];
    let got: Vec<u64> = ways.iter().chain(&budgets).map(decided).collect();
    let want: [u64; 9] = [
        2_241_496_553_979_803_347,
        9_168_191_110_452_405_122,
        13_890_944_014_711_907_585,
        9_909_058_835_774_782_432,
        9_168_191_110_452_405_122,
        8_031_212_773_824_507_827,
        6_593_093_470_066_427_301,
        8_166_685_181_492_466_633,
        5_504_670_628_467_694_069,
    ];
    assert_eq!(got, want);
}

/// The rewritten operations of a recording, as text.
fn rewritten(_: &Engine, recording: &Recording, options: &Options) -> String {
    let ((queue, roles), constants) = recording.rewritten(options).unwrap();
    let taken = constants.map(|taken| taken.queue.ops().len());
    format!("{} {roles:?} {taken:?}", queue.ops().iter().map(testing::told).collect::<String>())
}

#[test]
fn the_same_recording_is_always_rewritten_alike() {
    let none_kept = Options { keep: false, ..Options::default() };
    let rounded = Options { exact: false, ..Options::default() };
    let ways = [Options::default(), none_kept, rounded];
    let of = |seed, options: &Options| told(seed, options, &ELSEWHERE[..4], rewritten);
    let got = ways.map(|options| fingerprint((0..500).filter_map(|seed| of(seed, &options))));
    assert_eq!(
        got,
        [10_786_763_844_531_176_501, 11_505_224_988_563_464_934, 10_786_763_844_531_176_501]
    );
}

//! The same recording always gives the same graph, on every machine. Numbers here stand for all that
//! is decided: where one changes, decisions have, which has to be meant.

use super::*;
use crate::graph::Node;
use crate::graph::testing::{fingerprint, shown};

/// How many programs each number stands for, but for those left out; fewer where memory is bounded,
/// which takes longer.
const SEEDS: [u64; 2] = [120, 30];

/// How the kernels of products and convolutions use memory differs from machine to machine; user
/// code has numbers that differ from run to run.
const ELSEWHERE: [&str; 4] = ["conv2d", "pack", "host", "matmul"];

/// What `show` tells of the recording of a program, made with limits of its own, unless that has
/// operations whose names begin like these.
fn told(
    seed: u64,
    options: &Options,
    left_out: &[&str],
    show: impl Fn(&Engine, &Recording, &Options) -> String,
) -> Option<String> {
    let program = Program::draw(seed);
    let world = World::new(&program);
    let arguments = program.arguments(&world.engine, &mut Random(seed));
    let (recording, _kept) = world.record(&program, &arguments);
    let (queue, _) = recording.operations();
    let is_left_out = |node: &Node| left_out.iter().any(|name| node.op.name().starts_with(name));
    let options = Options { limits: limits(&mut Random(!seed)), ..options.clone() };
    let has_none = !queue.nodes().iter().any(is_left_out);
    has_none.then(|| show(&world.engine, &recording, &options))
}

/// The graph that is made of a recording, and how much is kept.
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
        7_916_886_847_690_867_169,
        13_609_478_160_523_851_346,
        10_422_835_088_356_734_827,
        15_355_301_315_390_451_689,
        13_609_478_160_523_851_346,
        12_578_110_642_844_328_738,
        14_342_964_768_287_561_764,
        13_704_604_118_198_245_782,
        1_636_687_807_014_080_801,
    ];
    assert_eq!(got, want);
}

/// The operations that are left of a recording, and what they name.
fn rewritten(engine: &Engine, recording: &Recording, options: &Options) -> String {
    let ((queue, roles), constants) = recording.rewritten(&mut engine.turn(), options).unwrap();
    let node = |node: &Node| {
        let (inputs, outputs) = (queue.inputs(node), queue.outputs(node));
        format!("{:?} {inputs:?} {outputs:?};", node.op.kind)
    };
    let taken = constants.map(|taken| taken.queue.nodes().len());
    format!("{} {roles:?} {taken:?}", queue.nodes().iter().map(node).collect::<String>())
}

#[test]
fn the_same_recording_is_always_rewritten_alike() {
    let none_kept = Options { keep: false, ..Options::default() };
    let rounded = Options { exact: false, ..Options::default() };
    let ways = [Options::default(), none_kept, rounded];
    let of = |seed, options: &Options| told(seed, options, &ELSEWHERE[..3], rewritten);
    let got = ways.map(|options| fingerprint((0..500).filter_map(|seed| of(seed, &options))));
    assert_eq!(
        got,
        [13_372_577_162_691_978_657, 5_184_224_149_163_520_889, 15_105_174_480_290_356_074]
    );
}

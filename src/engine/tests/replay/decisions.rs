//! The same recording always gives the same graph, on every machine. Numbers here stand for all that
//! is decided: where one changes, decisions have, which has to be meant.

use super::*;
use crate::graph::testing::fingerprint;

/// How many programs each number stands for, but for those left out; fewer where memory is bounded,
/// which takes longer.
const SEEDS: [u64; 2] = [120, 30];

/// How the kernels of products and convolutions use memory differs from machine to machine.
fn is_elsewhere(name: &str) -> bool {
    ["matmul", "conv2d", "pack"].iter().any(|prefix| name.starts_with(prefix))
}

/// The graph that is made of a program's recording, and that of what it keeps.
fn made_of(seed: u64, options: &Options) -> Option<String> {
    let program = Program::draw(seed);
    let world = World::new(&program);
    let arguments = program.arguments(&world.engine, &mut Random(seed));
    let (recording, _kept) = world.record(&program, &arguments);
    let (queue, _) = recording.operations();
    if queue.nodes().iter().any(|node| is_elsewhere(node.op.name())) {
        return None;
    }
    let options = Options { limits: limits(&mut Random(!seed)), ..options.clone() };
    let executable = Executable::new(&world.engine, &recording, &options);
    Some(executable.map_or_else(|error| error.to_string(), |executable| shown(&executable)))
}

fn shown(executable: &Executable) -> String {
    let graph = executable.graph();
    let schedule =
        graph.schedule().map(|s| format!("{:?} {:?} {:?}", s.segments, s.parts, s.times));
    format!("{} {schedule:?} {:?}", graph.to_json(), executable.constants())
}

fn decided(options: &Options) -> u64 {
    let seeds = SEEDS[usize::from(options.budget.is_some())];
    fingerprint((0..seeds).filter_map(|seed| made_of(seed, options)))
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
        12_151_203_590_732_823_922,
        15_252_562_868_026_490_720,
        16_582_474_066_796_401_142,
        13_625_796_151_392_793_765,
        9_236_278_347_070_271_758,
        15_292_623_796_621_518_516,
        9_499_620_890_391_910_078,
        12_712_998_081_249_051_923,
        18_335_188_099_312_007_343,
    ];
    assert_eq!(got, want);
}

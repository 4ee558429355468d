//! Random programs: replay gives the bits of eager execution.

mod generate;
mod play;

use super::*;
use crate::device::team;
use crate::engine::{Budget, Executable, Options, Recording, record};
use crate::error::Error;
use crate::graph::{Graph, Parallel};
use crate::ops::Kind;
use crate::ops::unary::{Unary, UnaryFn};
use generate::{Features, Program, Random};
use play::Player;

/// How many programs a test run draws.
const PROGRAMS: u64 = 10_000;
/// How many of these get a memory budget.
const BOUNDED: u64 = 1000;
/// How often each one is run.
const RUNS: usize = 3;

/// Says which program it was when a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the program of seed {} failed; SINGA_RS_SEED={0} runs it alone", self.0);
        }
    }
}

/// A tensor's elements, bit by bit, row-major.
fn bits(view: &View) -> Vec<u8> {
    let mut view = view.clone();
    if let Some(block) = view.block.current() {
        view.block = block;
    }
    let size = view.meta.dtype.size();
    let start = view.block.to_touch().unwrap();
    // SAFETY: the places lie in the block.
    let element =
        |p: usize| unsafe { std::slice::from_raw_parts(start.add(p * size).as_ptr(), size) };
    places(&view).into_iter().flat_map(|place| element(place).to_vec()).collect()
}

fn all_bits(views: &[View]) -> Vec<Vec<u8>> {
    views.iter().map(bits).collect()
}

/// One engine with the parameters of a program.
struct World {
    engine: Engine,
    parameters: Vec<View>,
}

impl World {
    fn new(program: &Program) -> Self {
        let engine = engine(1 << 24);
        engine.rng().seed(&engine.turn(), program.seed >> 1).unwrap();
        let mut random = Random(program.seed);
        let parameters = program.parameters(&engine, &mut random);
        World { engine, parameters }
    }

    /// What a run leaves behind besides its results.
    fn state(&self) -> Vec<Vec<u8>> {
        let stream = self.engine.rng().state(&self.engine.turn(), Stream::Step).unwrap().clone();
        self.parameters.iter().chain([&stream]).map(bits).collect()
    }

    /// Writes every parameter, as a user may between two runs.
    fn write(&self) {
        let negate = Kind::from(Unary { f: UnaryFn::Neg });
        for parameter in &self.parameters {
            let inputs = std::iter::once(parameter.clone()).collect();
            let outputs = std::slice::from_ref(parameter);
            self.engine.submit_into(self.engine.turn(), &negate, inputs, outputs).unwrap();
        }
    }

    fn player(&self, program: &Program, arguments: &[View]) -> Player<'_> {
        let mut player = Player::new(&self.engine, [arguments, &self.parameters].concat());
        program.steps.iter().for_each(|step| player.step(step).unwrap());
        player
    }

    fn record(&self, program: &Program, arguments: &[View]) -> (Recording, Vec<View>) {
        record::begin(Recording::new(self.engine.device(), arguments)).unwrap();
        let player = self.player(program, arguments);
        let results = player.take(&program.results);
        let mut recording = self.engine.end_recording(&mut self.engine.turn(), &results).unwrap();
        drop(results);
        let kept = player.take(&program.kept);
        drop(player);
        recording.seal();
        (recording, kept)
    }
}

/// The graph, as much of which is computed again as lowers its memory; how many operations are.
fn thrifty(
    engine: &Engine,
    recording: &Recording,
    options: &Options,
    _: &mut Random,
) -> (Executable, usize) {
    let executable = Executable::new(engine, recording, options).unwrap();
    let again = executable.graph().nodes().len() - rewritten(engine, recording, options);
    (executable, again)
}

/// A graph that keeps to some part of the memory that it takes without a bound, or to the least that
/// can be reached; how many operations are computed again.
fn bounded(
    engine: &Engine,
    recording: &Recording,
    options: &Options,
    random: &mut Random,
) -> (Executable, usize) {
    let make = |bytes| {
        let options = Options { budget: Some(Budget::Bytes(bytes)), ..options.clone() };
        Executable::new(engine, recording, &options)
    };
    let free = Options { budget: None, ..options.clone() };
    let free = Executable::new(engine, recording, &free).unwrap();
    let budget = free.graph().arena_bytes() * random.below(100) / 100;
    let (bytes, executable) = match make(budget) {
        Ok(executable) => (budget, executable),
        Err(Error::Budget { budget: refused, smallest, .. }) => {
            assert!(refused == budget && smallest > budget);
            (smallest, make(smallest).expect("it was named"))
        }
        Err(error) => panic!("{error}"),
    };
    assert!(executable.graph().arena_bytes() <= bytes);
    let again = executable.graph().nodes().len() - rewritten(engine, recording, options);
    (executable, again)
}

/// How many operations a recording has once it is rewritten.
fn rewritten(engine: &Engine, recording: &Recording, options: &Options) -> usize {
    recording.rewritten(&mut engine.turn(), options).unwrap().0.0.nodes().len()
}

/// How many operations there are, those of chains each for itself.
fn links(graph: &Graph) -> usize {
    let links = graph.nodes().iter().map(|node| match &node.op.kind {
        Kind::Chain(chain) => chain.links.len(),
        _ => 1,
    });
    links.sum()
}

fn check(seed: u64, options: &Options) -> Features {
    let _seed = Seed(seed);
    let program = Program::draw(seed);
    let (eager, replayed) = (World::new(&program), World::new(&program));
    let random = &mut Random(!seed);
    let mut held = Vec::new();
    let mut graph = None;
    let mut features = program.features.clone();
    for run in 0..RUNS {
        let values = random.next();
        let [ours, theirs] =
            [&eager, &replayed].map(|world| program.arguments(&world.engine, &mut Random(values)));
        let player = eager.player(&program, &ours);
        let (want, want_kept) = (player.take(&program.results), player.take(&program.kept));
        let (executable, kept) = graph.get_or_insert_with(|| {
            let (recording, kept) = replayed.record(&program, &theirs);
            let (again, also_kept) = replayed.record(&program, &theirs);
            assert_eq!(recording.difference(&again), None);
            let make = if options.budget.is_some() { bounded } else { thrifty };
            let (executable, repeated) = make(&replayed.engine, &recording, options, random);
            features.recomputed += repeated as u64;
            executable.graph().verify().unwrap();
            check_schedule(executable.graph(), options);
            let graph = executable.graph();
            features.chains += (links(graph) - graph.nodes().len()) as u64;
            features.constants += executable.constants().operations as u64;
            executable.adopt(&again);
            (executable, [kept, also_kept])
        });
        assert!(executable.fits(&theirs));
        let engine = &replayed.engine;
        let got = executable.run(engine, engine.run().unwrap(), &theirs).unwrap();
        assert_eq!(all_bits(&got), all_bits(&want), "results of run {run}");
        for kept in kept {
            assert_eq!(all_bits(kept), all_bits(&want_kept), "what is kept after run {run}");
        }
        assert_eq!(all_bits(&theirs), all_bits(&ours), "arguments after run {run}");
        assert_eq!(replayed.state(), eager.state(), "parameters after run {run}");
        if program.holds_results {
            held.push((want, got));
        }
        if random.below(2) == 0 {
            [&eager, &replayed].into_iter().for_each(World::write);
        }
    }
    for (want, got) in &held {
        assert_eq!(all_bits(got), all_bits(want), "results held over later runs");
    }
    features
}

/// Checks that all nodes of a graph made for several threads may run on any of them.
fn check_schedule(graph: &Graph, options: &Options) {
    let segments = graph.schedule().map(|schedule| &schedule.segments[..]);
    let nodes = graph.nodes().len() as u32;
    let want = (nodes > 1).then_some(0..nodes);
    assert_eq!(segments, options.parallel.map(|_| want.as_slice()));
}

/// A number that the environment may set.
fn set(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// Checks programs on two threads: so many, or as many as `SINGA_RS_PROGRAMS` says, from seed 0 on;
/// or just the one of `SINGA_RS_SEED`.
fn check_all(programs: u64, options: &Options) {
    if let Some(seed) = set("SINGA_RS_SEED") {
        check(seed, options);
        return;
    }
    let programs = set("SINGA_RS_PROGRAMS").unwrap_or(programs);
    let half = |first: u64| {
        move || (first..programs).step_by(2).map(|seed| check(seed, options)).sum::<Features>()
    };
    let total = std::thread::scope(|scope| {
        let other = scope.spawn(half(1));
        let ours = half(0)();
        [ours, other.join().unwrap()].into_iter().sum::<Features>()
    });
    eprintln!("{programs} programs: {total:?}");
    total.check(programs, options.budget.is_none());
}

#[test]
fn replay_equals_eager_to_the_bit() {
    check_all(PROGRAMS, &Options::default());
}

#[test]
fn replay_by_several_threads_equals_eager_to_the_bit() {
    for workers in [2, 5] {
        team::set_size(workers);
        let parallel = Some(Parallel { workers, least_gain: 0 });
        check_all(PROGRAMS / 4, &Options { parallel, ..Options::default() });
    }
}

#[test]
fn replay_within_a_memory_budget_equals_eager_to_the_bit() {
    check_all(BOUNDED, &Options { budget: Some(Budget::Share(1.0)), ..Options::default() });
}

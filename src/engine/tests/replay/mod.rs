//! Random programs: replay gives the bits of eager execution.

mod decisions;
mod features;
mod generate;
mod motifs;
mod play;
mod world;

use super::*;
use crate::device::team;
use crate::engine::{Budget, Executable, Limits, Options, Recording};
use crate::error::Error;
use crate::graph::{Graph, Parallel, Queue, Role};
use crate::kernels::{self, Fusing};
use crate::ops::Kind;
use crate::rewrite;
use features::Features;
use generate::{Program, Random};
use world::{Bits, Left, World, all_bits};

/// How many programs a test run draws for the default options.
const PROGRAMS: u64 = 10_000;
/// How many for each other set of options, and for all of them together.
const FEWER: u64 = 2_500;
/// How many on a device with memory of its own.
const APART: u64 = 100;
/// How many on an emulated GPU, whose kernels have to be compiled.
const EMULATED: u64 = 24;
/// The memory of a program's device.
const BYTES: usize = 1 << 24;
/// How often each program is run.
const RUNS: usize = 3;

/// A guard that prints the program's seed if a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the program of seed {} failed; SINGA_RS_SEED={0} runs it alone", self.0);
        }
    }
}

/// The graph of a recording, and how many operations it recomputes.
fn made(
    engine: &Engine,
    recording: &Recording,
    options: &Options,
    random: &mut Random,
) -> (Executable, usize) {
    let make = |budget| Executable::new(engine, recording, &Options { budget, ..options.clone() });
    let executable = match options.budget {
        Some(_) => bounded(make, random),
        None => make(None).unwrap(),
    };
    let before = if options.rewrite {
        recording.rewritten(options).unwrap().0.0.ops().len()
    } else {
        recording.operations().0.ops().len()
    };
    let again = executable.graph().ops().len() - before;
    (executable, again)
}

/// A graph with a random budget below the memory that it takes without one, or with the smallest
/// budget that can be met.
fn bounded(make: impl Fn(Option<Budget>) -> Result<Executable>, random: &mut Random) -> Executable {
    let budget = make(None).unwrap().graph().arena_bytes() * random.below(100) / 100;
    let (bytes, executable) = match make(Some(Budget::Bytes(budget))) {
        Ok(executable) => (budget, executable),
        Err(Error::Budget { budget: refused, smallest, .. }) => {
            assert!(refused == budget && smallest > budget);
            (smallest, make(Some(Budget::Bytes(smallest))).expect("it was named"))
        }
        Err(error) => panic!("{error}"),
    };
    assert!(executable.graph().arena_bytes() <= bytes);
    executable
}

/// A run: the seed of its arguments, and whether the user writes all parameters after it.
type Next = (u64, bool);

/// What each run leaves behind in eager execution, and the final contents of all results, if the
/// caller holds on to them.
fn eagerly(program: &Program, runs: &[Next], engine: Engine) -> (Vec<Left>, Vec<Bits>) {
    let world = World::new(program, engine);
    let mut held = Vec::new();
    let run = |&(values, writes): &Next| {
        let arguments = program.arguments(&world.engine, &mut Random(values));
        let player = world.player(program, &arguments);
        let (results, kept) = (player.take(&program.results), player.take(&program.kept));
        let left = Left {
            results: all_bits(&results),
            kept: all_bits(&kept),
            arguments: all_bits(&arguments),
            state: world.state(),
        };
        if program.holds_results {
            held.push(results);
        }
        if writes {
            world.write();
        }
        left
    };
    let left = runs.iter().map(run).collect();
    (left, held.iter().map(|results| all_bits(results)).collect())
}

/// Records a program, replays it as often as it ran eagerly, and compares; returns what its graph
/// contains.
fn replay(
    program: &Program,
    runs: &[Next],
    (want, want_held): &(Vec<Left>, Vec<Bits>),
    options: &Options,
    engine: Engine,
) -> Features {
    let (world, random) = (World::new(program, engine), &mut Random(!program.seed));
    let engine = &world.engine;
    let (mut held, mut graph, mut features) = (Vec::new(), None, Features::default());
    for (run, (&(values, writes), want)) in runs.iter().zip(want).enumerate() {
        let arguments = program.arguments(engine, &mut Random(values));
        let (executable, kept) = graph.get_or_insert_with(|| {
            let (recording, kept) = world.record(program, &arguments);
            let (again, also_kept) = world.record(program, &arguments);
            assert_eq!(recording.difference(&again), None);
            let (executable, repeated) = made(engine, &recording, options, random);
            executable.graph().verify().unwrap();
            check_schedule(executable.graph(), options);
            if !options.rewrite {
                check_saved(engine, &recording);
            }
            features.note(&executable, repeated);
            executable.adopt(&again);
            (executable, [kept, also_kept])
        });
        assert!(executable.fits(&arguments));
        let got = executable.run(engine, engine.run().unwrap(), &arguments).unwrap();
        for kept in kept {
            let (results, kept) = (all_bits(&got), all_bits(kept));
            let arguments = all_bits(&arguments);
            let left = Left { results, kept, arguments, state: world.state() };
            assert!(left == *want, "run {run} with {options:?}: {}", want.difference(&left));
        }
        if program.holds_results {
            held.push(got);
        }
        if writes {
            world.write();
        }
    }
    let held: Vec<Bits> = held.iter().map(|results| all_bits(results)).collect();
    assert!(held == *want_held, "results held over later runs, with {options:?}");
    features
}

/// Compares graphs made with each of these options, on devices that `make` gives, with eager
/// execution on the host.
fn check(seed: u64, ways: &[Options], make: fn() -> Engine) -> Features {
    check_program(&Program::draw(seed), ways, on_host, make)
}

/// The same of a program, with eager execution on a device that `eager` gives.
fn check_program(
    program: &Program,
    ways: &[Options],
    eager: fn() -> Engine,
    make: fn() -> Engine,
) -> Features {
    let seed = program.seed;
    let _seed = Seed(seed);
    let random = &mut Random(!seed);
    let runs: Vec<Next> = (0..RUNS).map(|_| (random.next(), random.below(2) == 0)).collect();
    let want = eagerly(program, &runs, eager());
    let replayed = ways.iter().map(|options| {
        let options = Options { limits: limits(random), ..options.clone() };
        replay(program, &runs, &want, &options, make())
    });
    std::iter::once(program.features.clone()).chain(replayed).sum()
}

fn on_host() -> Engine {
    engine(BYTES)
}

/// Random thresholds: the defaults, none, or anything in between.
fn limits(random: &mut Random) -> Limits {
    let mut drawn = if random.below(4) == 0 { Limits::DEFAULT } else { Limits::NONE };
    let Limits { rewriting: rewrite::Limits { constants, chains }, recomputing } = &mut drawn;
    if random.below(2) == 0 {
        constants.each = [0.0, 0.1, 1.0, 10.0][random.below(4)];
        constants.all = [0.0, 0.005][random.below(2)];
        let short = random.below(200);
        let large_rows = short + random.below(200);
        let fusing = chains.unwrap_or_else(|| kernels::target(kernels::host()).unwrap().fusing());
        *chains = Some(Fusing { short, large_rows, ..fusing });
        recomputing.bytes = random.below(60);
    }
    drawn
}

/// Checks that all nodes of a graph made for several threads are scheduled in parallel segments,
/// except user code, which runs between segments.
fn check_schedule(graph: &Graph, options: &Options) {
    let segments = graph.schedule().map(|schedule| &schedule.segments[..]).unwrap_or_default();
    let is_host = |node: &u32| graph.ops()[*node as usize].call.kind.family().effects().host;
    let nodes: Vec<u32> = (0..graph.ops().len() as u32).collect();
    let parts = nodes.split(is_host).filter(|part| part.len() > 1);
    let want: Vec<_> = parts.map(|part| part[0]..part[0] + part.len() as u32).collect();
    assert_eq!(segments, if options.parallel.is_some() { &want[..] } else { &[] });
}

/// Checks that a recording gives the same graph after it was written and read, as it was recorded
/// and rewritten.
fn check_saved(engine: &Engine, recording: &Recording) {
    let (rewritten, _) = recording.rewritten(&Options::default()).unwrap();
    for (queue, roles) in [recording.operations(), rewritten] {
        if queue.ops().iter().any(|op| op.call.effects.host) {
            assert!(queue.to_bytes(&roles).is_err());
            continue;
        }
        let read = Queue::from_bytes(engine.device(), &queue.to_bytes(&roles).unwrap()).unwrap();
        let shown = |(queue, roles): (Queue, Vec<Role>)| {
            let kernels = engine.prepare(&queue).unwrap();
            Graph::new(queue, roles, &kernels).unwrap().to_json()
        };
        assert_eq!(shown(read), shown((queue, roles)));
    }
}

/// A number from an environment variable, if set.
fn set(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// Checks programs with seeds from 0 on two threads: `programs` of them, or `SINGA_RS_PROGRAMS` if
/// set; or only the one with the seed `SINGA_RS_SEED`.
fn check_all(programs: u64, ways: &[Options]) {
    if let Some(seed) = set("SINGA_RS_SEED") {
        check(seed, ways, on_host);
        return;
    }
    let programs = set("SINGA_RS_PROGRAMS").unwrap_or(programs);
    let half = |first: u64| {
        move || {
            (first..programs).step_by(2).map(|seed| check(seed, ways, on_host)).sum::<Features>()
        }
    };
    let total = std::thread::scope(|scope| {
        let other = scope.spawn(half(1));
        let ours = half(0)();
        [ours, other.join().unwrap()].into_iter().sum::<Features>()
    });
    eprintln!("{programs} programs in {} ways: {total:?}", ways.len());
    total.check(programs);
}

/// Options for this many threads, however little they gain.
fn parallel(workers: usize) -> Options {
    let parallel = Some(Parallel { least_gain: 0, ..Parallel::new(workers) });
    Options { parallel, ..Options::default() }
}

#[test]
fn replay_equals_eager_to_the_bit() {
    check_all(PROGRAMS, &[Options::default()]);
}

#[test]
fn replay_by_five_threads_equals_eager_to_the_bit() {
    team::set_size(5);
    check_all(FEWER, &[parallel(5)]);
}

/// As recorded and planned; rewritten and ordered; with recomputation; on two threads; within
/// random budgets; and both.
#[test]
fn replay_in_every_way_equals_eager_to_the_bit() {
    team::set_size(2);
    let kept = Options { recompute: false, ..Options::default() };
    let budget = Some(Budget::Share(1.0));
    let budgeted = Options { budget, ..Options::default() };
    let shared = Options { budget, ..parallel(2) };
    let ways = [Options::AS_RECORDED, kept, Options::default(), parallel(2), budgeted, shared];
    check_all(FEWER, &ways);
}

/// On a device whose memory the host cannot access: eagerly, and replayed in the same ways.
#[test]
fn a_device_with_memory_of_its_own_gives_the_same_bits() {
    let ways = [Options::AS_RECORDED, Options::default(), parallel(2)];
    for seed in 0..APART {
        let program = Program::draw(seed);
        let runs = [(seed, true), (!seed, false)];
        let want = eagerly(&program, &runs, on_host());
        assert!(eagerly(&program, &runs, sealed::engine()) == want, "seed {seed}");
        check(seed, &ways, sealed::engine);
    }
}

/// On an emulated GPU, programs of operations that have a kernel there.
#[test]
fn a_gpu_replays_what_it_runs_eagerly_to_the_bit() {
    let ways = [Options::AS_RECORDED, Options::default()];
    for seed in 0..set("SINGA_RS_EMULATED").unwrap_or(EMULATED) {
        let program = Program::draw_for(seed, gpu::engine(), false);
        check_program(&program, &ways, gpu::engine, gpu::engine);
    }
}

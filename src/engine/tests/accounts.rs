//! What graphs and engines report about themselves and callers rely on.

use super::*;
use crate::graph::{Origin, Role};
use crate::ops::unary::{Unary, UnaryFn};

const NEG: Unary = Unary { f: UnaryFn::Neg };

/// A step that doubles its argument, updates a parameter with it, and returns another tensor.
struct Step {
    engine: Engine,
    x: View,
    p: View,
    lr: View,
    graph: Executable,
}

impl Step {
    fn new() -> Step {
        let engine = engine(1 << 20);
        let (x, p) = (tensor(&engine, &[300], &[1f32; 300]), tensor(&engine, &[300], &[5f32; 300]));
        let lr = tensor(&engine, &[1], &[1f32]);
        p.block.set_account(Account::Parameters);
        lr.block.set_account(Account::States);
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            let twice = run(&engine, binary("add"), &[&x, &x]).unwrap();
            run(&engine, sgd(), &[&p, &twice[0], &lr]).unwrap();
            run(&engine, NEG, &[&twice[0]]).unwrap().to_vec()
        });
        let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
        Step { engine, x, p, lr, graph }
    }
}

#[test]
fn a_graph_names_its_blocks() {
    let Step { p, lr, graph, x, .. } = Step::new();
    let mut known = graph.captured_ids();
    known.sort_unstable_by_key(|(_, number)| *number);
    let addresses: Vec<usize> = known.iter().map(|(address, _)| *address).collect();
    assert_eq!(addresses, [&p, &lr].map(|view| Arc::as_ptr(&view.block).addr()));
    assert_eq!(graph.argument_blocks(), [0]);
    let role = |number: u32| graph.graph().roles()[number as usize];
    assert_eq!(graph.result_blocks().into_iter().map(role).collect::<Vec<_>>(), [Role::Slot]);
    assert!(known.iter().all(|(_, number)| role(*number) == Role::Captured));
    assert_eq!(graph.undo_bytes(), p.block.bytes());
    assert!(graph.fault().is_none() && x.block.bytes() == p.block.bytes());
}

#[test]
fn a_graph_counts_its_memory_by_account() {
    let Step { graph, .. } = Step::new();
    let accounts = graph.memory();
    let of = |account| accounts.iter().find(|(known, _)| *known == account).unwrap().1;
    assert_eq!([of(Account::Parameters), of(Account::States)], [1200, 4]);
    assert_eq!([of(Account::Results), of(Account::Staging)], [1200, 1200]);
    assert_eq!(of(Account::Arena), graph.arena_bytes());
    let all: usize = accounts.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(all, 3 * 1200 + 4 + graph.arena_bytes());
}

#[test]
fn a_graph_counts_what_its_tensors_do() {
    let Step { engine, x, p, graph, .. } = Step::new();
    assert_eq!((graph.departures(), graph.moves(), graph.runs()), (0, 0, 0));
    p.block.note_departure();
    assert_eq!(graph.departures(), 1);
    let first = replay(&engine, &graph, std::slice::from_ref(&x)).unwrap();
    assert_eq!((graph.moves(), graph.runs()), (0, 1), "nothing was shown before");
    let second = replay(&engine, &graph, &[x]).unwrap();
    assert_eq!(graph.runs(), 2);
    assert!(!Arc::ptr_eq(&first[0].block, &second[0].block), "the first is still held");
    assert_eq!(values::<f32>(&first[0]), [-2.0; 300]);
}

#[test]
fn a_graph_names_each_argument_s_block() {
    let engine = engine(1 << 20);
    let [x, y] = [1f32, 2.0].map(|value| tensor(&engine, &[1], &[value]));
    let arguments = [x.clone(), y.clone(), x.clone()];
    let recording = recorded(&engine, &arguments, || run(&engine, NEG, &[&y]).unwrap().to_vec());
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    assert_eq!(graph.argument_blocks(), [0, 1, 0]);
}

#[test]
fn a_graph_counts_how_often_tensors_that_show_its_results_were_pointed_elsewhere() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32; 2]);
    let mut kept = None;
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        kept = Some(run(&engine, NEG, &[&x]).unwrap()[0].clone());
        Vec::new()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    drop(recording);
    let step = || replay(&engine, &graph, std::slice::from_ref(&x)).map(|_| graph.moves()).unwrap();
    let shown = || kept.as_ref().and_then(|view| view.block.current());
    assert_eq!([step(), step()], [0, 0], "nobody else sees what the first has made");
    let first = shown();
    assert!(first.is_some() && step() == 1);
    let second = shown();
    assert!(second.is_some() && step() == 2);
    drop((first, second));
    assert_eq!(step(), 2);
}

#[test]
fn a_graph_that_captured_memory_shares_it_with_nobody_who_writes_it() {
    let Step { p, graph, .. } = Step::new();
    assert!(p.block.is_unshared());
    drop(graph);
    assert!(p.block.is_unshared());
}

#[test]
fn what_runs_write_has_another_version_then() {
    let Step { engine, x, p, lr, graph, .. } = Step::new();
    let version = |view: &View| view.block.version();
    let before = [&x, &p, &lr].map(version);
    replay(&engine, &graph, std::slice::from_ref(&x)).unwrap();
    let after = [&x, &p, &lr].map(version);
    assert_eq!((after[0], after[2]), (before[0], before[2]));
    assert_ne!(after[1], before[1]);
    let negates = recorded(&engine, std::slice::from_ref(&x), || {
        run_into(&engine, NEG, &[&x], &[&x]).unwrap();
        vec![]
    });
    let graph = Executable::new(&engine, &negates, &Options::default()).unwrap();
    let given = tensor(&engine, &[300], &[2f32; 300]);
    let before = version(&given);
    replay(&engine, &graph, std::slice::from_ref(&given)).unwrap();
    assert_ne!(version(&given), before, "arguments, too");
}

#[test]
fn a_summary_tells_what_is_kept() {
    let engine = engine(1 << 20);
    let w = tensor(&engine, &[64], &[1f32; 64]);
    let of = |keep| {
        let recording = recorded(&engine, &[], || {
            let made = run(&engine, NEG, &[&w]).unwrap();
            run(&engine, binary("add"), &[&made[0], &w]).unwrap().to_vec()
        });
        let options = Options { keep, limits: Limits::NONE, ..Options::default() };
        let graph = Executable::new(&engine, &recording, &options).unwrap();
        (graph.summary(), graph.constants().operations)
    };
    let ((kept, operations), (unkept, none)) = (of(true), of(false));
    assert!(operations > 0 && none == 0);
    assert!(kept.contains(&format!("\nconstant: {operations} nodes, of which ")), "{kept}");
    assert!(!unkept.contains("constant:"), "{unkept}");
}

#[test]
fn the_number_of_threads_is_set_between_operations() {
    let engine = engine(1 << 20);
    assert!(engine.set_threads(3).unwrap());
    assert_eq!(engine.device().threads(), 3);
    assert!(!engine.set_threads(3).unwrap() && engine.set_threads(1).unwrap());
}

#[test]
fn a_recording_follows_the_number_of_threads() {
    let engine = engine(1 << 24);
    let x = tensor(&engine, &[512, 512], &vec![1f32; 512 * 512]);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        let made = run(&engine, crate::ops::gemm::Matmul, &[&x, &x]).unwrap();
        run(&engine, NEG, &[&made[0]]).unwrap().to_vec()
    });
    let threads = || {
        let graph = Executable::new(&engine, &recording, &Options::AS_RECORDED).unwrap();
        graph.graph().kernels().iter().map(|op| op.threads).collect::<Vec<_>>()
    };
    assert_eq!(threads(), [1, 1]);
    engine.set_threads(2).unwrap();
    assert_eq!(threads(), [2, 2]);
}

#[test]
fn only_one_thread_has_the_turn() {
    let engine = engine(1 << 20);
    let turn = engine.turn();
    std::thread::scope(|scope| {
        assert!(scope.spawn(|| engine.try_turn().is_none()).join().unwrap());
    });
    drop(turn);
    assert!(engine.try_turn().is_some());
    let run = engine.try_run().unwrap();
    assert!(runs_graph() && engine.try_run().is_none());
    drop(run);
    assert!(!runs_graph() && engine.try_run().is_some());
}

#[test]
fn short_operations_run_where_they_are_prepared() {
    let engine = engine(1 << 24);
    let (x, large) =
        (tensor(&engine, &[2], &[1f32, 2.0]), tensor(&engine, &[1 << 20], &vec![1f32; 1 << 20]));
    let submit = |x: &View| {
        let mut inputs: Inputs = smallvec::smallvec![x.clone()];
        engine.submit_if_short(engine.turn(), &NEG.into(), &mut inputs).map(|made| made.unwrap())
    };
    assert!(submit(&x).is_none() && !engine.turn().is_short(&NEG.into(), std::slice::from_ref(&x)));
    run(&engine, NEG, &[&x]).unwrap();
    assert!(engine.turn().is_short(&NEG.into(), std::slice::from_ref(&x)));
    assert_eq!(values::<f32>(&submit(&x).unwrap()[0]), [-1.0, -2.0]);
    run(&engine, NEG, &[&large]).unwrap();
    assert!(submit(&large).is_none(), "it is prepared, but takes long");
    recorded(&engine, &[], || {
        assert!(submit(&x).is_none());
        vec![]
    });
}

#[test]
fn short_draws_move_the_generator_on() {
    let engine = engine(1 << 20);
    let kind = kind(json!({
        "op": "random", "dist": {"uniform": {"low": 0, "high": 1}}, "shape": [2], "dtype": "float32"
    }));
    let draw = || {
        let made = engine.submit_if_short(engine.turn(), &kind, &mut Inputs::new());
        values::<f32>(&made.unwrap().unwrap()[0])
    };
    run(&engine, kind.clone(), &[]).unwrap();
    assert_ne!(draw(), draw());
}

#[test]
fn origins_are_known_by_number() {
    let engine = engine(1 << 20);
    assert_eq!(record::origin(), None);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let recording = recorded(&engine, &[], || {
        let mut numbers = vec![record::origin().unwrap()];
        for line in ["net.py:8", "net.py:9", "net.py:8"] {
            record::set_origin(Origin::at(line));
            numbers.push(record::origin().unwrap());
        }
        assert!(numbers[1] == numbers[3] && numbers[0] != numbers[1] && numbers[1] != numbers[2]);
        record::set_origin_number(numbers[2]);
        let made = run(&engine, NEG, &[&x]).unwrap();
        record::set_origin_number(99);
        assert_eq!(record::origin(), Some(numbers[2]), "there is no such origin");
        assert_eq!(record::origin_of(numbers[1]), Some(Origin::at("net.py:8")));
        made.to_vec()
    });
    assert_eq!(*recording.origin(&recording.operations().0.ops()[0]), Origin::at("net.py:9"));
    assert_eq!(recording.origins().len(), 4);
}

#[test]
fn scopes_of_state_lie_in_each_other() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let recording = recorded(&engine, &[], || {
        record::enter_state();
        record::enter_state();
        record::leave_state();
        assert_eq!(record::mode(), record::Mode::State);
        record::leave_state();
        assert_eq!(record::mode(), record::Mode::Record);
        run(&engine, NEG, &[&x]).unwrap().to_vec()
    });
    assert_eq!(recording.operations().0.ops().len(), 1);
    assert_eq!(record::mode(), record::Mode::Eager);
}

#[test]
fn seeds_have_keys_of_their_own() {
    let mut all: Vec<u64> = (0..100).flat_map(|seed| rng::keys(seed).unwrap()).collect();
    all.extend(rng::keys(i64::MAX as u64).unwrap());
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn operations_run_on_the_engine_of_their_device_alone() {
    assert!(std::ptr::eq(of(crate::kernels::host()).unwrap(), host()));
    let other = Device::new(7, "other", Box::new(Limited { left: 0.into() }), 1);
    assert!(matches!(of(&other), Err(Error::Device { .. })));
}

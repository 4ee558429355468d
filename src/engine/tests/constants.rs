//! Constants: recomputed when their inputs were written, and counted.

use super::*;
use crate::engine::executable::Constants;
use crate::graph::Graph;

const MANY: usize = 4096;

/// A graph of `x + exp(w)`.
struct World {
    engine: Engine,
    w: View,
    x: View,
    graph: Executable,
}

impl World {
    fn new() -> Self {
        let engine = engine(1 << 22);
        let [w, x] = [0.5f32, 1.0].map(|value| tensor(&engine, &[MANY], &[value; MANY]));
        let recording = recorded_sum(&engine, &w, &x, || ());
        let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
        World { engine, w, x, graph }
    }

    /// Runs the graph and compares its result with eager execution; returns how often constants
    /// were computed.
    fn step(&self) -> u64 {
        let got = replay(&self.engine, &self.graph, std::slice::from_ref(&self.x)).unwrap();
        let grown =
            run(&self.engine, kind(json!({"op": "unary", "f": "exp"})), &[&self.w]).unwrap();
        let want = run(&self.engine, binary("add"), &[&self.x, &grown[0]]).unwrap();
        assert_eq!(values::<f32>(&got[0]), values::<f32>(&want[0]));
        self.graph.constants().computed
    }

    fn write(&self, value: f32) {
        let fill = json!({"op": "fill", "value": value, "shape": [MANY], "dtype": "float32"});
        run_into(&self.engine, kind(fill), &[], &[&self.w]).unwrap();
    }
}

/// `x + exp(w)`, and something after it.
fn recorded_sum(engine: &Engine, w: &View, x: &View, after: impl FnOnce()) -> Recording {
    recorded(engine, std::slice::from_ref(x), || {
        let grown = run(engine, kind(json!({"op": "unary", "f": "exp"})), &[w]).unwrap();
        let sum = run(engine, binary("add"), &[x, &grown[0]]).unwrap();
        after();
        sum.to_vec()
    })
}

#[test]
fn constants_are_computed_once_for_each_version() {
    let world = World::new();
    assert_eq!(world.graph.constants(), Kept { operations: 1, bytes: 4 * MANY, computed: 0 });
    assert_eq!([world.step(), world.step()], [1, 1]);
    world.write(0.25);
    assert_eq!([world.step(), world.step()], [2, 2]);
}

#[test]
fn what_another_library_holds_is_computed_in_each_run() {
    let world = World::new();
    world.step();
    world.w.block.lend();
    for value in [2.0, 3.0] {
        poke(&world.w, value);
        world.step();
    }
    poke(&world.w, 4.0);
    world.w.block.take_back();
    assert_eq!([world.step(), world.step()], [4, 4]);
}

#[test]
fn kept_memory_has_an_account() {
    let world = World::new();
    let ledger = world.engine.device().ledger();
    let stated = world.graph.memory()[Account::Constants as usize];
    assert_eq!(stated, (Account::Constants, 4 * MANY));
    assert_eq!(ledger.balance(Account::Constants), 0);
    world.step();
    assert_eq!(ledger.balance(Account::Constants), 4 * MANY);
    let World { engine, graph, .. } = world;
    drop(graph);
    assert_eq!(engine.device().ledger().balance(Account::Constants), 0);
}

#[test]
fn what_another_graph_writes_is_seen() {
    let engine = engine(1 << 22);
    let x = tensor(&engine, &[MANY], &[1f32; MANY]);
    let exp = || kind(json!({"op": "unary", "f": "exp"}));
    let mut kept = None;
    // Recordings keep their blocks alive, so they are dropped at once.
    let make =
        |recording: Recording| Executable::new(&engine, &recording, &Options::default()).unwrap();
    let first = make(recorded(&engine, std::slice::from_ref(&x), || {
        kept = Some(run(&engine, exp(), &[&x]).unwrap()[0].clone());
        Vec::new()
    }));
    replay(&engine, &first, std::slice::from_ref(&x)).unwrap();
    let kept = kept.expect("it was recorded");
    let now = || View { block: kept.block.current().unwrap(), ..kept.clone() };
    let shown: View = now();
    let second = make(recorded(&engine, std::slice::from_ref(&x), || {
        let grown = run(&engine, exp(), &[&shown]).unwrap();
        run(&engine, binary("add"), &[&x, &grown[0]]).unwrap().to_vec()
    }));
    let address = |view: &View| Arc::as_ptr(&view.block);
    let before = address(&shown);
    drop(shown);
    for value in [1f32, 2.0, 3.0] {
        let x = tensor(&engine, &[MANY], &[value; MANY]);
        replay(&engine, &first, std::slice::from_ref(&x)).unwrap();
        assert_eq!(address(&now()), before, "nobody else sees the block");
        let got = replay(&engine, &second, std::slice::from_ref(&x)).unwrap();
        let want = run(&engine, exp(), &[&now()]).unwrap();
        let want = run(&engine, binary("add"), &[&x, &want[0]]).unwrap();
        assert_eq!(values::<f32>(&got[0]), values::<f32>(&want[0]));
    }
}

#[test]
fn what_reads_two_is_computed_again_where_either_was_written() {
    let World { engine, w, x, .. } = World::new();
    let v = tensor(&engine, &[MANY], &[0.5f32; MANY]);
    let sum = |x: &View| {
        let product = run(&engine, binary("mul"), &[&w, &v]).unwrap();
        let grown = run(&engine, kind(json!({"op": "unary", "f": "exp"})), &[&product[0]]).unwrap();
        run(&engine, binary("add"), &[x, &grown[0]]).unwrap().to_vec()
    };
    let recording = recorded(&engine, std::slice::from_ref(&x), || sum(&x));
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    for (written, computed) in [(None, 1), (Some(&v), 2), (None, 2), (Some(&w), 3)] {
        if let Some(written) = written {
            run_into(&engine, kind(json!({"op": "copy"})), &[&x], &[written]).unwrap();
        }
        let got = replay(&engine, &graph, std::slice::from_ref(&x)).unwrap();
        assert_eq!(values::<f32>(&got[0]), values::<f32>(&sum(&x)[0]));
        assert_eq!(graph.constants().computed, computed);
    }
}

#[test]
fn a_run_beside_the_recorded_operations_finds_constants_computed() {
    let world = World::new();
    let World { engine, w, x, graph } = &world;
    let plain = recorded_sum(engine, w, x, || ());
    let plain = Executable::new(engine, &plain, &Options::AS_RECORDED).unwrap();
    for (value, computed) in [(0.5, 1), (0.25, 2)] {
        world.write(value);
        let arguments = std::slice::from_ref(x);
        let compared = graph.compare(&plain, engine, engine.run().unwrap(), arguments).unwrap();
        assert_eq!(compared.difference, None);
        assert_eq!(graph.constants().computed, computed);
    }
}

#[test]
fn constants_are_held_against_the_graph_that_reads_them() {
    let World { engine, w, x, .. } = World::new();
    let stays = recorded_sum(&engine, &w, &x, || ());
    let changes = recorded_sum(&engine, &w, &x, || {
        run_into(&engine, binary("add"), &[&w, &x], &[&w]).unwrap();
    });
    let options = Options::default();
    let ((queue, roles), taken) = stays.rewritten(&options).unwrap();
    let constants = Constants::new(&engine, &stays, taken.unwrap()).unwrap();
    let graph = |(queue, roles)| {
        let kernels = engine.prepare(&queue).unwrap();
        Graph::new(queue, roles, &kernels).unwrap()
    };
    constants.verify(&graph((queue, roles))).unwrap();
    let error = constants.verify(&graph(changes.operations())).unwrap_err();
    assert!(error.to_string().contains("what it is made of is written"), "{error}");
}

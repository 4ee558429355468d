//! Runs of graphs are compared with the operations as recorded.

use super::*;
use crate::engine::Compared;
use crate::error::Error;
use crate::graph::Origin;
use crate::kernels::Prepared;
use crate::ops::Real;
use crate::ops::norm::BatchNormInference;

/// A recording of `y = f(x + w); w = w + x`, and the tensors that it reads and writes.
struct World {
    engine: Engine,
    x: View,
    w: View,
}

impl World {
    fn new() -> Self {
        let engine = engine(1 << 22);
        let [x, w] = [1f32, 2.0].map(|value| tensor(&engine, &[3], &[value; 3]));
        World { engine, x, w }
    }

    fn graph(&self, f: &str, options: &Options) -> Executable {
        let recording = recorded(&self.engine, std::slice::from_ref(&self.x), || {
            let sum = run(&self.engine, binary("add"), &[&self.x, &self.w]).unwrap();
            let y = run(&self.engine, kind(json!({"op": "unary", "f": f})), &[&sum[0]]).unwrap();
            run_into(&self.engine, binary("add"), &[&self.w, &self.x], &[&self.w]).unwrap();
            y.to_vec()
        });
        Executable::new(&self.engine, &recording, options).unwrap()
    }

    fn compare(&self, graph: &Executable, recorded: &Executable) -> Compared {
        let (engine, arguments) = (&self.engine, std::slice::from_ref(&self.x));
        assert_eq!(graph.obstacle(recorded), None);
        graph.compare(recorded, engine, engine.run().unwrap(), arguments).unwrap()
    }
}

#[test]
fn a_graph_that_does_what_was_recorded_has_run_once() {
    let world = World::new();
    let [graph, recorded] =
        [Options::default(), Options::AS_RECORDED].map(|o| world.graph("neg", &o));
    for step in 0..3 {
        let Compared { results, difference } = world.compare(&graph, &recorded);
        assert_eq!(difference, None);
        assert_eq!(values::<f32>(&results[0]), [-(3.0 + step as f32); 3]);
        assert_eq!(values::<f32>(&world.w), [3.0 + step as f32; 3]);
    }
}

#[test]
fn of_a_graph_that_does_something_else_nothing_is_left() {
    let world = World::new();
    let (graph, recorded) =
        (world.graph("neg", &Options::default()), world.graph("exp", &Options::AS_RECORDED));
    let Compared { results, difference } = world.compare(&graph, &recorded);
    let difference = difference.expect("they differ");
    assert!(
        difference.starts_with("the result of ") && difference.ends_with(" differs"),
        "{difference}"
    );
    assert_eq!(values::<f32>(&results[0]), [3f32.exp(); 3]);
    assert_eq!(values::<f32>(&world.w), [3.0; 3]);
}

/// Among several operations that write a block, and several results of one operation.
#[test]
fn what_makes_a_difference_is_named() {
    let world = World::new();
    let World { engine, x, w } = &world;
    let [one, none] = [1f32, 0.0].map(|value| tensor(engine, &[1], &[value]));
    let buffer = tensor(engine, &[3], &[0f32; 3]);
    let momentum = json!({"op": "update", "f": "sgd", "momentum": true, "nesterov": false, "weight_decay": false});
    let [graph, recorded] = ["add", "mul"].map(|f| {
        let recording = recorded(engine, std::slice::from_ref(x), || {
            record::set_origin(Origin::at("net.py:8"));
            let g = run(engine, binary(f), &[x, w]).unwrap();
            record::set_origin(Origin::at("net.py:9"));
            run(engine, kind(momentum.clone()), &[w, &g[0], &one, &buffer, &one, &none]).unwrap();
            record::set_origin(Origin::at("net.py:10"));
            run(engine, kind(json!({"op": "unary", "f": "neg"})), &[x]).unwrap().to_vec()
        });
        Executable::new(engine, &recording, &Options::AS_RECORDED).unwrap()
    });
    let difference = world.compare(&graph, &recorded).difference;
    assert_eq!(difference.as_deref(), Some("the result of sgd at net.py:9 differs"));
}

/// One graph flips the sign of a NaN, the other clears it; another operation may access the bits.
#[test]
fn memory_holds_floats_where_an_operation_takes_it_to() {
    let world = World::new();
    let engine = &world.engine;
    let (v, count) = (&tensor(engine, &[1], &[f32::NAN]), tensor(engine, &[1], &[1i32]));
    for looks_at_bits in [false, true] {
        let [graph, recorded] = ["neg", "abs"].map(|f| {
            let bits = View { meta: Arc::new(Meta::new(DType::Int32, [1])), ..v.clone() };
            let recording = recorded(engine, std::slice::from_ref(&world.x), || {
                let other = if looks_at_bits { &bits } else { &count };
                let made = run(engine, binary("add"), &[other, &count]).unwrap();
                run_into(engine, kind(json!({"op": "unary", "f": f})), &[v], &[v]).unwrap();
                made.to_vec()
            });
            Executable::new(engine, &recording, &Options::AS_RECORDED).unwrap()
        });
        assert_eq!(world.compare(&graph, &recorded).difference, None);
    }
}

#[test]
fn values_that_are_no_numbers_are_the_same() {
    let world = World::new();
    let nan = f32::from_bits(0x7fc0_1234);
    let fill = json!({"op": "fill", "value": -1.0, "shape": [3], "dtype": "float32"});
    run_into(&world.engine, kind(fill), &[], &[&world.x]).unwrap();
    poke(&world.w, nan);
    let [graph, recorded] =
        [Options::default(), Options::AS_RECORDED].map(|o| world.graph("neg", &o));
    assert_eq!(world.compare(&graph, &recorded).difference, None);
}

#[test]
fn a_budget_that_the_operations_as_recorded_do_not_keep_is_an_obstacle() {
    let engine = engine(1 << 24);
    let x = tensor(&engine, &[1 << 16], &[1f32; 1 << 16]);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        let unary = |f: &str, x: &View| {
            run(&engine, kind(json!({"op": "unary", "f": f})), &[x]).unwrap()[0].clone()
        };
        // Live until the end, unless they are recomputed.
        let kept: Vec<View> = ["exp", "tanh", "abs", "neg"].map(|f| unary(f, &x)).into();
        let sum = |a: View, b: &View| run(&engine, binary("add"), &[&a, b]).unwrap()[0].clone();
        vec![kept.iter().fold(unary("square", &x), sum)]
    });
    let make = |options: Options| Executable::new(&engine, &recording, &options).unwrap();
    let graph = make(Options { budget: Some(Budget::Bytes(1 << 18)), ..Options::default() });
    let recorded = make(Options::AS_RECORDED);
    assert!(graph.arena_bytes() <= 1 << 18 && recorded.arena_bytes() > 1 << 18);
    let obstacle = graph.obstacle(&recorded).unwrap();
    assert!(obstacle.contains("the budget is 262144"), "{obstacle}");
    let enough = Some(Budget::Bytes(recorded.arena_bytes()));
    let graph = make(Options { budget: enough, ..Options::default() });
    assert_eq!(graph.obstacle(&recorded), None);
}

/// The optimised graph fails verification, or making it panics.
#[test]
fn a_fault_in_what_is_made_falls_back_to_the_operations_as_recorded() {
    let world = World::new();
    let recording = recorded(&world.engine, std::slice::from_ref(&world.x), || {
        run(&world.engine, binary("add"), &[&world.x, &world.w]).unwrap().to_vec()
    });
    let faults: [fn() -> Result<_>; 2] =
        [|| Err(Error::Internal { op: "add".into(), message: "wrong".into() }), || panic!("wrong")];
    for improve in faults {
        let made = recording.made(&world.engine, &Options::default(), improve).unwrap();
        assert_eq!(made.graph.ops().len(), 1);
        assert!(made.fault.unwrap().to_string().ends_with("internal error: wrong"));
        let budget = Some(Budget::Bytes(0));
        let within = recording
            .made(&world.engine, &Options { budget, ..Options::default() }, improve)
            .unwrap();
        assert_eq!(within.graph.arena_bytes(), 0);
    }
    let refused = || Err(Error::shape("add", [], "another"));
    assert!(matches!(
        recording.made(&world.engine, &Options::default(), refused),
        Err(Error::Shape { .. })
    ));
}

/// Rules that match this operation's name rely on inputs that this one lacks.
#[test]
fn a_graph_that_is_as_recorded_for_a_fault_says_so_and_runs() {
    let world = World::new();
    let World { engine, x, w } = &world;
    let mut recording = recorded(engine, std::slice::from_ref(x), || {
        run(engine, binary("add"), &[x, w]).unwrap().to_vec()
    });
    let [add] = recording.queue.ops_mut() else { panic!("one was recorded") };
    let mut op = Prepared::new(add.call.clone(), engine.device(), 1).unwrap();
    op.change(|call| call.kind = BatchNormInference { eps: Real(0.0) }.into());
    add.call = op.call().clone();
    engine.turn().0.insert(op);
    let graph = Executable::new(engine, &recording, &Options::default()).unwrap();
    assert!(matches!(graph.fault(), Some(Error::Internal { .. })));
    let made = replay(engine, &graph, std::slice::from_ref(x)).unwrap();
    assert_eq!(values::<f32>(&made[0]), [3.0; 3]);
}

#[test]
fn the_operations_as_recorded_keep_to_the_budget_or_say_how_much_they_take() {
    let world = World::new();
    let World { engine, x, w } = &world;
    let recording = recorded(engine, std::slice::from_ref(x), || {
        let sum = run(engine, binary("add"), &[x, w]).unwrap();
        run(engine, binary("add"), &[&sum[0], x]).unwrap().to_vec()
    });
    let fault = || Err(Error::Internal { op: "add".into(), message: "wrong".into() });
    let taken =
        recording.made(&world.engine, &Options::default(), fault).unwrap().graph.arena_bytes();
    let within = |budget| {
        let options = Options { budget: Some(budget), ..Options::default() };
        match recording.made(engine, &options, fault) {
            Ok(made) => Ok(made.budget),
            Err(Error::Budget { budget, smallest, .. }) => Err((budget, smallest)),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(taken > 0);
    assert_eq!(within(Budget::Bytes(taken)), Ok(Some(taken)));
    assert_eq!(within(Budget::Share(1.0)), Ok(Some(taken)));
    assert_eq!(within(Budget::Bytes(taken - 1)), Err((taken - 1, taken)));
    assert_eq!(within(Budget::Share(0.5)), Err((taken / 2, taken)));
}

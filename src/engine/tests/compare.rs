//! Runs of graphs are held against the operations as they were recorded.

use super::*;
use crate::engine::Compared;

/// A recording of `y = f(x + w); w = w + x`, and what it reads and writes.
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
        difference.starts_with("what ") && difference.ends_with(" makes differs"),
        "{difference}"
    );
    assert_eq!(values::<f32>(&results[0]), [3f32.exp(); 3]);
    assert_eq!(values::<f32>(&world.w), [3.0; 3]);
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
        // Kept until the end, unless they are computed again.
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
}

/// What is made of a recording does not stand up to its check, or panics on the way.
#[test]
fn a_fault_in_what_is_made_falls_back_to_the_operations_as_recorded() {
    let world = World::new();
    let recording = recorded(&world.engine, std::slice::from_ref(&world.x), || {
        run(&world.engine, binary("add"), &[&world.x, &world.w]).unwrap().to_vec()
    });
    let faults: [fn() -> Result<_>; 2] =
        [|| Err(Error::Internal { op: "add".into(), message: "wrong".into() }), || panic!("wrong")];
    for improve in faults {
        let made = recording.made(&Options::default(), improve).unwrap();
        assert_eq!(made.graph.nodes().len(), 1);
        assert!(made.fault.unwrap().to_string().ends_with("internal error: wrong"));
        let budget = Some(Budget::Bytes(0));
        let within = recording.made(&Options { budget, ..Options::default() }, improve).unwrap();
        assert_eq!(within.graph.arena_bytes(), 0);
    }
    let refused = || Err(Error::shape("add", [], "another"));
    assert!(matches!(recording.made(&Options::default(), refused), Err(Error::Shape { .. })));
}

//! Running graphs: refusals, failures midway, user code, the arena.

use serde_json::json;

use super::*;
use crate::error::Error;
use crate::ops::Metas;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};

fn gather() -> Kind {
    kind(json!({"op": "gather", "axis": 0}))
}

#[test]
fn an_argument_out_of_range_is_refused_before_anything_is_written() {
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let lr = tensor(&engine, &[1], &[1f32]);
    let labels = |values: &[i32]| tensor(&engine, &[2], values);
    let good = labels(&[0, 2]);
    let recording = recorded(&engine, std::slice::from_ref(&good), || {
        run(&engine, sgd(), &[&p, &p, &lr]).unwrap();
        run(&engine, gather(), &[&p, &good]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let error = replay(&engine, &graph, &[labels(&[0, 3])]).unwrap_err();
    assert!(matches!(&error, Error::Index { op, .. } if op.contains("net.py:7")), "{error}");
    assert_eq!(values::<f32>(&p), [1.0, 2.0, 3.0]);
    assert!(graph.written().is_empty());
    replay(&engine, &graph, &[good]).unwrap();
    assert_eq!(values::<f32>(&p), [0.0; 3]);
}

#[test]
fn a_failure_in_the_middle_tells_what_was_written() {
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let index = tensor(&engine, &[1], &[0i32]);
    let lr = tensor(&engine, &[1], &[1f32]);
    let recording = recorded(&engine, &[], || {
        run(&engine, sgd(), &[&p, &p, &lr]).unwrap();
        run(&engine, gather(), &[&p, &index]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    run_into(
        &engine,
        kind(json!({"op": "fill", "value": 9, "shape": [1], "dtype": "int32"})),
        &[],
        &[&index],
    )
    .unwrap();
    assert!(matches!(replay(&engine, &graph, &[]), Err(Error::Index { .. })));
    assert_eq!(graph.written(), [Arc::as_ptr(&p.block).addr()]);
    assert_eq!(values::<f32>(&p), [0.0; 3]);
}

#[test]
fn a_failure_is_told_of_its_own_run_alone() {
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let (index, labels) = (tensor(&engine, &[1], &[0i32]), tensor(&engine, &[1], &[2i32]));
    let lr = tensor(&engine, &[1], &[1f32]);
    let recording = recorded(&engine, std::slice::from_ref(&labels), || {
        run(&engine, sgd(), &[&p, &p, &lr]).unwrap();
        let made = [&index, &labels].map(|at| run(&engine, gather(), &[&p, at]).unwrap());
        made.into_iter().flatten().collect()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let bad = tensor(&engine, &[1], &[9i32]);
    run_into(&engine, kind(json!({"op": "copy"})), &[&bad], &[&index]).unwrap();
    assert!(replay(&engine, &graph, &[labels]).is_err(), "in the middle");
    assert!(replay(&engine, &graph, &[bad]).is_err(), "before anything is written");
    assert!(graph.written().is_empty());
}

/// User code that may run more operations.
struct Doubles(&'static (dyn Fn() + Sync));

impl HostFn for Doubles {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Ok(inputs.iter().map(|&meta| meta.clone()).collect())
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        (self.0)();
        let read = |c: &[u8]| f32::from_ne_bytes(c.try_into().unwrap());
        for (from, to) in inputs[0].bytes.chunks(4).zip(outputs[0].bytes.chunks_mut(4)) {
            to.copy_from_slice(&(2.0 * read(from)).to_ne_bytes());
        }
        Ok(())
    }
}

#[test]
fn user_code_in_a_graph_may_run_operations_but_no_graph() {
    let engine: &'static Engine = Box::leak(Box::new(engine(1 << 20)));
    let submits = move || {
        let x = tensor(engine, &[1], &[1f32]);
        assert_eq!(values::<f32>(&run(engine, binary("add"), &[&x, &x]).unwrap()[0]), [2.0]);
        assert!(matches!(engine.run(), Err(Error::Graph { .. })));
    };
    let host = Kind::from(Host::new("doubles", Arc::new(Doubles(Box::leak(Box::new(submits))))));
    let x = tensor(engine, &[2], &[1f32, 2.0]);
    let recording = recorded(engine, std::slice::from_ref(&x), || {
        let made = run(engine, binary("add"), &[&x, &x]).unwrap();
        let made = run(engine, host.clone(), &[&made[0]]).unwrap();
        run(engine, binary("add"), &[&made[0], &x]).unwrap().to_vec()
    });
    let graph = Executable::new(engine, &recording, &Options::default()).unwrap();
    assert!(!graph.is_short());
    assert_eq!(values::<f32>(&replay(engine, &graph, &[x]).unwrap()[0]), [5.0, 10.0]);
    assert!(engine.run().is_ok(), "the right to run has been given back");
}

#[test]
fn a_profile_refuses_arguments_before_user_code_runs() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let counts = Doubles(&|| {
        CALLS.fetch_add(1, SeqCst);
    });
    let host = Kind::from(Host::new("counts", Arc::new(counts)));
    let engine = engine(1 << 20);
    let p = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let [good, bad] = [2, 3].map(|label| tensor(&engine, &[1], &[label]));
    let recording = recorded(&engine, std::slice::from_ref(&good), || {
        let made = run(&engine, host.clone(), &[&p]).unwrap();
        run(&engine, gather(), &[&made[0], &good]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::AS_RECORDED).unwrap();
    let profile = |label| graph.profile(&engine, engine.run().unwrap(), Some(vec![label]), 1);
    assert!(matches!(profile(bad), Err(Error::Index { .. })));
    assert_eq!(CALLS.load(SeqCst), 0);
    profile(good).unwrap();
    assert_eq!(CALLS.load(SeqCst), 1);
}

#[test]
fn a_graph_with_user_code_is_not_run_twice_to_compare_it() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let of = |kind: Kind| {
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            run(&engine, kind, &[&x]).unwrap().to_vec()
        });
        Executable::new(&engine, &recording, &Options::default()).unwrap()
    };
    let by_user = of(Host::new("doubles", Arc::new(Doubles(&|| ()))).into());
    let plain = of(kind(json!({"op": "unary", "f": "neg"})));
    assert_eq!(plain.obstacle(&plain), None);
    for [graph, recorded] in [[&by_user; 2], [&by_user, &plain], [&plain, &by_user]] {
        let why = "user code or exchanges between processes would run twice";
        assert_eq!(graph.obstacle(recorded).as_deref(), Some(why));
    }
}

#[test]
fn few_small_operations_are_short() {
    let engine = engine(1 << 24);
    let is_short = |count: usize, elements: usize| {
        let x = tensor(&engine, &[elements], &vec![1f32; elements]);
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            let negate = kind(json!({"op": "unary", "f": "neg"}));
            let again = |x: View, _| run(&engine, negate.clone(), &[&x]).unwrap()[0].clone();
            vec![(0..count).fold(x.clone(), again)]
        });
        Executable::new(&engine, &recording, &Options::AS_RECORDED).unwrap().is_short()
    };
    assert!(is_short(64, 2) && !is_short(65, 2) && !is_short(1, 1 << 20));
}

#[test]
fn a_refusal_of_the_arena_names_what_would_be_in_it_and_what_is_there() {
    const MANY: usize = 70_000;
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[MANY], &[1f32; MANY]);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        let unary = |f: &str| run(&engine, kind(json!({"op": "unary", "f": f})), &[&x]).unwrap();
        let kept = ["exp", "tanh", "abs", "neg"].map(unary);
        let sum =
            |a: View, b: &Outputs| run(&engine, binary("add"), &[&a, &b[0]]).unwrap()[0].clone();
        vec![kept.iter().fold(x.clone(), sum)]
    });
    let graph = Executable::new(&engine, &recording, &Options::AS_RECORDED).unwrap();
    let error = replay(&engine, &graph, std::slice::from_ref(&x)).unwrap_err();
    let Error::OutOfMemory { usage, .. } = error else { panic!("{error}") };
    assert_eq!(usage.bound, graph.graph().lower_bound_bytes());
    let named = |name: &str, line: Option<&str>| {
        let mut largest = usage.largest.iter();
        largest.any(|tensor| tensor.name == name && tensor.line.as_deref() == line)
    };
    assert!(named("exp float32 (70000,)", Some("net.py:7")), "{usage}");
    assert!(named(Account::Results.name(), None), "{usage}");
}

#[test]
fn graphs_share_the_arena_and_give_it_back() {
    let engine = engine(1 << 24);
    let arena = || engine.device().ledger().balance(Account::Arena);
    let graph = |n: usize| {
        let x = tensor(&engine, &[n], &vec![1f32; n]);
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            let made = run(&engine, binary("add"), &[&x, &x]).unwrap();
            run(
                &engine,
                kind(json!({"op": "reduce", "f": "sum", "axes": [], "keepdims": false})),
                &[&made[0]],
            )
            .unwrap()
            .to_vec()
        });
        (Executable::new(&engine, &recording, &Options::default()).unwrap(), x)
    };
    let ((large, x), (small, y)) = (graph(1 << 20), graph(1 << 10));
    assert_eq!(arena(), 0);
    replay(&engine, &large, &[x]).unwrap();
    let needed = arena();
    assert_eq!(needed, large.graph().arena_bytes().next_multiple_of(4 << 10));
    replay(&engine, &small, &[y]).unwrap();
    assert_eq!(arena(), needed);
    drop(large);
    assert_eq!(arena(), small.graph().arena_bytes().next_multiple_of(4 << 10));
    drop(small);
    assert_eq!(arena(), 0);
}

#[test]
fn a_trimmed_arena_comes_back_with_the_next_run() {
    let engine = engine(1 << 20);
    let arena = || engine.device().ledger().balance(Account::Arena);
    let p = tensor(&engine, &[2000], &vec![1f32; 2000]);
    let lr = tensor(&engine, &[1], &[1f32]);
    let recording = recorded(&engine, &[], || {
        let doubled = run(&engine, binary("add"), &[&p, &p]).unwrap();
        run(&engine, sgd(), &[&p, &doubled[0], &lr]).unwrap();
        Vec::new()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    replay(&engine, &graph, &[]).unwrap();
    let needed = arena();
    assert_eq!(needed, graph.graph().arena_bytes().next_multiple_of(4 << 10));
    assert!(engine.trim() >= needed && arena() == 0);
    // Leave too little memory to back the arena again.
    let pool = engine.device().pool();
    let taken = pool.lend(pool.backend().available(0) & !0xffff, Account::Results).unwrap();
    let taken = (taken, pool.lend(pool.backend().available(0) - 4096, Account::Results).unwrap());
    let version = p.block.version();
    assert!(matches!(replay(&engine, &graph, &[]), Err(Error::OutOfMemory { .. })));
    assert_eq!((arena(), p.block.version()), (0, version));
    assert_eq!(values::<f32>(&p), [-1.0; 2000]);
    drop(taken);
    replay(&engine, &graph, &[]).unwrap();
    assert_eq!((arena(), values::<f32>(&p)), (needed, vec![1.0; 2000]));
    drop(graph);
    assert_eq!(arena(), 0);
}

#[test]
fn the_arena_of_a_running_graph_is_not_trimmed() {
    let engine: &'static Engine = Box::leak(Box::new(engine(1 << 20)));
    let arena = move || engine.device().ledger().balance(Account::Arena);
    let trims = move || {
        let needed = arena();
        engine.trim();
        assert!(needed > 0 && arena() == needed);
    };
    let host = Kind::from(Host::new("doubles", Arc::new(Doubles(Box::leak(Box::new(trims))))));
    let x = tensor(engine, &[2], &[1f32, 2.0]);
    let recording = recorded(engine, std::slice::from_ref(&x), || {
        let kept = run(engine, binary("add"), &[&x, &x]).unwrap();
        let made = run(engine, host.clone(), &[&x]).unwrap();
        run(engine, binary("mul"), &[&made[0], &kept[0]]).unwrap().to_vec()
    });
    let graph = Executable::new(engine, &recording, &Options::default()).unwrap();
    assert_eq!(values::<f32>(&replay(engine, &graph, &[x]).unwrap()[0]), [4.0, 16.0]);
    engine.trim();
    assert_eq!(arena(), 0);
}

#[test]
fn an_operation_may_have_more_inputs_than_sixteen_bits_count() {
    let engine = engine(1 << 26);
    let all: Vec<View> = (0..70_000).map(|i| tensor(&engine, &[1], &[i as f32])).collect();
    let concat = kind(json!({"op": "concat", "axis": 0}));
    let inputs: Vec<&View> = all.iter().collect();
    let recording =
        recorded(&engine, &[], || run(&engine, concat.clone(), &inputs).unwrap().to_vec());
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let made = replay(&engine, &graph, &[]).unwrap();
    assert!(values::<f32>(&made[0]).into_iter().eq((0..70_000).map(|i| i as f32)));
}

#[test]
fn arguments_must_fit() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let p = tensor(&engine, &[2], &[1f32, 2.0]);
    let recording = recorded(&engine, &[x.clone(), x.clone()], || {
        run_into(&engine, binary("add"), &[&x, &p], &[&p]).unwrap();
        run(&engine, binary("add"), &[&x, &p]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let y = tensor(&engine, &[2], &[0f32; 2]);
    assert!(graph.fits(&[y.clone(), y.clone()]));
    assert!(!graph.fits(&[x.clone(), y.clone()]), "one tensor twice was recorded");
    assert!(!graph.fits(&[p.clone(), p.clone()]), "the graph knows it as a parameter");
    assert!(!graph.fits(&[lent(&p), lent(&p)]), "the same memory under another name");
    let other = tensor(&engine, &[3], &[0f32; 3]);
    assert!(matches!(graph.check_arguments(&[other.clone(), other]), Err(Error::Shape { .. })));
    assert!(matches!(graph.check_arguments(&[y]), Err(Error::Arity { .. })));
}

#[test]
fn arguments_may_share_memory_that_is_only_read() {
    let engine = engine(1 << 20);
    let [p, q, x] = [1f32, 2.0, 3.0].map(|value| tensor(&engine, &[2], &[value; 2]));
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        run_into(&engine, binary("add"), &[&q, &p], &[&q]).unwrap();
        run(&engine, binary("add"), &[&x, &p]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    assert!(!graph.fits(std::slice::from_ref(&q)), "the graph writes it");
    assert!(graph.fits(std::slice::from_ref(&p)));
    let made = replay(&engine, &graph, std::slice::from_ref(&p)).unwrap();
    assert_eq!(values::<f32>(&made[0]), [2.0; 2]);
    let writes = recorded(&engine, std::slice::from_ref(&x), || {
        run_into(&engine, binary("add"), &[&x, &p], &[&x]).unwrap();
        Vec::new()
    });
    let graph = Executable::new(&engine, &writes, &Options::default()).unwrap();
    assert!(graph.fits(&[x]) && !graph.fits(&[p]), "the argument is written");
}

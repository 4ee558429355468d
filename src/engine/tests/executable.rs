//! Running graphs: what is refused, what fails in the middle, user code, the arena.

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
    // What it did not have to be refused before, it has to be now.
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

//! Exchanges between processes, in eager calls and in recordings. The ranks are threads here, each
//! with an engine of its own.

use std::thread;

use super::*;
use crate::comm::testing::Channels;
use crate::comm::{self, Exchange, Fold, Group, Wire};
use crate::ops::exchange::{ExchangeFinish, ExchangeStart};
use crate::shape::Shape;

const SUM: Exchange = Exchange::AllReduce { fold: Fold::Sum, wire: Wire::Dense };

fn start(group: &Group, slot: u32) -> ExchangeStart {
    let (group, ranks) = (group.number(), group.size());
    ExchangeStart { group, ranks, slot, exchange: SUM, receives: None }
}

fn finish(group: &Group, slot: u32, shape: impl Into<Shape>) -> ExchangeFinish {
    let (shape, dtype) = (shape.into(), DType::Float32);
    let (bytes, group) = (shape.numel() * dtype.size(), group.number());
    ExchangeFinish { group, slot, exchange: SUM, bytes, results: vec![shape], dtype }
}

/// `x * 2`, summed over the ranks, plus the sum of `x * x`, of which the second exchange starts
/// before the first is waited for.
fn step(engine: &Engine, group: &Group, x: &View) -> Result<Outputs> {
    let twice = run(engine, binary("add"), &[x, x])?;
    run(engine, start(group, 0), &[&twice[0]])?;
    let square = run(engine, binary("mul"), &[x, x])?;
    run(engine, start(group, 1), &[&square[0]])?;
    let [first, second] = [0, 1].map(|slot| run(engine, finish(group, slot, [3]), &[]));
    run(engine, binary("add"), &[&first?[0], &second?[0]])
}

/// Runs the body on each of this many ranks.
fn on_ranks(count: usize, body: impl Fn(&Engine, &Group) + Sync) {
    thread::scope(|scope| {
        for transport in Channels::group(count) {
            let body = &body;
            scope.spawn(move || {
                let group = comm::open(Box::new(transport)).unwrap();
                body(&engine(1 << 20), &group);
                group.close();
            });
        }
    });
}

#[test]
fn a_recorded_exchange_replays_with_new_values_and_equals_the_eager_one() {
    on_ranks(3, |engine, group| {
        let own = |scale: f32| [scale, 2.0 * scale, group.rank() as f32];
        let x = tensor(engine, &[3], &own(1.0));
        let eager = step(engine, group, &x).unwrap();
        assert_eq!(values::<f32>(&eager[0]), [9.0, 24.0, 11.0]);
        let recording = recorded(engine, std::slice::from_ref(&x), || {
            step(engine, group, &x).unwrap().to_vec()
        });
        for options in [Options::AS_RECORDED, Options::default()] {
            let graph = Executable::new(engine, &recording, &options).unwrap();
            assert!(graph.has_hosts() && !graph.is_short());
            for scale in [1.0, 3.0] {
                let x = tensor(engine, &[3], &own(scale));
                let got = replay(engine, &graph, std::slice::from_ref(&x)).unwrap();
                let want = [6.0 * scale + 3.0 * scale * scale, 12.0 * (scale + scale * scale)];
                assert_eq!(values::<f32>(&got[0]), [want[0], want[1], 11.0]);
            }
        }
    });
}

#[test]
fn a_fault_ends_the_step_and_names_the_operation() {
    let mut ranks = Channels::group(2);
    ranks[0].hurts = Some("no more");
    let (group, engine) = (comm::open(Box::new(ranks.remove(0))).unwrap(), engine(1 << 20));
    let x = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let eager = step(&engine, &group, &x).unwrap_err().to_string();
    assert_eq!(eager, "exchange_finish: all_reduce: rank 1 failed: no more");
    let recording =
        recorded(&engine, std::slice::from_ref(&x), || step(&engine, &group, &x).unwrap().to_vec());
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let error = replay(&engine, &graph, std::slice::from_ref(&x)).unwrap_err().to_string();
    assert!(error.contains("exchange_finish (recorded at"), "{error}");
}

#[test]
fn what_cannot_be_exchanged_is_refused() {
    let group = comm::open(Box::new(Channels::group(2).remove(0))).unwrap();
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[3, 2], &[1i32; 6]);
    let refused = |exchange: Exchange, x: &View| {
        let kind = ExchangeStart { exchange, ..start(&group, 0) };
        run(&engine, kind, &[x]).unwrap_err().to_string()
    };
    let mean = Exchange::AllReduce { fold: Fold::Mean, wire: Wire::Dense };
    assert!(refused(mean, &x).contains("want a float dtype for a mean"));
    let sparse = Exchange::AllReduce { fold: Fold::Sum, wire: Wire::Sparse };
    assert!(refused(sparse, &x).contains("want float32 for a short form"));
    let odd = tensor(&engine, &[3], &[1i32; 3]);
    assert!(refused(Exchange::AllToAll, &odd).contains("that 2 ranks share equally"));
    let transposed = x.permute(&[1, 0]).unwrap();
    assert!(
        refused(Exchange::AllGather { of: 0 }, &transposed).contains("want a contiguous tensor")
    );
    assert!(run(&engine, start(&group, 0), &[]).is_err());
}

//! Measuring how long graphs take leaves no trace.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::ops::Metas;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};

/// How long [`Sleeps`] takes.
const NAP: Duration = Duration::from_millis(10);

/// Runs per measurement: enough that their mean hardly depends on other load on the machine.
const RUNS: usize = 10;

/// User code that returns its input after a nap.
struct Sleeps;

impl HostFn for Sleeps {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Ok(inputs.iter().map(|&meta| meta.clone()).collect())
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        std::thread::sleep(NAP);
        outputs[0].bytes.copy_from_slice(inputs[0].bytes);
        Ok(())
    }
}

/// `p -= x`, and user code applied to `2 x`.
fn step(engine: &Engine) -> (Executable, View, View) {
    let (x, p) = (tensor(engine, &[2], &[1f32, 2.0]), tensor(engine, &[2], &[10f32, 20.0]));
    let rate = tensor(engine, &[1], &[1f32]);
    let recording = recorded(engine, std::slice::from_ref(&x), || {
        run(engine, sgd(), &[&p, &x, &rate]).unwrap();
        let made = run(engine, binary("add"), &[&x, &x]).unwrap();
        run(engine, Host::new("sleeps", Arc::new(Sleeps)), &[&made[0]]).unwrap().to_vec()
    });
    let graph = Executable::new(engine, &recording, &Options::default()).unwrap();
    (graph, x, p)
}

#[test]
fn a_profile_says_how_long_each_operation_takes_and_puts_back_what_it_writes() {
    let engine = engine(1 << 20);
    let (graph, x, p) = step(&engine);
    let result = replay(&engine, &graph, std::slice::from_ref(&x)).unwrap().remove(0);
    assert_eq!(values::<f32>(&p), [9.0, 18.0]);
    let (runs, in_use) = (graph.runs(), engine.device().ledger().in_use());
    for arguments in [Some(vec![x.clone()]), None] {
        let timings = graph.profile(&engine, engine.run().unwrap(), arguments, RUNS).unwrap();
        let names = graph.graph().ops().iter().map(|node| node.call.name());
        for (name, timing) in names.zip(&timings) {
            let naps = timing.seconds / NAP.as_secs_f64();
            assert!(0.0 < naps && naps < 8.0, "{name}: {timing:?}");
            assert!(name != "sleeps" || naps >= 1.0, "{timing:?}");
        }
        assert_eq!(timings.len(), 3);
    }
    assert_eq!((values::<f32>(&p), values::<f32>(&x)), (vec![9.0, 18.0], vec![1.0, 2.0]));
    assert_eq!(values::<f32>(&result), [2.0, 4.0]);
    assert_eq!((graph.runs(), engine.device().ledger().in_use()), (runs, in_use));
    let none = graph.profile(&engine, engine.run().unwrap(), None, 0).unwrap();
    assert_eq!(none, [Timing::default(); 3]);
}

#[test]
fn a_time_is_the_mean_of_runs_that_count_as_one() {
    let engine = engine(1 << 20);
    let (graph, x, p) = step(&engine);
    let time =
        |runs| graph.time(&engine, engine.run().unwrap(), std::slice::from_ref(&x), runs).unwrap();
    let seconds = time(RUNS);
    assert!((1.0..8.0).contains(&(seconds / NAP.as_secs_f64())), "{seconds} s");
    assert_eq!((graph.runs(), values::<f32>(&p)), (1, vec![0.0, 0.0]));
    assert!(time(0) < NAP.as_secs_f64());
    assert_eq!((graph.runs(), values::<f32>(&p)), (2, vec![0.0, 0.0]));
}

#[test]
fn arguments_of_a_profile_that_are_parts_of_one_block_stay_so() {
    let engine = engine(1 << 20);
    let both = tensor(&engine, &[4], &[1f32, 2.0, 3.0, 4.0]);
    let half = |offset| View { offset, meta: Arc::new(float([2])), ..both.clone() };
    let halves = [half(0), half(2)];
    let recording = recorded(&engine, &halves, || {
        run_into(&engine, binary("add"), &[&halves[0], &halves[1]], &[&halves[0]]).unwrap();
        Vec::new()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    graph.profile(&engine, engine.run().unwrap(), None, 1).unwrap();
    assert_eq!(values::<f32>(&both), [1.0, 2.0, 3.0, 4.0]);
    let fill = json!({"op": "fill", "value": 1, "shape": [2], "dtype": "float32"});
    run_into(&engine, kind(fill), &[], &[&halves[1]]).unwrap();
    replay(&engine, &graph, &halves).unwrap();
    assert_eq!(values::<f32>(&both), [2.0, 3.0, 1.0, 1.0]);
}

//! Which graphs several threads may run.

use super::*;
use crate::graph::Parallel;

/// Two blocks on the same bytes look independent to the scheduler.
#[test]
fn a_graph_of_memory_that_goes_by_two_names_is_run_by_one_thread() {
    let engine = engine(1 << 20);
    let [p, q] = [1f32, 2.0].map(|value| tensor(&engine, &[2], &[value; 2]));
    let negate = kind(json!({"op": "unary", "f": "neg"}));
    let is_shared = |captured: &[&View]| {
        let recording = recorded(&engine, &[], || {
            let made = captured.iter().map(|view| run(&engine, negate.clone(), &[view]).unwrap());
            made.flatten().collect()
        });
        let parallel = Some(Parallel { least_gain: 0, ..Parallel::new(2) });
        let options = Options { parallel, ..Options::AS_RECORDED };
        Executable::new(&engine, &recording, &options).unwrap().graph().schedule().is_some()
    };
    let other = lent(&q);
    assert!(is_shared(&[&p, &q]) && is_shared(&[&p, &other]));
    assert!(!is_shared(&[&p, &q, &other]) && !is_shared(&[&other, &p, &q]));
}

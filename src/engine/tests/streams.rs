//! How the difference between two recordings is described.

use super::*;
use crate::graph::Origin;
use crate::ops::Real;
use crate::ops::layer_norm::LayerNorm;
use crate::ops::norm::BatchNorm;
use crate::view::SliceRange;

fn negate() -> Kind {
    kind(json!({"op": "unary", "f": "neg"}))
}

#[test]
fn another_part_or_look_of_a_tensor_is_a_difference() {
    let engine = engine(1 << 20);
    let (x, all) = (tensor(&engine, &[2], &[1f32; 2]), tensor(&engine, &[4], &[1f32; 4]));
    let of = |start, step| {
        let part = all.slice(&[SliceRange { start, count: 2, step }]).unwrap();
        recorded(&engine, std::slice::from_ref(&x), || {
            run(&engine, binary("add"), &[&x, &part]).unwrap().to_vec()
        })
    };
    let first = of(0, 1);
    assert_eq!(first.difference(&of(0, 1)), None);
    for other in [of(2, 1), of(0, 2)] {
        let want = "operation 0, add at net.py:7 reads a tensor of another shape, dtype or place in \
                    memory as input 1";
        assert_eq!(first.difference(&other).as_deref(), Some(want));
    }
}

#[test]
fn other_results_are_a_difference() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32; 2]);
    let of = |answered: &[usize]| {
        recorded(&engine, std::slice::from_ref(&x), || {
            let turned = run(&engine, negate(), &[&x]).unwrap();
            let twice = run(&engine, binary("add"), &[&x, &x]).unwrap();
            let made = [&turned[0], &twice[0]];
            answered.iter().map(|&which| made[which].clone()).collect()
        })
    };
    let first = of(&[0, 1]);
    let difference = |answered: &[usize]| first.difference(&of(answered)).unwrap_or_default();
    assert_eq!(difference(&[0, 1]), "");
    assert_eq!(difference(&[1, 0]), "result 0");
    assert_eq!(difference(&[0, 0]), "result 1");
    assert_eq!(difference(&[0]), "the number of results");
}

/// A batch normalisation between two other operations, each on a line of this file; the mean stays
/// held if `keeps`.
fn normalised(
    engine: &Engine,
    [x, scale]: [&View; 2],
    file: &str,
    keeps: bool,
) -> (Recording, Option<View>) {
    let mut kept = None;
    let at = |line: usize| record::set_origin(Origin::at(&format!("{file}:{line}")));
    let recording = recorded(engine, std::slice::from_ref(x), || {
        at(1);
        let turned = run(engine, negate(), &[x]).unwrap();
        at(2);
        let inputs = [&turned[0], scale, scale];
        let made = run(engine, BatchNorm { eps: Real(1e-5) }, &inputs).unwrap();
        kept = keeps.then(|| made[1].clone());
        at(3);
        run(engine, negate(), &[&made[0]]).unwrap().to_vec()
    });
    (recording, kept)
}

#[test]
fn what_only_one_of_them_keeps_is_named_with_the_line_where_that_is_made() {
    let engine = engine(1 << 20);
    let (x, scale) = (tensor(&engine, &[2, 3], &[1f32; 6]), tensor(&engine, &[3], &[1f32; 3]));
    let (left, _) = normalised(&engine, [&x, &scale], "a.py", false);
    let (kept, _held) = normalised(&engine, [&x, &scale], "b.py", true);
    let want = "the result of batch_norm at b.py:2 is kept after one of them only";
    assert_eq!(left.difference(&kept).as_deref(), Some(want));
    assert_eq!(kept.difference(&left).as_deref(), Some(want));
}

#[test]
fn an_input_that_only_one_of_them_has_is_a_difference() {
    let engine = engine(1 << 20);
    let (x, scale) = (tensor(&engine, &[2, 3], &[1f32; 6]), tensor(&engine, &[3], &[1f32; 3]));
    let of = |inputs: &[&View]| {
        recorded(&engine, std::slice::from_ref(&x), || {
            run(&engine, LayerNorm { eps: Real(1e-5) }, inputs).unwrap().to_vec()
        })
    };
    let (with, without) = (of(&[&x, &scale, &scale]), of(&[&x, &scale]));
    let want = "operation 0, layer_norm at net.py:7 reads what only one of them has as input 2";
    assert_eq!(with.difference(&without).as_deref(), Some(want));
    assert_eq!(without.difference(&with).as_deref(), Some(want));
}

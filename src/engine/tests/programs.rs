//! Random programs that write overlapping views of one block, compared with a plain vector.

use proptest::prelude::*;

use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::copy::Copy;
use crate::ops::unary::{Unary, UnaryFn};
use crate::view::repeats;

const SIZE: usize = 40;

/// Strides and offset of a three-dimensional view of the block.
type Layout = ([isize; 3], usize);

#[derive(Clone, Debug)]
struct Step {
    which: usize,
    shape: [usize; 3],
    inputs: [Layout; 2],
    output: Layout,
    /// Which tensors are accessed through another block on the same memory.
    lent: [bool; 3],
}

fn layouts() -> impl Strategy<Value = Layout> {
    ([-9isize..10, -5isize..6, -2isize..3], 0..SIZE)
}

fn steps() -> impl Strategy<Value = Step> {
    let shape = [0usize..4, 1usize..4, 1usize..5];
    let tensors = ([layouts(), layouts()], layouts(), any::<[bool; 3]>());
    (0usize..4, shape, tensors).prop_map(|(which, shape, (inputs, output, lent))| Step {
        which,
        shape,
        inputs,
        output,
        lent,
    })
}

/// The view, shifted so that all of it is in the block.
fn view(base: &View, shape: [usize; 3], (strides, offset): Layout) -> Option<View> {
    let meta = Meta { strides: strides[..].into(), ..Meta::new(DType::Int64, shape) };
    let span = meta.span();
    let length = (span.end - span.start) as usize;
    let offset = offset % (SIZE.checked_sub(length)? + 1);
    let offset = (offset as isize - span.start) as usize;
    Some(View { meta: meta.into(), offset, ..base.clone() })
}

/// The result of a step for one element of each input.
fn model(which: usize, a: i64, b: i64) -> i64 {
    match which {
        0 => a,
        1 => a.wrapping_neg(),
        2 => a.wrapping_add(b),
        _ => a.wrapping_sub(b),
    }
}

fn apply(engine: &Engine, step: &Step, inputs: [&View; 2], output: &View) -> Result<()> {
    match step.which {
        0 => run_into(engine, Copy, &inputs[..1], &[output]),
        1 => run_into(engine, Unary { f: UnaryFn::Neg }, &inputs[..1], &[output]),
        2 => run_into(engine, Binary { f: BinaryFn::Add }, &inputs, &[output]),
        _ => run_into(engine, Binary { f: BinaryFn::Sub }, &inputs, &[output]),
    }
}

proptest! {
    #[test]
    fn writing_views_over_each_other(program in proptest::collection::vec(steps(), 1..20)) {
        let engine = engine(1 << 20);
        let mut want: Vec<i64> = (0..SIZE as i64).map(|i| i * i - 7).collect();
        let base = tensor(&engine, &[SIZE], &want);
        let again = lent(&base);
        let base_of = |is_lent| if is_lent { &again } else { &base };
        for step in &program {
            let tensor = |layout, k: usize| view(base_of(step.lent[k]), step.shape, layout);
            let (Some(a), Some(b), Some(c)) =
                (tensor(step.inputs[0], 0), tensor(step.inputs[1], 1), tensor(step.output, 2))
            else { continue };
            let version = c.block.version();
            let done = apply(&engine, step, [&a, &b], &c);
            if repeats(&c.meta) {
                prop_assert!(done.is_err());
                continue;
            }
            prop_assert!(done.is_ok(), "{done:?}");
            prop_assert!(c.block.version() > version);
            let read = |v: &View| places(v).into_iter().map(|p| want[p]).collect::<Vec<_>>();
            let (x, y) = (read(&a), read(&b));
            for (i, place) in places(&c).into_iter().enumerate() {
                want[place] = model(step.which, x[i], y[i]);
            }
            prop_assert_eq!(&values::<i64>(&base), &want, "{:?}", step);
        }
    }
}

#[test]
fn outputs_that_overlap_each_other_are_written_in_order() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[1, 1, 1, 2], &[3f32, 5.0]);
    let pool = crate::ops::Kind::from(crate::ops::norm::BatchNorm { eps: crate::ops::Real(0.0) });
    let (one, zero) = (tensor(&engine, &[1], &[1f32]), tensor(&engine, &[1], &[0f32]));
    let place = tensor(&engine, &[4], &[0f32; 4]);
    let at =
        |start, shape: &[usize]| View { meta: float(shape).into(), offset: start, ..place.clone() };
    let outputs = [&at(0, &[1, 1, 1, 2]), &at(1, &[1]), &at(2, &[1])];
    run_into(&engine, pool, &[&x, &one, &zero], &outputs).unwrap();
    assert_eq!(values::<f32>(&place), [-1.0, 4.0, 1.0, 0.0]);
}

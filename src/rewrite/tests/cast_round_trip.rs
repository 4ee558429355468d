use super::*;
use crate::ops::copy::Cast;
use crate::rewrite::{cast_round_trip, dce};

const NEG: Unary = Unary { f: UnaryFn::Neg };

fn apply(draft: &mut Draft) -> Result<()> {
    cast_round_trip::apply(draft)?;
    dce::apply(draft);
    Ok(())
}

/// What is left of a negation, casts to these types in turn, and another negation; `between` may
/// add something before the last one.
fn left(
    dtypes: &[DType],
    role: Role,
    between: impl FnOnce(&mut Recorder, [&View; 2]),
) -> Vec<&'static str> {
    let mut recorder = Recorder::default();
    let of = |dtype| View::new(cpu::device(), Meta::new(dtype, [4]));
    let push = |recorder: &mut Recorder, kind: Kind, from: &View, to: DType, role| {
        let made = of(to);
        recorder.number(&made, role);
        recorder.push(kind, std::slice::from_ref(from), std::slice::from_ref(&made));
        made
    };
    let given = of(dtypes[0]);
    recorder.number(&given, Role::Captured);
    let first = push(&mut recorder, NEG.into(), &given, dtypes[0], Role::Temporary);
    let mut last = first.clone();
    for (n, &to) in dtypes.iter().enumerate().skip(1) {
        let is_last = n + 1 == dtypes.len();
        let role = if is_last { role } else { Role::Temporary };
        last = push(&mut recorder, Cast { dtype: to }.into(), &last, to, role);
    }
    between(&mut recorder, [&first, &last]);
    push(&mut recorder, NEG.into(), &last, *dtypes.last().unwrap(), Role::Slot);
    rewritten(recorder, apply).0
}

#[test]
fn casts_there_and_back_are_left_out() {
    use DType::{BFloat16, Float16, Float32, Float64};
    for dtypes in [[BFloat16, Float32], [Float16, Float64], [Float32, Float64]] {
        let [narrow, wide] = dtypes;
        assert_eq!(left(&[narrow, wide, narrow], Role::Temporary, |_, _| ()), ["neg", "neg"]);
    }
    // One after the other.
    let all = [BFloat16, Float32, BFloat16, Float32, BFloat16];
    assert_eq!(left(&all, Role::Temporary, |_, _| ()), ["neg", "neg"]);
}

#[test]
fn casts_that_lose_something_or_whose_result_is_needed_stay() {
    use DType::{BFloat16, Float16, Float32};
    let all = ["neg", "cast", "cast", "neg"];
    assert_eq!(left(&[Float32, BFloat16, Float32], Role::Temporary, |_, _| ()), all);
    assert_eq!(left(&[BFloat16, Float16, BFloat16], Role::Temporary, |_, _| ()), all);
    assert_eq!(left(&[BFloat16, Float32, BFloat16], Role::Slot, |_, _| ()), all);
    assert_eq!(left(&[BFloat16, Float32, Float16], Role::Temporary, |_, _| ()), all);
    // The original is overwritten before the result is read.
    let writes = |recorder: &mut Recorder, [first, _]: [&View; 2]| {
        recorder.push(NEG, std::slice::from_ref(first), std::slice::from_ref(first));
    };
    let got = left(&[BFloat16, Float32, BFloat16], Role::Temporary, writes);
    assert_eq!(got.iter().filter(|name| **name == "cast").count(), 2);
}

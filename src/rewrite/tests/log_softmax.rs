use super::*;
use crate::graph::Role::{Argument, Slot, Temporary};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::unary::UnaryGrad;
use crate::rewrite::log_softmax as rule;

const LOG: UnaryFn = UnaryFn::Log;

/// `log(softmax(x))` and its gradient along these axes, with something in between.
fn step(axes: [i64; 2], dtype: DType, between: impl FnOnce(&mut Recorder, [&View; 3])) -> Recorder {
    let mut recorder = Recorder::default();
    let mut tensor = |role| {
        let view = View::new(cpu::device(), Meta::new(dtype, [4, 6]));
        recorder.number(&view, role);
        view
    };
    let [x, dl] = [(); 2].map(|()| tensor(Argument));
    let [p, dp] = [(); 2].map(|()| tensor(Temporary));
    let [l, dx] = [(); 2].map(|()| tensor(Slot));
    let softmax = Softmax { axis: axes[0], log: false };
    recorder.push(softmax, std::slice::from_ref(&x), std::slice::from_ref(&p));
    recorder.push(Unary { f: LOG }, std::slice::from_ref(&p), std::slice::from_ref(&l));
    between(&mut recorder, [&x, &p, &l]);
    recorder.push(UnaryGrad { f: LOG }, &[dl, p.clone()], std::slice::from_ref(&dp));
    recorder.push(SoftmaxGrad { axis: axes[1], log: false }, &[dp, p], &[dx]);
    recorder
}

const APART: [&str; 4] = ["softmax", "log", "log_grad", "softmax_grad"];

#[test]
fn the_logarithm_of_softmax_becomes_one_operation_and_so_its_gradient() {
    let (names, graph) = rewritten(step([1, 1], DType::Float32, |_, _| ()), rule::apply);
    assert_eq!(names, ["log_softmax", "log_softmax_grad"]);
    graph.verify().unwrap();
    let (names, _) =
        rewritten(step([1, 1], DType::Float64, |r, [x, ..]| r.negate(x, x)), rule::apply);
    assert_eq!(names, ["log_softmax", "neg", "log_softmax_grad"], "the gradient reads no logits");
}

#[test]
fn probabilities_that_are_needed_stay() {
    let out = |recorder: &mut Recorder, of: &View| {
        let out = like(of);
        recorder.number(&out, Role::Slot);
        recorder.negate(of, &out);
    };
    let read = step([1, 1], DType::Float32, |recorder, [_, p, _]| out(recorder, p));
    let (first, last) = APART.split_at(2);
    let with = [first, &["neg"], last].concat();
    assert_eq!(rewritten(read, rule::apply).0, with);
    let lost = step([1, 1], DType::Float32, |recorder, [_, _, l]| recorder.negate(l, l));
    assert_eq!(rewritten(lost, rule::apply).0, with, "the logarithm is written over");
}

/// Another operation in place of the logarithm's gradient, or the gradient of another logarithm.
#[test]
fn what_only_looks_like_the_gradient_keeps_all_apart() {
    let kinds = [Kind::from(Binary { f: BinaryFn::Mul }), UnaryGrad { f: LOG }.into()];
    for (kind, is_first) in kinds.into_iter().zip([false, true]) {
        let name = kind.family().name();
        let recorder = step([1, 1], DType::Float32, |recorder, [x, p, _]| {
            let (dp, dx) = (like(p), like(p));
            recorder.number(&dx, Slot);
            let of = if is_first { [p, x] } else { [x, p] };
            recorder.push(kind, &of.map(View::clone), std::slice::from_ref(&dp));
            recorder.push(SoftmaxGrad { axis: 1, log: false }, &[dp, p.clone()], &[dx]);
        });
        let (first, last) = APART.split_at(2);
        let all = [first, &[name, "softmax_grad"], last].concat();
        assert_eq!(rewritten(recorder, rule::apply).0, all);
    }
}

#[test]
fn other_axes_and_types_stay() {
    assert_eq!(rewritten(step([1, 0], DType::Float32, |_, _| ()), rule::apply).0, APART);
    assert_eq!(rewritten(step([1, 1], DType::Float16, |_, _| ()), rule::apply).0, APART);
}

use super::*;
use crate::graph::Role::{Argument, Captured, Slot, Temporary};
use crate::ops::Real;
use crate::ops::conv::Conv;
use crate::ops::gemm::Matmul;
use crate::ops::geometry::Geometry;
use crate::ops::norm::BatchNormInference;
use crate::rewrite::fold_batch_norm as rule;

/// The roles of the tensors of a convolution and a normalisation.
struct Roles {
    w: Role,
    statistics: Role,
    between: Role,
    has_bias: bool,
    /// Whether the scale is computed after the convolution.
    is_late: bool,
    /// The type of the convolution; statistics are float32.
    dtype: DType,
}

const USUAL: Roles = Roles {
    w: Captured,
    statistics: Captured,
    between: Temporary,
    has_bias: false,
    is_late: false,
    dtype: DType::Float32,
};

/// A recording of a convolution and its normalisation, and the weight and the intermediate.
fn step(roles: &Roles) -> (Recorder, [View; 2]) {
    let mut recorder = Recorder::default();
    let mut tensor = |role, dtype, shape: &[usize]| {
        let view = View::new(cpu::device(), Meta::new(dtype, shape));
        recorder.number(&view, role);
        view
    };
    let x = tensor(Argument, roles.dtype, &[2, 3, 8, 8]);
    let w = tensor(roles.w, roles.dtype, &[4, 3, 3, 3]);
    let statistics = [(); 4].map(|()| tensor(roles.statistics, DType::Float32, &[4]));
    let bias = roles.has_bias.then(|| tensor(Captured, roles.dtype, &[4]));
    let geometry = Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1);
    let kind = Kind::from(Conv { geometry });
    let inputs: Vec<View> = [x, w.clone()].into_iter().chain(bias).collect();
    let op = Arc::new(Prepared::of(&kind, &inputs, None, 1).unwrap());
    let z = View::of(cpu::device(), &op.outputs[0]);
    let y = like(&z);
    recorder.number(&z, roles.between);
    recorder.number(&y, Slot);
    recorder.push_prepared(op, &inputs, std::slice::from_ref(&z));
    let mut inputs = [&[z.clone()][..], &statistics].concat();
    if roles.is_late {
        inputs[1] = like(&statistics[0]);
        recorder.negate(&statistics[0], &inputs[1]);
    }
    recorder.push(BatchNormInference { eps: Real(1e-5) }, &inputs, &[y]);
    (recorder, [z, w])
}

#[test]
fn normalisation_goes_into_the_weights_of_a_convolution() {
    for has_bias in [false, true] {
        let (names, graph) = rewritten(step(&Roles { has_bias, ..USUAL }).0, rule::apply);
        assert_eq!(names, ["fold_batch_norm", "conv2d"]);
        assert_eq!(graph.ops()[1].inputs.len(), 3, "with a bias");
        graph.verify().unwrap();
    }
}

#[test]
fn operands_of_the_normalisation_may_be_made_late() {
    let (names, graph) = rewritten(step(&Roles { is_late: true, ..USUAL }).0, rule::apply);
    assert_eq!(names, ["neg", "fold_batch_norm", "conv2d"]);
    graph.verify().unwrap();
}

#[test]
fn not_where_weights_change_or_the_convolution_is_seen() {
    let apart = ["conv2d", "batch_norm_inference"];
    for roles in [
        Roles { w: Argument, ..USUAL },
        Roles { statistics: Argument, ..USUAL },
        Roles { between: Slot, ..USUAL },
        Roles { dtype: DType::Float16, ..USUAL },
    ] {
        assert_eq!(rewritten(step(&roles).0, rule::apply).0, apart);
    }
    let (mut trained, [_, w]) = step(&USUAL);
    trained.negate(&w, &w);
    assert_eq!(rewritten(trained, rule::apply).0, [&apart[..], &["neg"]].concat());
    let (mut read, [z, _]) = step(&USUAL);
    let out = like(&z);
    read.number(&out, Slot);
    read.negate(&z, &out);
    assert_eq!(rewritten(read, rule::apply).0, [&apart[..], &["neg"]].concat());
}

/// Folded weights are computed once, which requires memory to be kept, and change rounding.
#[test]
fn weights_are_scaled_where_results_may_round_and_memory_may_be_kept() {
    for (rounds, keeps) in [(true, true), (true, false), (false, true), (false, false)] {
        let allowed = Allowed { rounds, keeps, limits: Limits::NONE };
        let [left, taken] = apart_by_all(step(&USUAL).0, allowed);
        assert_eq!(taken.contains(&"fold_batch_norm"), rounds && keeps, "{taken:?}");
        assert_eq!(left.contains(&"normalize"), !(rounds && keeps), "{left:?}");
    }
}

/// The normalisation of a dense layer whose bias has this role and shape.
fn dense(role: Role, bias: &[usize]) -> Recorder {
    layer([Matmul.into(), ADD], [6, 3, 4], role, bias)
}

/// The same with these operations instead of the product and the sum, on this many rows, inputs and
/// outputs.
fn layer(kinds: [Kind; 2], [n, i, o]: [usize; 3], role: Role, bias: &[usize]) -> Recorder {
    let mut recorder = Recorder::default();
    let mut tensor = |role, shape: &[usize]| {
        let view = View::new(cpu::device(), Meta::new(DType::Float32, shape));
        recorder.number(&view, role);
        view
    };
    let (x, w, b) = (tensor(Argument, &[n, i]), tensor(Captured, &[i, o]), tensor(role, bias));
    let statistics = [(); 4].map(|()| tensor(Captured, &[o]));
    let [p, z] = [(); 2].map(|()| tensor(Temporary, &[n, o]));
    let y = tensor(Slot, &[n, o]);
    let [first, second] = kinds;
    recorder.push(first, &[x, w], std::slice::from_ref(&p));
    recorder.push(second, &[p, b], std::slice::from_ref(&z));
    let inputs = [&[z][..], &statistics].concat();
    recorder.push(BatchNormInference { eps: Real(1e-5) }, &inputs, &[y]);
    recorder
}

#[test]
fn normalisation_goes_into_the_weights_of_a_product() {
    for bias in [&[4][..], &[1, 4]] {
        let (names, graph) = rewritten(dense(Captured, bias), rule::apply);
        assert_eq!(names, ["fold_batch_norm", "matmul", "add"]);
        graph.verify().unwrap();
    }
}

#[test]
fn not_where_what_is_added_is_no_bias_or_changes() {
    let apart = ["matmul", "add", "batch_norm_inference"];
    assert_eq!(rewritten(dense(Argument, &[4]), rule::apply).0, apart);
    assert_eq!(rewritten(dense(Captured, &[6, 4]), rule::apply).0, apart);
    assert_eq!(rewritten(dense(Captured, &[6, 1]), rule::apply).0, apart);
}

#[test]
fn not_where_something_else_is_done_than_to_multiply_and_add() {
    let binary = |f| Kind::from(Binary { f });
    for kinds in [[Matmul.into(), binary(BinaryFn::Mul)], [binary(BinaryFn::Sub), ADD]] {
        let [first, second] = kinds.each_ref().map(|kind| kind.family().name());
        let (names, _) = rewritten(layer(kinds, [4; 3], Captured, &[4]), rule::apply);
        assert_eq!(names, [first, second, "batch_norm_inference"]);
    }
}

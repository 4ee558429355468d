use super::products::Net;
use super::*;
use crate::ops::gemm::Matmul;
use crate::ops::optim::{self, Update};
use crate::rewrite::fusion::update as rule;

/// A product that computes a weight's gradient, and the update, with something in between. Sizes
/// are those of the weight.
fn update(
    [rows, columns]: [usize; 2],
    role: Role,
    between: impl FnOnce(&mut Recorder, [&View; 3]),
) -> Vec<&'static str> {
    let mut recorder = Recorder::default();
    let of = |shape: &[usize]| View::new(cpu::device(), Meta::new(DType::Float32, shape));
    let [x, dy, w, lr] = [&[8, rows][..], &[8, columns], &[rows, columns], &[1]].map(of);
    for view in [&x, &dy, &w, &lr] {
        recorder.number(view, Role::Captured);
    }
    let (transposed, g) = (x.permute(&[1, 0]).unwrap(), like(&w));
    recorder.number(&g, role);
    recorder.push(Matmul, &[transposed, dy.clone()], std::slice::from_ref(&g));
    between(&mut recorder, [&x, &g, &w]);
    let sgd =
        Update { rule: optim::Rule::Sgd { momentum: false, nesterov: false }, weight_decay: false };
    recorder.push(sgd, &[w.clone(), g, lr], &[w]);
    rewritten(recorder, rule::apply).0
}

#[test]
fn a_large_gradient_is_made_where_its_weight_is_updated() {
    assert_eq!(update([640, 100], Role::Temporary, |_, _| ()), ["matmul_update"]);
}

#[test]
fn a_gradient_is_made_apart_where_it_is_small_or_used_otherwise() {
    let apart = ["matmul", "sgd"];
    assert_eq!(update([64, 10], Role::Temporary, |_, _| ()), apart);
    assert_eq!(update([640, 100], Role::Slot, |_, _| ()), apart);
    let reads = |recorder: &mut Recorder, [_, g, _]: [&View; 3]| recorder.negate(g, &like(g));
    assert_eq!(update([640, 100], Role::Temporary, reads), ["matmul", "neg", "sgd"]);
    let writes = |recorder: &mut Recorder, [x, ..]: [&View; 3]| recorder.negate(x, x);
    assert_eq!(update([640, 100], Role::Temporary, writes), ["matmul", "neg", "sgd"]);
}

#[test]
fn a_gradient_is_made_apart_where_its_update_writes_what_it_is_made_of() {
    for momentum in [false, true] {
        let mut net = Net::new();
        let (x, w, buffer) = (net.given(&[8, 640]), net.given(&[640, 100]), net.given(&[640, 100]));
        let [lr, factor, dampening] = [(); 3].map(|()| net.given(&[1]));
        let g =
            net.push(Matmul, &[&x.permute(&[1, 0]).unwrap(), &first_rows(&w, 8)], Role::Temporary);
        let (sgd, mut inputs) = (
            Update { rule: optim::Rule::Sgd { momentum, nesterov: false }, weight_decay: false },
            vec![w, g, lr],
        );
        inputs.extend([buffer, factor, dampening].into_iter().filter(|_| momentum));
        net.recorder.push(sgd, &inputs, &[]);
        assert_eq!(net.rewritten(rule::apply).0, ["matmul", "sgd"]);
    }
}

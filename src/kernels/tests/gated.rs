//! Convolutions multiplied by functions of their results, beside the operations in turn.

use super::conv::{larger, rounds, seed};
use super::*;
use crate::device::onednn;
use crate::ops::attr::Real;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::conv::Conv;
use crate::ops::geometry::Geometry;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};

const HARD: UnaryFn = UnaryFn::HardSigmoid { alpha: Real(1.0 / 6.0), gamma: Real(0.5) };

/// A convolution of so many inputs, multiplied by a function of its result.
fn gated(geometry: &Geometry, inputs: usize, gate: UnaryFn, exact: bool) -> Region {
    let conv = Link::first(&Conv { geometry: geometry.clone() }.into(), inputs);
    let links = vec![
        Link { kind: Unary { f: gate }.into(), operands: smallvec::smallvec![inputs] },
        Link {
            kind: Binary { f: BinaryFn::Mul }.into(),
            operands: smallvec::smallvec![inputs, inputs + 1],
        },
    ];
    let producer = Some(Box::new(conv));
    Region { producer, exact, ..Region::of_links(inputs, links, vec![2]) }
}

#[test]
fn as_in_float64_on_any_number_of_threads() {
    let (mut random, mut count) = (Random::new(seed()), 0);
    let all = rounds(32);
    for round in 0..all {
        let case = larger(&mut random);
        let [x, w, _] = case.shapes().map(|shape| {
            let last = crate::ops::conv::channels_innermost(shape.len());
            let strides = crate::shape::Shape::from(&shape[..]).dense_like(&last);
            random.tensor(Meta { strides, ..Meta::new(DType::Float32, &shape[..]) })
        });
        let bias = random.tensor(Meta::new(DType::Float32, [case.channels[1]]));
        let inputs: Vec<&Tensor> =
            [&x, &w].into_iter().chain((round % 2 == 0).then_some(&bias)).collect();
        let gate = if round % 3 == 0 { HARD } else { UnaryFn::Sigmoid };
        let kind: Kind = gated(&case.geometry, inputs.len(), gate, false).into();
        let wide: Vec<Tensor> = inputs.iter().map(|t| in_float64(t)).collect();
        let want = apply(&kind, &wide.iter().collect::<Vec<_>>(), 1).unwrap().remove(0).values();
        let got = apply(&kind, &inputs, 1).unwrap();
        let scale = want.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
        assert_near(&got[0].values(), &want, 1e-6 * scale, &format!("{kind:?}"));
        for threads in [2, 3, 8] {
            assert!(apply(&kind, &inputs, threads).unwrap() == got, "{kind:?}, {threads} threads");
        }
        count += usize::from(super::packed::check(kind, &inputs, 1 + round % 2));
    }
    assert!(count > all / 2 || !onednn::is_available(), "{count} of {all} pack");
}

fn in_float64(tensor: &Tensor) -> Tensor {
    Tensor::new(Meta { dtype: DType::Float64, ..tensor.meta.clone() }, &tensor.values())
}

#[test]
fn what_is_no_number_or_infinite_stays_so() {
    let geometry = Geometry::new(&[1, 1], &[0; 4], &[1, 1], 1);
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e30, 1e30, -200.0, 200.0, -0.0];
    let values: Vec<f64> = (0..16 * 64).map(|i| specials[i / 16 % specials.len()]).collect();
    let strides = [1024, 1, 128, 16];
    let x = Tensor::strided(DType::Float32, &[1, 16, 8, 8], &strides, &values);
    let mut only = vec![0.0; 16 * 16];
    only[0] = 1.0;
    let w = Tensor::dense(DType::Float32, &[16, 16, 1, 1], &only);
    for gate in [HARD, UnaryFn::Sigmoid] {
        let of = |exact| {
            let region = gated(&geometry, 2, gate.clone(), exact);
            apply_any_width(&region, &[&x, &w]).unwrap().remove(0).values()
        };
        for (got, want) in of(false).into_iter().zip(of(true)) {
            let is_alike = got == want || got.is_nan() && want.is_nan();
            assert!(is_alike || (got - want).abs() <= 1e-6 * want.abs() + 1e-30, "{got} {want}");
        }
    }
}

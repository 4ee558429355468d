//! Optimizers compared with their formulas in float64.

use super::*;
use crate::ops::gemm::Matmul;
use crate::ops::optim::*;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};

/// Stochastic gradient descent without anything else, and with momentum.
const SGD: Update =
    Update { rule: Rule::Sgd { momentum: false, nesterov: false }, weight_decay: false };
const MOMENTUM: Update =
    Update { rule: Rule::Sgd { momentum: true, nesterov: false }, weight_decay: false };

const SHAPE: [usize; 3] = [5, 67, 4];
const N: usize = 5 * 67 * 4;

/// Runs `optimizer` on every float dtype and layout; `formula` updates (p, moments) from g.
fn check<const M: usize>(
    optimizer: impl Into<Kind>,
    scalars: [f32; 4],
    arrange: impl Fn(Tensor, Tensor, [Tensor; M], [Tensor; 4]) -> Vec<Tensor>,
    formula: impl Fn(&mut f64, f64, &mut [f64; M]),
) {
    let optimizer = optimizer.into();
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        for (p_layout, g_layout) in layouts(&SHAPE).iter().zip(layouts(&SHAPE).iter().rev()) {
            for g_layout in [p_layout, g_layout] {
                let p = Tensor::strided(dtype, &SHAPE, p_layout, &noise(N, 1));
                let g = Tensor::strided(dtype, &SHAPE, g_layout, &noise(N, 2));
                let positive = |m: u64| noise(N, 3 + m).iter().map(|v| v.abs()).collect::<Vec<_>>();
                let moments: [Tensor; M] = std::array::from_fn(|m| {
                    Tensor::strided(dtype.wide(), &SHAPE, p_layout, &positive(m as u64))
                });
                let ones = scalars.map(|s| Tensor::one(DType::Float32, s as f64));
                let want = expected(&p, &g, &moments, &formula);
                let inputs = arrange(p, g, moments, ones);
                let got = apply_any_width(&optimizer, &inputs).unwrap();
                let fine = if dtype == DType::Float64 { 1e-14 } else { 2e-6 };
                let coarse = match dtype {
                    DType::Float16 => 1e-3,
                    DType::BFloat16 => 8e-3,
                    _ => fine,
                };
                assert_near(&got[0].values(), &want[0], coarse, optimizer.family().name());
                (1..=M).for_each(|m| {
                    assert_near(&got[m].values(), &want[m], fine, optimizer.family().name())
                });
            }
        }
    }
}

fn expected<const M: usize>(
    p: &Tensor,
    g: &Tensor,
    moments: &[Tensor; M],
    formula: impl Fn(&mut f64, f64, &mut [f64; M]),
) -> Vec<Vec<f64>> {
    let (mut p, g) = (p.values(), g.values());
    let mut moments: Vec<Vec<f64>> = moments.iter().map(Tensor::values).collect();
    for i in 0..p.len() {
        let mut own: [f64; M] = std::array::from_fn(|m| moments[m][i]);
        formula(&mut p[i], g[i], &mut own);
        (0..M).for_each(|m| moments[m][i] = own[m]);
    }
    moments.insert(0, p);
    moments
}

#[test]
fn sgd_with_and_without_momentum_and_decay() {
    let s = [0.1f32, 0.9, 0.2, 0.01];
    let [lr, mom, damp, decay] = s.map(f64::from);
    let plain = SGD;
    check::<0>(plain.clone(), s, |p, g, [], [lr, ..]| vec![p, g, lr], |p, g, []| *p -= lr * g);
    let decayed = Update { weight_decay: true, ..plain };
    let arrange = |p, g, []: [Tensor; 0], [lr, _, _, wd]: [Tensor; 4]| vec![p, g, lr, wd];
    check::<0>(decayed, s, arrange, |p, g, []| *p -= lr * (g + decay * *p));
    for nesterov in [false, true] {
        let rule = Rule::Sgd { momentum: true, nesterov };
        let sgd = Update { rule, weight_decay: true };
        let arrange = |p, g, [buf]: [Tensor; 1], [lr, mom, damp, wd]: [Tensor; 4]| {
            vec![p, g, lr, wd, buf, mom, damp]
        };
        check::<1>(sgd, s, arrange, |p, g, [buf]| {
            let g = g + decay * *p;
            *buf = mom * *buf + (1.0 - damp) * g;
            *p -= lr * if nesterov { g + mom * *buf } else { *buf };
        });
    }
}

#[test]
fn rmsprop_and_adagrad() {
    let s = [0.1f32, 0.9, 1e-3, 0.01];
    let [lr, rho, eps, decay] = s.map(f64::from);
    let arrange = |p, g, [avg]: [Tensor; 1], [lr, rho, eps, wd]: [Tensor; 4]| {
        vec![p, g, lr, avg, rho, eps, wd]
    };
    check::<1>(Update { rule: Rule::Rmsprop, weight_decay: true }, s, arrange, |p, g, [avg]| {
        let g = g + decay * *p;
        *avg = rho * *avg + (1.0 - rho) * g * g;
        *p -= lr * g / (*avg + eps).sqrt();
    });
    let arrange = |p, g, [h]: [Tensor; 1], [lr, _, eps, _]: [Tensor; 4]| vec![p, g, lr, h, eps];
    check::<1>(Update { rule: Rule::Adagrad, weight_decay: false }, s, arrange, |p, g, [h]| {
        *h += g * g;
        *p -= lr * g / (*h + eps).sqrt();
    });
}

#[test]
fn lion() {
    let s = [0.1f32, 0.9, 0.99, 0.01];
    let [lr, beta1, beta2, decay] = s.map(f64::from);
    for weight_decay in [false, true] {
        let arrange = |p, g, [m]: [Tensor; 1], [lr, b1, b2, wd]: [Tensor; 4]| {
            let mut all = vec![p, g, lr, m, b1, b2, wd];
            all.truncate(6 + weight_decay as usize);
            all
        };
        check::<1>(Update { rule: Rule::Lion, weight_decay }, s, arrange, |p, g, [m]| {
            let decay = if weight_decay { decay } else { 0.0 };
            let mean = beta1 * *m + (1.0 - beta1) * g;
            *p -= lr * (if mean == 0.0 { mean } else { mean.signum() } + decay * *p);
            *m = beta2 * *m + (1.0 - beta2) * g;
        });
    }
}

#[test]
fn adam_and_adamw() {
    let s = [0.1f32, 0.9, 0.999, 0.01];
    let [lr, beta1, beta2, decay] = s.map(f64::from);
    let eps = 1e-3f32 as f64;
    for (decoupled, weight_decay) in [(false, false), (false, true), (true, true)] {
        let arrange = |p, g, [m, v]: [Tensor; 2], [lr, b1, b2, wd]: [Tensor; 4]| {
            let eps = Tensor::one(DType::Float32, eps);
            let mut all = vec![p, g, lr, m, v, b1, b2, eps, Tensor::one(DType::Int32, 2.0), wd];
            all.truncate(9 + weight_decay as usize);
            all
        };
        check::<2>(
            Update { rule: Rule::Adam { decoupled }, weight_decay },
            s,
            arrange,
            |p, g, [m, v]| {
                let decay = if weight_decay { decay } else { 0.0 };
                let g = if decoupled { g } else { g + decay * *p };
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                *p -= if decoupled { lr * decay * *p } else { 0.0 };
                let (m, v) = (*m / (1.0 - beta1.powi(3)), *v / (1.0 - beta2.powi(3)));
                *p -= lr * m / (v.sqrt() + eps);
            },
        );
    }
}

/// Arithmetic on denormal numbers is about twenty times slower.
#[test]
fn moments_that_would_be_denormal_are_zero() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16] {
        let wide = dtype.wide();
        let least =
            if wide == DType::Float64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let before = [least, -least, 4.0 * least, f64::NAN];
        let after = [0.0, 0.0, 2.0 * least, f64::NAN];
        let [p, g] = [1.0, 0.0].map(|v| Tensor::dense(dtype, &[4], &[v; 4]));
        let (moment, one) =
            (Tensor::dense(wide, &[4], &before), |v| Tensor::one(DType::Float32, v));
        let ([half, eps], step) = ([0.5, 1e-3].map(one), Tensor::one(DType::Int32, 0.0));
        let sgd = MOMENTUM;
        let adam = Update { rule: Rule::Adam { decoupled: false }, weight_decay: false };
        let rmsprop = Update { rule: Rule::Rmsprop, weight_decay: false };
        let updates: [(Kind, Vec<&Tensor>); 3] = [
            (sgd.into(), vec![&p, &g, &half, &moment, &half, &half]),
            (adam.into(), vec![&p, &g, &half, &moment, &moment, &half, &half, &eps, &step]),
            (rmsprop.into(), vec![&p, &g, &half, &moment, &half, &eps]),
        ];
        for (update, inputs) in updates {
            for moment in &apply_any_width(&update, &inputs).unwrap()[1..] {
                let got = moment.values().into_iter().zip(after);
                let is_equal =
                    |(got, want): (f64, f64)| got == want || got.is_nan() && want.is_nan();
                assert!(got.into_iter().all(is_equal), "{}: {moment:?}", update.family().name());
            }
        }
    }
}

/// Without an eps, small second moments are all that keeps updates finite.
#[test]
fn second_moments_stay_denormal_where_nothing_is_added_to_them() {
    let one = |v: f64| Tensor::one(DType::Float32, v);
    let (p, g, zero, half) = (one(1.0), one(1e-20), one(0.0), one(0.5));
    let step = Tensor::one(DType::Int32, 0.0);
    let adam = Update { rule: Rule::Adam { decoupled: false }, weight_decay: false };
    let inputs = [&p, &g, &half, &zero, &zero, &half, &half, &zero, &step];
    let got = apply_any_width(&adam, &inputs).unwrap();
    assert!((got[0].values()[0] - 0.5).abs() < 1e-4 && got[2].values()[0] > 0.0, "{got:?}");
    let rmsprop = Update { rule: Rule::Rmsprop, weight_decay: false };
    let got = apply_any_width(&rmsprop, &[&p, &g, &half, &zero, &half, &zero]).unwrap();
    assert!(got[0].values()[0].is_finite() && got[1].values()[0] > 0.0, "{got:?}");
}

#[test]
fn bad_inputs_are_named() {
    let sgd = SGD;
    let f32s = |shape: &[usize]| Meta::new(DType::Float32, shape);
    let error = |metas: [&Meta; 3]| sgd.infer(&metas).unwrap_err().to_string();
    let (p, lr) = (f32s(&[2, 3]), f32s(&[1]));
    assert!(error([&p, &f32s(&[3]), &lr]).contains("a gradient of shape (2, 3)"));
    assert!(error([&p, &Meta::new(DType::Float16, [2, 3]), &lr]).contains("gradient of dtype"));
    assert!(error([&p, &p, &p]).contains("input 2 of shape (1,)"));
    let expanded = Meta { strides: smallvec::smallvec![0, 1], ..p.clone() };
    assert!(error([&expanded, &p, &lr]).contains("expanded parameter"));
    assert!(matches!(sgd.infer(&[&p, &p]), Err(Error::Arity { got: 2, .. })));
}

#[test]
fn a_gradient_may_be_expanded_and_tensors_may_be_empty() {
    let sgd = SGD;
    let one = |v| Tensor::one(DType::Float32, v);
    let mut g = one(2.0);
    g.meta = Meta { strides: smallvec::smallvec![0, 0], ..Meta::new(DType::Float32, [2, 3]) };
    let p = Tensor::dense(DType::Float32, &[2, 3], &[1.0; 6]);
    let got = apply_any_width(&sgd, &[p, g, one(0.5)]).unwrap();
    assert_eq!(got[0].values(), [0.0; 6]);
    let empty = Tensor::dense(DType::Float32, &[0, 3], &[]);
    assert!(apply_any_width(&sgd, &[empty.clone(), empty, one(0.5)]).is_ok());
}

#[test]
fn a_negative_step_is_refused() {
    let adam = Update { rule: Rule::Adam { decoupled: false }, weight_decay: false };
    let one = |v| Tensor::one(DType::Float32, v);
    let step = Tensor::one(DType::Int32, -1.0);
    let inputs = [1.0, 1.0, 0.1, 0.0, 0.0, 0.9, 0.9, 1e-8].map(one);
    let inputs: Vec<Tensor> = inputs.into_iter().chain([step]).collect();
    assert!(matches!(apply_any_width(&adam, &inputs), Err(Error::Value { .. })));
}

#[test]
fn kinds_are_read_by_name() {
    let read = |text: &str| serde_json::from_str::<crate::ops::Kind>(text).unwrap().family().name();
    assert_eq!(
        read(r#"{"op":"update","f":"sgd","momentum":true,"nesterov":false,"weight_decay":true}"#),
        "sgd"
    );
    assert_eq!(read(r#"{"op":"update","f":"rmsprop","weight_decay":true}"#), "rmsprop");
    assert_eq!(read(r#"{"op":"update","f":"adagrad","weight_decay":true}"#), "adagrad");
    assert_eq!(read(r#"{"op":"update","f":"adam","decoupled":true,"weight_decay":true}"#), "adam");
}

#[test]
fn a_gradient_in_the_memory_of_its_parameter_is_read_before_it_is_written() {
    use crate::ops::{Scalar, View, copy::Fill};
    let engine = crate::engine::host();
    let full = |n: usize, value: i64| {
        let fill = Fill { value: Scalar::Int(value), shape: [n].into(), dtype: DType::Float32 };
        engine.submit(engine.turn(), &fill.into(), Default::default()).unwrap()[0].clone()
    };
    let (block, lr) = (full(6, 2), full(1, 3));
    let part = |start| {
        let range = crate::view::SliceRange { start, count: 3, step: 1 };
        block.slice(&[range]).unwrap()
    };
    let sgd = SGD.into();
    let submit = |p, g| engine.submit(engine.turn(), &sgd, smallvec::smallvec![p, g, lr.clone()]);
    submit(part(0), part(2)).unwrap();
    assert_eq!(values(&block), [-4.0, -4.0, -4.0, 2.0, 2.0, 2.0]);
    submit(part(0), part(0)).unwrap();
    assert_eq!(values(&block), [8.0, 8.0, 8.0, 2.0, 2.0, 2.0]);

    #[allow(unsafe_code)]
    fn values(view: &View) -> Vec<f32> {
        let start = view.address(false).unwrap().cast::<f32>();
        // SAFETY: the view is row-major and nothing writes to it at this point.
        unsafe { std::slice::from_raw_parts(start, view.meta.numel()) }.to_vec()
    }
}

#[test]
fn a_gradient_that_is_a_product_made_in_blocks_of_rows_is_the_same() {
    let one = |v| Tensor::one(DType::Float32, v);
    let sgd = MOMENTUM;
    let adam = Update { rule: Rule::Adam { decoupled: true }, weight_decay: true };
    let (rows, depth, columns) = (900, 37, 131);
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        let of = |shape: &[usize], seed| {
            Tensor::dense(dtype, shape, &noise(shape.iter().product(), seed))
        };
        let (p, b) = (of(&[rows, columns], 1), of(&[depth, columns], 2));
        let a =
            Tensor::strided(dtype, &[rows, depth], &[1, rows as isize], &noise(rows * depth, 3));
        let state = || Tensor::dense(dtype.wide(), &[rows, columns], &[0.5; 900 * 131]);
        let g = apply_any_width(&Matmul, &[&a, &b]).unwrap().remove(0);
        if dtype != DType::BFloat16 {
            let io = [&a.meta, &b.meta, &g.meta];
            assert!(cpu::matmul::product::is_split(io));
        }
        let [lr, half, eps] = [0.1, 0.5, 1e-6].map(one);
        let step = Tensor::one(DType::Int32, 2.0);
        let (m, v) = (state(), state());
        for (update, rest) in [
            (Kind::from(sgd.clone()), vec![&lr, &m, &half, &half]),
            (adam.clone().into(), vec![&lr, &m, &v, &half, &half, &eps, &step, &half]),
        ] {
            let apart = [&[&p, &g][..], &rest].concat();
            let want = apply_any_width(&update, &apart).unwrap();
            let fused = [&[&p, &a][..], &rest, &[&b]].concat();
            let product = Some([1, fused.len() - 1]);
            let region = updating(&update, fused.len(), product, &[]);
            assert!(apply_any_width(&region, &fused).unwrap() == want, "{dtype}");
            let metas: Vec<&Meta> = fused.iter().map(|tensor| &tensor.meta).collect();
            let is_blocked = cpu::Cpu.is_blocked(&region, &region.values(&metas).unwrap());
            assert_eq!(
                is_blocked,
                cpu::matmul::product::is_split([&a.meta, &b.meta, &g.meta]),
                "{dtype}"
            );

            // What the update checks is checked.
            if update.family().checked() == [8] {
                let negative = Tensor::one(DType::Int32, -1.0);
                let mut wrong = fused.clone();
                wrong[8] = &negative;
                let got = apply_any_width(&region, &wrong);
                assert!(matches!(got, Err(Error::Value { .. })), "{got:?}");
            }

            // With a link in between, and with that link alone.
            let neg = [Unary { f: UnaryFn::Neg }.into()];
            let turned = apply_any_width(&neg[0], &[&g]).unwrap().remove(0);
            let want = apply_any_width(&update, &[&[&p, &turned][..], &rest].concat()).unwrap();
            let region = updating(&update, fused.len(), product, &neg);
            assert!(apply_any_width(&region, &fused).unwrap() == want, "{dtype}");
            let region = updating(&update, apart.len(), None, &neg);
            assert!(apply_any_width(&region, &apart).unwrap() == want, "{dtype}");
        }
    }
}

/// An update of `inputs` inputs whose gradient is the product of two of them, or input 1, with
/// `links` in between.
fn updating(update: &Kind, inputs: usize, product: Option<[usize; 2]>, links: &[Kind]) -> Region {
    let producer =
        product.map(|factors| Box::new(Link { kind: Matmul.into(), operands: factors[..].into() }));
    let made = usize::from(producer.is_some());
    let first = if made == 1 { inputs } else { 1 };
    let link = |(i, kind): (usize, &Kind)| {
        let operand = if i == 0 { first } else { inputs + made + i - 1 };
        Link { kind: kind.clone(), operands: [operand][..].into() }
    };
    let before = made + links.len();
    let count = update.family().effects().state.len();
    let operands = (0..inputs - made).map(|i| if i == 1 { inputs + before - 1 } else { i });
    let consumer = Link { kind: update.clone(), operands: operands.collect() };
    Region {
        producer,
        consumer: Some(Box::new(consumer)),
        ..Region::of_links(
            inputs,
            links.iter().enumerate().map(link).collect(),
            (before..before + count).collect(),
        )
    }
}

use super::*;
use crate::device;
use crate::device::onednn::Propagation;
use crate::kernels::Kernel;
use crate::kernels::cpu::conv::conv_case::Case;
use crate::kernels::cpu::onednn;
use crate::ops::conv::*;
use crate::ops::geometry::Geometry;

const FLOATS: [DType; 4] = [DType::Float32, DType::BFloat16, DType::Float16, DType::Float64];

/// The results of naive loops: y, dx, dw.
fn plain(case: &Case, [x, w, dy]: &[Tensor; 3], bias: Option<&Tensor>) -> [Vec<f64>; 3] {
    let [mut y, mut dx, mut dw] = [dy, x, w].map(|t| vec![0.0; t.meta.numel()]);
    let (xs, ws, gs) = (x.values(), w.values(), dy.values());
    if let Some(bias) = bias.map(Tensor::values) {
        let plane: usize = case.output.iter().product();
        y.iter_mut().enumerate().for_each(|(i, y)| *y = bias[i / plane % bias.len()]);
    }
    case.products(|i, j, k| {
        y[k] += xs[i] * ws[j];
        dx[i] += gs[k] * ws[j];
        dw[j] += gs[k] * xs[i];
    });
    [y, dx, dw]
}

/// The operation and its two gradients.
pub fn kinds(case: &Case) -> [Kind; 3] {
    let geometry = || case.geometry.clone();
    [
        Conv { geometry: geometry() }.into(),
        ConvGradInput { geometry: geometry(), size: case.image.clone() }.into(),
        ConvGradWeight { geometry: geometry(), kernel: case.window.clone() }.into(),
    ]
}

/// Compares the three operations with naive loops on tensors of these layouts.
fn check(case: &Case, tensors: [Tensor; 3], bias: Option<Tensor>, threads: usize) {
    let wants = plain(case, &tensors, bias.as_ref());
    let [x, w, dy] = &tensors;
    let inputs = [[x, w].into_iter().chain(&bias).collect(), vec![dy, w], vec![dy, x]];
    for ((kind, inputs), want) in kinds(case).into_iter().zip(inputs).zip(wants) {
        let got = apply(&kind, &inputs, threads).unwrap();
        let metas: Vec<&Meta> = inputs.iter().map(|t| &t.meta).collect();
        let near = 4.0 * tolerance(x.meta.dtype);
        assert_near(&got[0].values(), &want, near, &format!("{kind:?} of {metas:?}"));
    }
}

#[test]
fn any_geometry_and_layout_as_plain_loops() {
    let mut random = Random::new(seed());
    for round in 0..rounds(120) {
        let case = Case::random(&mut random);
        let dtype = FLOATS[round % 4];
        let lies_anyhow = round % 3 == 0;
        let tensors = case.shapes().map(|shape| {
            let meta =
                if lies_anyhow { random.layout(dtype, &shape) } else { usual(dtype, &shape) };
            random.tensor(meta)
        });
        let bias = random.layout(dtype, &[case.channels[1]]);
        let bias = (round % 2 == 0).then(|| random.tensor(bias));
        check(&case, tensors, bias, 1 + round % 2);
    }
}

/// Sizes at which oneDNN chooses its kernels for full vectors and many blocks.
pub fn larger(random: &mut Random) -> Case {
    loop {
        let rank = [1, 2, 2, 3][random.below(4)];
        let sides: &[usize] = if rank == 3 { &[1, 5, 8, 13] } else { &[1, 5, 8, 13, 14, 28, 31] };
        let mut some = |from: &[usize]| -> Vec<usize> {
            (0..rank).map(|_| from[random.below(from.len())]).collect()
        };
        let (stride, dilation) = (some(&[1, 1, 1, 2, 2, 3]), some(&[1, 1, 1, 2, 3]));
        let (window, image) = (some(&[1, 2, 3, 3, 3, 4, 5, 7]), some(sides));
        let (before, after) = (some(&[0, 1, 1, 2, 3]), some(&[0, 1, 1, 2, 3]));
        let [is_one, is_equal] = [(); 2].map(|()| random.below(3) == 0);
        let window = if is_one { vec![1; rank] } else { window };
        let after = if is_equal { before.clone() } else { after };
        let padding = if is_one { vec![0; 2 * rank] } else { [before, after].concat() };
        let groups = [1, 1, 1, 2, 3, 16][random.below(6)];
        let mut size = || [1, 3, 4, 8, 15, 16, 17, 24, 32, 40, 64][random.below(11)];
        let each = if groups == 16 { [1 + size() % 3; 2] } else { [size(), size()] };
        let geometry = Geometry::new(&stride, &padding, &dilation, groups);
        let (n, channels) = (1 + random.below(4), each.map(|n| n * groups));
        if let Some(case) = Case::of(geometry, n, channels, &image, &window) {
            return case;
        }
    }
}

/// Compares one operation with the portable kernel in float64, relative to the largest result.
fn check_portable(kind: &Kind, inputs: &[&Tensor], threads: usize) {
    let wide =
        |t: &&Tensor| Tensor::new(Meta { dtype: DType::Float64, ..t.meta.clone() }, &t.values());
    let wides: Vec<Tensor> = inputs.iter().map(wide).collect();
    let want = apply(kind, &wides.iter().collect::<Vec<_>>(), threads).unwrap();
    let got = apply(kind, inputs, threads).unwrap();
    let (got, want) = (got[0].values(), want[0].values());
    let scale = want.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
    let near = 4.0 * tolerance(inputs[0].meta.dtype) * scale;
    let metas: Vec<&Meta> = inputs.iter().map(|t| &t.meta).collect();
    for (g, w) in got.iter().zip(&want) {
        assert!((g - w).abs() <= near, "got {g}, want {w}: {kind:?} of {metas:?}");
    }
}

#[test]
fn larger_sizes_as_in_float64() {
    let mut random = Random::new(seed());
    for round in 0..rounds(24) {
        let case = larger(&mut random);
        let (dtype, geometry) = (FLOATS[round % 3], &case.geometry);
        let [x, w, dy] = case.shapes().map(|shape| {
            let row_major = random.below(4) == 0;
            let rows = Meta::new(dtype, &shape[..]);
            let meta = if row_major { rows } else { usual(dtype, &shape) };
            random.tensor(meta)
        });
        let bias = random.tensor(Meta::new(dtype, [case.channels[1]]));
        let threads = 1 + random.below(2);
        for (kind, inputs) in kinds(&case).into_iter().zip([[&x, &w], [&dy, &w], [&dy, &x]]) {
            check_portable(&kind, &inputs, threads);
        }
        let forward = Conv { geometry: geometry.clone() }.into();
        check_portable(&forward, &[&x, &w, &bias], threads);
    }
}

/// The number of random cases; `TEST_ROUNDS` and `TEST_SEED` request a longer search.
pub fn rounds(usual: usize) -> usize {
    std::env::var("TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

pub fn seed() -> u64 {
    std::env::var("TEST_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

/// Channels-last, as are the results of other operations; close enough for weights, too.
pub fn usual(dtype: DType, shape: &[usize]) -> Meta {
    let shape = Shape::from(shape);
    Meta { dtype, strides: shape.dense_like(&channels_innermost(shape.rank())), shape }
}

/// 3x3 windows with padding, 1x1, 1x1 with stride, a network's first layers, depthwise; series, and
/// volumes.
fn usual_cases() -> Vec<Case> {
    let sizes = [
        (2, [64, 64], 56, 3, 1, 1, 1),
        (2, [64, 256], 28, 1, 1, 0, 1),
        (2, [64, 128], 28, 1, 2, 0, 1),
        (2, [3, 64], 64, 7, 2, 3, 1),
        (2, [1, 6], 28, 5, 1, 2, 1),
        (2, [6, 16], 14, 5, 1, 0, 1),
        (2, [1, 32], 28, 3, 1, 0, 1),
        (2, [32, 32], 14, 3, 1, 1, 32),
        (1, [64, 64], 256, 3, 1, 1, 1),
        (1, [1, 32], 500, 9, 2, 4, 1),
        (1, [64, 128], 256, 1, 1, 0, 1),
        (1, [64, 64], 256, 3, 1, 1, 64),
        (3, [32, 32], 12, 3, 1, 1, 1),
        (3, [1, 16], 20, 3, 2, 1, 1),
        (3, [32, 64], 10, 1, 1, 0, 1),
    ];
    let case = |(rank, channels, side, kernel, stride, pad, groups): (usize, _, _, _, _, _, _)| {
        let all = |n: usize| vec![n; rank];
        let geometry = Geometry::new(&all(stride), &vec![pad; 2 * rank], &all(1), groups);
        Case::of(geometry, 2, channels, &all(side), &all(kernel)).unwrap()
    };
    sizes.map(case).into()
}

#[test]
fn expanded_operands() {
    let case = &usual_cases()[1];
    let mut random = Random::new(22);
    let tensors = case.shapes().map(|shape| {
        let strides = smallvec::smallvec![0, 1, 0, shape[1] as isize];
        random.tensor(Meta { strides, ..Meta::new(DType::Float32, &shape[..]) })
    });
    let strides = smallvec::smallvec![0];
    let bias = Meta { strides, ..Meta::new(DType::Float32, [case.channels[1]]) };
    let bias = random.tensor(bias);
    let [x, w, dy] = &tensors;
    let inputs: [&[&Tensor]; 3] = [&[x, w, &bias], &[dy, w], &[dy, x]];
    for (kind, inputs) in kinds(case).iter().zip(inputs) {
        check_portable(kind, inputs, 2);
    }
}

#[test]
fn usual_convolutions_are_onednns() {
    if !device::onednn::is_available() {
        eprintln!("skipped: oneDNN is missing");
        return;
    }
    for case in usual_cases() {
        let [x, w, y] = case.shapes();
        let metas = [&x, &w, &y].map(|shape| usual(DType::Float32, shape));
        let rows = |shape: &[usize]| Meta::new(DType::Float32, shape);
        let (x, dw, y, bias) =
            (&metas[0], &rows(&w), &metas[2], &Meta::new(DType::Float32, [w[0]]));
        let prepare = |pass, io: &[&Meta]| {
            let made =
                onednn::conv::prepare(None, pass, &case.geometry, io, Some(Width(2))).unwrap();
            assert!(made.is_some(), "{pass:?} {:?} {io:?}", case.geometry);
            made.unwrap().to_string()
        };
        prepare(Propagation::Forward, &[x, dw, bias, y]);
        prepare(Propagation::Forward, &[&rows(&x.shape), dw, y]);
        prepare(Propagation::GradInput, &[y, dw, x]);
        let steps = prepare(Propagation::GradWeight, &[y, x, dw]);
        let copied = prepare(Propagation::GradWeight, &[&rows(&y.shape), &rows(&x.shape), dw]);
        assert!(steps.contains("gemm") || !copied.contains("gemm"), "{steps}; {copied}");
    }
}

#[test]
fn operations_read_and_print_as_data() {
    let text = r#"{"op":"conv_grad_input","stride":[1,2],"padding":[0,1,2,3],"dilation":[1,1],"groups":2,"size":[5,6]}"#;
    let kind: Kind = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&kind).unwrap(), text);
    assert_eq!(kind.family().name(), "conv2d_grad_input");
    let older = text.replace("conv_", "conv2d_");
    assert_eq!(serde_json::from_str::<Kind>(&older).unwrap(), kind);
}

#[test]
fn what_does_not_fit_is_refused() {
    let geometry = Geometry::new(&[1; 2], &[0; 4], &[1; 2], 2);
    let meta = |shape: &[usize]| Meta::new(DType::Float32, shape);
    let infer = |shapes: &[&[usize]], kind: &Kind| {
        let metas: Vec<Meta> = shapes.iter().map(|s| meta(s)).collect();
        kind.family().infer(&metas.iter().collect::<Vec<_>>()).map_err(|e| e.to_string())
    };
    let forward: Kind = Conv { geometry: geometry.clone() }.into();
    let y = infer(&[&[1, 4, 5, 5], &[6, 2, 3, 3], &[6]], &forward).unwrap();
    assert_eq!((&y[0].shape[..], &y[0].strides[..]), (&[1, 6, 3, 3][..], &[54, 1, 18, 6][..]));
    let wrong: [&[&[usize]]; 7] = [
        &[&[1, 4, 5, 5]],
        &[&[1, 4, 5, 5], &[6, 4, 3, 3]],
        &[&[1, 4, 5, 5], &[5, 2, 3, 3]],
        &[&[1, 4, 5, 5], &[6, 2, 6, 3]],
        &[&[1, 4, 5, 5], &[6, 2, 3, 3], &[1]],
        &[&[4, 5, 5], &[6, 2, 3, 3]],
        &[&[1, 4, 5], &[6, 2, 3]],
    ];
    for shapes in wrong {
        assert!(infer(shapes, &forward).unwrap_err().starts_with("conv2d: got "), "{shapes:?}");
    }
    let dx: Kind = ConvGradInput { geometry: geometry.clone(), size: [5, 5][..].into() }.into();
    assert!(infer(&[&[1, 6, 3, 4], &[6, 2, 3, 3]], &dx).is_err());
    let dw: Kind = ConvGradWeight { geometry, kernel: [3, 3][..].into() }.into();
    assert!(infer(&[&[1, 6, 3, 3], &[2, 4, 5, 5]], &dw).is_err());
}

/// Few images of many channels, whose numbers fill no blocks of packed weights.
fn deep_cases() -> impl Iterator<Item = Case> {
    let sizes = [
        (1, [128, 128], 28, 3),
        (1, [256, 100], 14, 3),
        (3, [136, 200], 7, 3),
        (1, [200, 264], 7, 3),
        (1, [64, 256], 28, 1),
        (1, [520, 136], 14, 1),
    ];
    sizes.into_iter().map(|(n, channels, side, kernel)| {
        let geometry = Geometry::new(&[1; 2], &[kernel / 2; 4], &[1; 2], 1);
        Case::of(geometry, n, channels, &[side; 2], &[kernel; 2]).unwrap()
    })
}

#[test]
fn few_images_of_many_channels_are_cut() {
    let mut random = Random::new(33);
    for case in deep_cases() {
        let [x, w, dy] = case.shapes().map(|shape| random.tensor(usual(DType::Float32, &shape)));
        let bias = random.tensor(Meta::new(DType::Float32, [case.channels[1]]));
        for (kind, inputs) in
            kinds(&case).iter().zip([&[&x, &w, &bias][..], &[&dy, &w], &[&dy, &x]])
        {
            check_portable(kind, inputs, 2);
            apply_any_width(kind, inputs).unwrap();
        }
        if device::onednn::is_available() {
            let io = [&x.meta, &w.meta, &bias.meta, &dy.meta];
            let width = Some(Width(2));
            let steps =
                onednn::conv::prepare(None, Propagation::Forward, &case.geometry, &io, width);
            let packing = steps.unwrap().unwrap().packing().unwrap();
            assert_eq!(packing.rest.threads(), 2, "{:?}", x.meta);
        }
    }
}

/// Transposed convolutions whose windows do not overlap enlarge each row by itself; others do not.
#[test]
fn rows_of_an_enlarged_image_are_cut() {
    let mut random = Random::new(34);
    for (channels, stride, kernel, padding, gap) in [
        ([24, 24], 2, 2, 0, 1),
        ([1, 24], 2, 2, 0, 1),
        ([16, 40], 4, 4, 0, 1),
        ([16, 32], 3, 2, 0, 2),
        ([24, 24], 2, 3, 1, 1),
        ([24, 24], 3, 2, 0, 1),
        ([24, 24], 2, 2, 1, 1),
    ] {
        let geometry = Geometry::new(&[stride; 2], &[padding; 4], &[gap; 2], 1);
        let case = Case::of(geometry, 1, channels, &[192, 144], &[kernel; 2]).unwrap();
        let [x, w, dy] = case.shapes().map(|shape| random.tensor(usual(DType::Float32, &shape)));
        let [_, kind, _] = kinds(&case);
        check_portable(&kind, &[&dy, &w], 2);
        let [one, many] = [1, 4].map(|threads| apply(&kind, &[&dy, &w], threads).unwrap());
        assert!(one == many, "{kind:?}");
        let is_tiled = padding == 0 && (kernel - 1) * gap + 1 == stride && channels[0] > 1;
        if is_tiled && device::onednn::is_available() {
            let (io, width) = ([&dy.meta, &w.meta, &x.meta], Some(Width(2)));
            let steps =
                onednn::conv::prepare(None, Propagation::GradInput, &case.geometry, &io, width);
            assert_eq!(steps.unwrap().unwrap().threads(), 2, "{kind:?}");
        }
    }
}

#[test]
fn padded_volumes_may_be_less_deep_than_their_windows() {
    let mut random = Random::new(35);
    for (channels, kernel, stride, padding, sides, groups) in [
        ([3, 16], [7, 7, 7], [2, 2, 2], [3, 3, 3], [6, 8, 8], 1),
        ([1, 16], [7, 7, 7], [2, 2, 2], [3, 3, 3], [7, 7, 7], 1),
        ([4, 2], [5, 5, 5], [2, 2, 2], [3, 0, 3], [3, 5, 5], 1),
        ([16, 16], [4, 3, 3], [2, 1, 1], [3, 1, 1], [3, 4, 4], 1),
        ([3, 16], [5, 5, 5], [2, 2, 2], [3, 3, 3], [5, 8, 8], 1),
        ([32, 16], [5, 5, 5], [1, 3, 3], [1, 2, 0], [4, 4, 5], 8),
    ] {
        let padding: Vec<usize> = padding.iter().chain(&padding).copied().collect();
        let geometry = Geometry::new(&stride, &padding, &[1; 3], groups);
        let case = Case::of(geometry, 2, channels, &sides, &kernel).unwrap();
        for dtype in [DType::Float32, DType::BFloat16] {
            let [x, _, dy] = case.shapes().map(|shape| random.tensor(usual(dtype, &shape)));
            let [_, _, kind] = kinds(&case);
            check_portable(&kind, &[&dy, &x], 2);
        }
    }
}

/// Where oneDNN has a layout of its own for them, they are put into rows in place, piece by piece.
#[test]
fn large_weight_gradients_are_those_of_portable_kernels() {
    let geometry = Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1);
    let case = Case::of(geometry, 2, [256, 512], &[2, 2], &[3, 3]).unwrap();
    let mut random = Random::new(31);
    let [x, _, dy] = case.shapes().map(|shape| random.tensor(usual(DType::Float32, &shape)));
    let [_, _, kind] = kinds(&case);
    check_portable(&kind, &[&dy, &x], 2);
    apply_any_width(&kind, &[&dy, &x]).unwrap();
}

use crate::dtype::DType;
use crate::error::Error;
use crate::kernels::testing::{Random, Tensor, apply, assert_near, tolerance};
use crate::ops::geometry::Geometry;
use crate::ops::pooling::{AvgPool2d, AvgPool2dGrad, MaxPool2d, MaxPool2dGrad, Window};
use crate::ops::{Family, Meta};

/// Windows, image sizes, and images times channels of a test.
struct Case {
    window: Window,
    image: [usize; 2],
    output: [usize; 2],
    counts: [usize; 2],
}

impl Case {
    fn random(random: &mut Random) -> Case {
        loop {
            let mut pair = |low: usize, n: usize| [low + random.below(n), low + random.below(n)];
            let (kernel, stride, image, counts) = (pair(1, 5), pair(1, 3), pair(1, 9), pair(0, 5));
            let (before, after) = (pair(0, 3), pair(0, 3));
            let padding = [before[0], before[1], after[0], after[1]];
            let geometry = Geometry { stride, padding, dilation: [1, 1], groups: 1 };
            let window = Window { kernel, stride, padding };
            let fits = (0..4).all(|d| padding[d] < kernel[d % 2]);
            if let (true, Ok(output)) = (fits, geometry.output("", image, kernel)) {
                return Case { window, image, output, counts };
            }
        }
    }

    fn shape(&self, plane: [usize; 2]) -> [usize; 4] {
        [self.counts[0], self.counts[1], plane[0], plane[1]]
    }

    /// For each window, row-major: its positions in the image, row-major, and within the window.
    fn windows(&self) -> Vec<Vec<(usize, usize)>> {
        let ([h, w], [oh, ow], Window { kernel, stride, padding }) =
            (self.image, self.output, &self.window);
        let planes = self.counts[0] * self.counts[1];
        let window = |index: usize| {
            let (plane, y, x) = (index / (oh * ow), index / ow % oh, index % ow);
            let taps = (0..kernel[0]).flat_map(|a| (0..kernel[1]).map(move |b| (a, b)));
            let seen = |(a, b): (usize, usize)| {
                let v = (y * stride[0] + a).wrapping_sub(padding[0]);
                let u = (x * stride[1] + b).wrapping_sub(padding[1]);
                (v < h && u < w).then(|| (plane * h * w + v * w + u, a * kernel[1] + b))
            };
            taps.filter_map(seen).collect()
        };
        (0..planes * oh * ow).map(window).collect()
    }
}

fn check_max(random: &mut Random, case: &Case, dtype: DType, threads: usize) {
    let what = format!("{dtype} {:?} image {:?}", case.window, case.image);
    let x = random.layout(dtype, &case.shape(case.image));
    let x = random.tensor(x);
    let forward = MaxPool2d { window: case.window.clone() };
    let [y, index] = apply(&forward, &[&x], threads).unwrap().try_into().ok().unwrap();
    let values = x.values();
    let (mut best, mut places, mut winners) = (Vec::new(), Vec::new(), Vec::new());
    for window in case.windows() {
        // `max_by` returns the last of equal elements.
        let greatest = window.iter().rev().max_by(|a, b| values[a.0].total_cmp(&values[b.0]));
        let (place, tap) = *greatest.unwrap();
        best.push(values[place]);
        places.push(tap as f64);
        winners.push(place);
    }
    assert_near(&y.values(), &best, 0.0, &what);
    assert_near(&index.values(), &places, 0.0, &what);
    if dtype.is_float() {
        let dy = random.layout(dtype, &case.shape(case.output));
        let dy = random.tensor(dy);
        let backward = MaxPool2dGrad { window: case.window.clone(), size: case.image };
        let dx = apply(&backward, &[&dy, &index], threads).unwrap();
        let mut want = vec![0.0; values.len()];
        dy.values().iter().zip(winners).for_each(|(dy, place)| want[place] += dy);
        assert_near(&dx[0].values(), &want, 2.0 * tolerance(dtype), &what);
    }
}

fn check_average(random: &mut Random, case: &Case, dtype: DType, threads: usize) {
    let count_include_pad = random.below(2) == 0;
    let what = format!("{dtype} {:?} image {:?} {count_include_pad}", case.window, case.image);
    let x = random.layout(dtype, &case.shape(case.image));
    let dy = random.layout(dtype, &case.shape(case.output));
    let (x, dy) = (random.tensor(x), random.tensor(dy));
    let (values, gradients) = (x.values(), dy.values());
    let (mut means, mut want) = (Vec::new(), vec![0.0; values.len()]);
    for (window, gradient) in case.windows().into_iter().zip(gradients) {
        let full = case.window.kernel[0] * case.window.kernel[1];
        let count = if count_include_pad { full } else { window.len() } as f64;
        means.push(window.iter().map(|(place, _)| values[*place]).sum::<f64>() / count);
        window.iter().for_each(|(place, _)| want[*place] += gradient / count);
    }
    let window = case.window.clone();
    let forward = AvgPool2d { window: window.clone(), count_include_pad };
    let y = apply(&forward, &[&x], threads).unwrap();
    assert_near(&y[0].values(), &means, 2.0 * tolerance(dtype), &what);
    let backward = AvgPool2dGrad { window, count_include_pad, size: case.image };
    let dx = apply(&backward, &[&dy], threads).unwrap();
    assert_near(&dx[0].values(), &want, 2.0 * tolerance(dtype), &what);
}

#[test]
fn any_window_and_layout_as_plain_loops() {
    let mut random = Random::new(21);
    for round in 0..400 {
        let case = Case::random(&mut random);
        let dtype = DType::ALL[round % 8];
        check_max(&mut random, &case, dtype, 1 + round % 3);
        if dtype.is_float() {
            check_average(&mut random, &case, dtype, 1 + round % 3);
        }
    }
}

#[test]
fn large_windows_and_many_channels() {
    let mut random = Random::new(22);
    let window = Window { kernel: [17, 18], stride: [1, 2], padding: [3, 4, 5, 6] };
    let case = Case { window, image: [20, 21], output: [12, 7], counts: [2, 70] };
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        check_max(&mut random, &case, dtype, 2);
        check_average(&mut random, &case, dtype, 2);
    }
}

#[test]
fn nan_wins_and_the_first_of_equals_counts() {
    let nan = f64::NAN;
    let values = [1.0, nan, nan, 9.0, 2.0, 2.0, f64::NEG_INFINITY, f64::NEG_INFINITY];
    let window = Window { kernel: [1, 2], stride: [1, 2], padding: [0; 4] };
    for strides in [[8, 8, 8, 1], [8, 1, 8, 1]] {
        let meta = Meta { strides: strides[..].into(), ..Meta::new(DType::Float32, [1, 1, 1, 8]) };
        let x = Tensor::new(meta, &values);
        let out = apply(&MaxPool2d { window: window.clone() }, &[&x], 1).unwrap();
        assert_near(&out[0].values(), &[nan, nan, 2.0, f64::NEG_INFINITY], 0.0, "y");
        assert_eq!(out[1].values(), [1.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn places_outside_of_the_window_are_refused() {
    let (shape, strides) = ([2, 3, 4, 70], [840, 1, 210, 3]);
    for (kernel, dtype) in [([2, 2], DType::UInt8), ([20, 20], DType::Int32)] {
        let window = Window { kernel, stride: [1; 2], padding: [0; 4] };
        let size = [0, 1].map(|d| shape[d + 2] + kernel[d] - 1);
        let (backward, taps) = (MaxPool2dGrad { window, size }, kernel[0] * kernel[1]);
        let dy = Tensor::new(Meta::new(DType::Float32, shape), &[1.0; 1680]);
        let meta = Meta { strides: strides[..].into(), ..Meta::new(dtype, shape) };
        let run = |places: &[f64]| apply(&backward, &[&dy, &Tensor::new(meta.clone(), places)], 2);
        let mut places = vec![taps as f64 - 1.0; 1680];
        assert!(run(&places).is_ok());
        let wrong = [taps as i64, 200 + taps as i64 / 2];
        for bad in wrong.into_iter().chain((dtype == DType::Int32).then_some(-1)) {
            places[1003] = bad as f64;
            let index = bad;
            let want = Error::Index { op: "max_pool2d_grad".into(), index, size: taps };
            assert_eq!(run(&places).err().map(|e| e.to_string()), Some(want.to_string()));
        }
    }
}

#[test]
fn channels_last_stays_channels_last() {
    let shape = [2, 3, 4, 4];
    let nhwc = Meta { strides: [48, 1, 12, 3][..].into(), ..Meta::new(DType::Float32, shape) };
    let window = Window { kernel: [2; 2], stride: [2; 2], padding: [0; 4] };
    let out = MaxPool2d { window }.infer(&[&nhwc]).unwrap();
    assert_eq!(out[0].strides.as_slice(), [12, 1, 6, 3]);
    assert_eq!(out[1].strides, out[0].strides);
}

#[test]
fn bad_windows_are_refused() {
    let x = Meta::new(DType::Float32, [1, 1, 4, 4]);
    let refused = |kernel, stride, padding, x: &Meta| {
        MaxPool2d { window: Window { kernel, stride, padding } }.infer(&[x]).is_err()
    };
    assert!(refused([2, 2], [1, 1], [2, 0, 0, 0], &x));
    assert!(refused([2, 2], [1, 1], [0, 0, 0, 2], &x));
    assert!(refused([5, 2], [1, 1], [0; 4], &x));
    assert!(refused([2, 2], [0, 1], [0; 4], &x));
    assert!(refused([2, 2], [1, 1], [1; 4], &Meta::new(DType::Float32, [1, 1, 0, 4])));
    assert!(refused([2, 2], [1, 1], [0; 4], &Meta::new(DType::Float32, [1, 4, 4])));
    assert!(!refused([2, 2], [1, 1], [1; 4], &Meta::new(DType::Float32, [0, 1, 4, 4])));
}

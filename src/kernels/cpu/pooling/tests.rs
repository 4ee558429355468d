use crate::dtype::DType;
use crate::error::Error;
use crate::kernels::cpu::conv::conv_case::all;
use crate::kernels::testing::{Random, Tensor, apply, assert_near, tolerance};
use crate::ops::geometry::{Axes, Geometry, Last};
use crate::ops::pooling::{AvgPool, AvgPoolGrad, MaxPool, MaxPoolGrad, Mean, Window};
use crate::ops::{Family, Meta};

/// Windows, image sizes, and images times channels of a test.
struct Case {
    window: Window,
    image: Vec<usize>,
    output: Axes,
    counts: [usize; 2],
}

/// What one window sees: positions in the image and within the window, and how many of its
/// positions are within the padded image.
struct Seen {
    taps: Vec<(usize, usize)>,
    padded: usize,
}

impl Case {
    /// Random valid sizes, with one to three spatial axes; a dilation where `is_max`.
    fn random(random: &mut Random, is_max: bool) -> Case {
        loop {
            let rank = 1 + random.below(3);
            let mut some = |count: usize, low: usize, n: usize| -> Vec<usize> {
                (0..count).map(|_| low + random.below(n)).collect()
            };
            let largest = [12, 9, 6][rank - 1];
            let (kernel, stride, image) =
                (some(rank, 1, 5), some(rank, 1, 3), some(rank, 1, largest));
            let (padding, dilation) = (some(2 * rank, 0, 3), some(rank, 1, 3));
            let mut window = Window::new(&kernel, &stride, &padding);
            window.ceil_mode = random.below(2) == 0;
            if is_max && random.below(2) == 0 {
                window.dilation = dilation[..].into();
            }
            let counts = [random.below(5), random.below(5)];
            if let Ok(output) = window.over("", &image) {
                return Case { window, image, output, counts };
            }
        }
    }

    fn shape(&self, extents: &[usize]) -> Vec<usize> {
        [&self.counts[..], extents].concat()
    }

    /// For each window, row-major: what it sees.
    fn windows(&self) -> Vec<Seen> {
        let Window { kernel, stride, padding, .. } = &self.window;
        let (rank, image) = (self.image.len(), &self.image);
        let size: usize = image.iter().product();
        let window = |to: Vec<usize>| {
            let mut seen = Seen { taps: Vec::new(), padded: 0 };
            for (number, tap) in all(kernel).enumerate() {
                let at = |d: usize| to[d + 1] * stride[d] + tap[d] * self.window.dilation(d);
                let end = |d: usize| padding[d] + image[d];
                if (0..rank).all(|d| at(d) < end(d) + padding[rank + d]) {
                    seen.padded += 1;
                }
                if (0..rank).all(|d| at(d) >= padding[d] && at(d) < end(d)) {
                    let place = (0..rank).fold(0, |p, d| p * image[d] + at(d) - padding[d]);
                    seen.taps.push((to[0] * size + place, number));
                }
            }
            seen
        };
        let planes = [self.counts[0] * self.counts[1]];
        all(&[&planes[..], &self.output].concat()).map(window).collect()
    }
}

fn check_max(random: &mut Random, case: &Case, dtype: DType, threads: usize) {
    let what = format!("{dtype} {:?} image {:?}", case.window, case.image);
    let x = random.layout(dtype, &case.shape(&case.image));
    let x = random.tensor(x);
    let forward = MaxPool { window: case.window.clone() };
    let [y, index] = apply(&forward, &[&x], threads).unwrap().try_into().ok().unwrap();
    let values = x.values();
    let (mut best, mut places, mut winners) = (Vec::new(), Vec::new(), Vec::new());
    for Seen { taps: window, .. } in case.windows() {
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
        let dy = random.layout(dtype, &case.shape(&case.output));
        let dy = random.tensor(dy);
        let backward = MaxPoolGrad { window: case.window.clone(), size: case.image[..].into() };
        let dx = apply(&backward, &[&dy, &index], threads).unwrap();
        let mut want = vec![0.0; values.len()];
        dy.values().iter().zip(winners).for_each(|(dy, place)| want[place] += dy);
        assert_near(&dx[0].values(), &want, 2.0 * tolerance(dtype), &what);
    }
}

fn check_average(random: &mut Random, case: &Case, dtype: DType, threads: usize) {
    let divisor = (random.below(3) == 0).then(|| 1 + random.below(9));
    let mean = Mean { count_include_pad: random.below(2) == 0, divisor };
    let what = format!("{dtype} {:?} image {:?} {mean:?}", case.window, case.image);
    let x = random.layout(dtype, &case.shape(&case.image));
    let dy = random.layout(dtype, &case.shape(&case.output));
    let (x, dy) = (random.tensor(x), random.tensor(dy));
    let (values, gradients) = (x.values(), dy.values());
    let (mut means, mut want) = (Vec::new(), vec![0.0; values.len()]);
    for (Seen { taps, padded }, gradient) in case.windows().into_iter().zip(gradients) {
        let count = if mean.count_include_pad { padded } else { taps.len() };
        let count = divisor.unwrap_or(count) as f64;
        means.push(taps.iter().map(|(place, _)| values[*place]).sum::<f64>() / count);
        taps.iter().for_each(|(place, _)| want[*place] += gradient / count);
    }
    // Sums that are divided by little are as large as they were.
    let near =
        2.0 * tolerance(dtype) * divisor.map_or(1.0, |n| (case.window.taps() / n).max(1) as f64);
    let forward = AvgPool { window: case.window.clone(), mean: mean.clone() };
    let y = apply(&forward, &[&x], threads).unwrap();
    assert_near(&y[0].values(), &means, near, &what);
    let size = case.image[..].into();
    let backward = AvgPoolGrad { window: case.window.clone(), mean, size };
    let dx = apply(&backward, &[&dy], threads).unwrap();
    assert_near(&dx[0].values(), &want, near, &what);
}

#[test]
fn any_window_and_layout_as_plain_loops() {
    let mut random = Random::new(21);
    for round in 0..400 {
        let dtype = DType::COMPUTED[round % 8];
        let case = Case::random(&mut random, true);
        check_max(&mut random, &case, dtype, 1 + round % 3);
        if dtype.is_float() {
            let case = Case::random(&mut random, false);
            check_average(&mut random, &case, dtype, 1 + round % 3);
        }
    }
}

#[test]
fn large_windows_and_many_channels() {
    let mut random = Random::new(22);
    let window = Window::new(&[17, 18], &[1, 2], &[3, 4, 5, 6]);
    let output = [12, 7][..].into();
    let case = Case { window, image: vec![20, 21], output, counts: [2, 70] };
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        check_max(&mut random, &case, dtype, 2);
        check_average(&mut random, &case, dtype, 2);
    }
}

#[test]
fn nan_wins_and_the_first_of_equals_counts() {
    let nan = f64::NAN;
    let values = [1.0, nan, nan, 9.0, 2.0, 2.0, f64::NEG_INFINITY, f64::NEG_INFINITY];
    let window = Window::new(&[1, 2], &[1, 2], &[0; 4]);
    for strides in [[8, 8, 8, 1], [8, 1, 8, 1]] {
        let meta = Meta { strides: strides[..].into(), ..Meta::new(DType::Float32, [1, 1, 1, 8]) };
        let x = Tensor::new(meta, &values);
        let out = apply(&MaxPool { window: window.clone() }, &[&x], 1).unwrap();
        assert_near(&out[0].values(), &[nan, nan, 2.0, f64::NEG_INFINITY], 0.0, "y");
        assert_eq!(out[1].values(), [1.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn places_outside_of_the_window_are_refused() {
    let (shape, strides) = ([2, 3, 4, 70], [840, 1, 210, 3]);
    for (kernel, dtype) in [([2, 2], DType::UInt8), ([20, 20], DType::Int32)] {
        let window = Window::new(&kernel, &[1; 2], &[0; 4]);
        let size = [0, 1].map(|d| shape[d + 2] + kernel[d] - 1)[..].into();
        let (backward, taps) = (MaxPoolGrad { window, size }, kernel[0] * kernel[1]);
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
    let window = Window::new(&[2; 2], &[2; 2], &[0; 4]);
    let out = MaxPool { window }.infer(&[&nhwc]).unwrap();
    assert_eq!(out[0].strides.as_slice(), [12, 1, 6, 3]);
    assert_eq!(out[1].strides, out[0].strides);
}

#[test]
fn windows_that_start_inside_count_with_ceil_mode() {
    let places = |kernel, stride, padding: [usize; 2], image| {
        let mut window = Window::new(&[kernel], &[stride], &padding);
        window.ceil_mode = true;
        window.over("", &[image]).unwrap()[0]
    };
    assert_eq!(places(2, 2, [0, 0], 5), 3);
    assert_eq!(places(3, 2, [0, 0], 2), 1, "a window larger than the image");
    assert_eq!(places(2, 3, [0, 1], 3), 1, "a window within the padding after the image");
    assert_eq!(places(1, 2, [0, 0], 4), 2, "a window behind the image");
}

#[test]
fn bad_windows_are_refused() {
    let x = Meta::new(DType::Float32, [1, 1, 4, 4]);
    let refused = |window: Window, x: &Meta| MaxPool { window }.infer(&[x]).is_err();
    let plain = |kernel: [usize; 2], stride: [usize; 2], padding: [usize; 4]| {
        Window::new(&kernel, &stride, &padding)
    };
    assert!(refused(plain([2, 2], [1, 1], [2, 0, 0, 0]), &x));
    assert!(refused(plain([2, 2], [1, 1], [0, 0, 0, 2]), &x));
    assert!(refused(plain([5, 2], [1, 1], [0; 4]), &x));
    assert!(refused(plain([2, 2], [0, 1], [0; 4]), &x));
    assert!(refused(plain([2, 2], [1, 1], [1; 4]), &Meta::new(DType::Float32, [1, 1, 0, 4])));
    assert!(refused(plain([2, 2], [1, 1], [0; 4]), &Meta::new(DType::Float32, [1, 4, 4])));
    assert!(!refused(plain([2, 2], [1, 1], [1; 4]), &Meta::new(DType::Float32, [0, 1, 4, 4])));
    assert!(refused(Window::new(&[2], &[1, 1], &[1; 4]), &x));
    assert!(refused(Window::new(&[2, 2], &[1, 1], &[1; 2]), &x));
    let dilated = Window { dilation: [3][..].into(), ..Window::new(&[2], &[1], &[1, 1]) };
    let series = |length| Meta::new(DType::Float32, [1, 1, length]);
    assert!(refused(dilated.clone(), &series(2)), "a window with the image between its taps");
    assert!(!refused(dilated, &series(3)));
}

#[test]
fn windows_that_see_nothing_are_refused() {
    let cases = all(&[4, 3, 6, 6, 6, 5, 2]).map(|at| <[usize; 7]>::try_from(at).unwrap());
    let (mut accepted, mut refused) = (0, 0);
    for [k, s, before, after, step, image, ceil] in cases {
        let (kernel, stride, dilation, image) = (k + 1, s + 1, step + 1, image + 1);
        let window = Window {
            dilation: [dilation][..].into(),
            ceil_mode: ceil == 1,
            ..Window::new(&[kernel], &[stride], &[before, after])
        };
        let last = if window.ceil_mode { Last::Started } else { Last::Whole };
        let geometry = Geometry::new(&[stride], &[before, after], &[dilation], 1);
        let Ok(count) = geometry.places("", &[image], &[kernel], last) else { continue };
        if before.max(after) > dilation * k {
            continue;
        }
        let is_within = |place: usize| (before..before + image).contains(&place);
        let sees = |n: usize| (0..kernel).any(|tap| is_within(n * stride + tap * dilation));
        let want = (0..count[0]).all(sees);
        assert_eq!(window.over("", &[image]).is_ok(), want, "{window:?} on {image}");
        *(if want { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(accepted > 1000 && refused > 100, "{accepted} and {refused}");
}

#[test]
fn long_images_are_checked_at_once() {
    let long = 1 << 40;
    let dilated = |dilation: usize, padding: usize| Window {
        dilation: [dilation][..].into(),
        ..Window::new(&[2], &[1], &[padding, padding])
    };
    assert_eq!(dilated(2, 0).over("", &[long]).unwrap()[0], long - 2);
    assert!(dilated(2 * long, long).over("", &[long]).is_err());
}

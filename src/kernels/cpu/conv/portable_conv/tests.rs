use super::*;
use crate::kernels::cpu::conv::conv_case::Case;
use crate::kernels::testing::{Random, Tensor, assert_near, run, tolerance};

const FLOATS: [DType; 4] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];

fn check(random: &mut Random, case: &Case, dtype: DType, threads: usize) {
    let tensors = case.shapes().map(|shape| {
        let meta = random.layout(dtype, &shape);
        random.tensor(meta)
    });
    let [x, w, dy] = &tensors;
    let bias = random.layout(dtype, &[case.channels[1]]);
    let bias = random.tensor(bias);
    let [mut y, mut dx, mut dw] = [dy, x, w].map(|t| vec![0.0; t.meta.numel()]);
    let (xs, ws, gs, bs) = (x.values(), w.values(), dy.values(), bias.values());
    let plane: usize = case.output.iter().product();
    y.iter_mut().enumerate().for_each(|(i, y)| *y = bs[i / plane % bs.len()]);
    case.products(|i, j, k| {
        y[k] += xs[i] * ws[j];
        dx[i] += gs[k] * ws[j];
        dw[j] += gs[k] * xs[i];
    });
    let g = &case.geometry;
    let near = |got: Vec<Tensor>, want: &[f64], what: &str| {
        let what = format!("{what} {dtype} {g:?} {:?} {:?}", x.meta, w.meta);
        assert_near(&got[0].values(), want, 4.0 * tolerance(dtype), &what);
    };
    let out = [dy, x, w].map(|t| random.layout(dtype, &t.meta.shape));
    let width = Width(threads);
    let kernel = forward(g, &[&x.meta, &w.meta, &bias.meta, &out[0]], width).unwrap();
    near(run(&*kernel, &[x, w, &bias], &out[..1]).unwrap(), &y, "forward");
    let kernel = grad_input(g, &[&dy.meta, &w.meta, &out[1]], width).unwrap();
    near(run(&*kernel, &[dy, w], &out[1..2]).unwrap(), &dx, "grad_input");
    let kernel = grad_weight(g, &[&dy.meta, &x.meta, &out[2]], width).unwrap();
    near(run(&*kernel, &[dy, x], &out[2..]).unwrap(), &dw, "grad_weight");
}

#[test]
fn any_geometry_and_layout_as_plain_loops() {
    let mut random = Random::new(11);
    for round in 0..80 {
        let case = Case::random(&mut random);
        check(&mut random, &case, FLOATS[round % 4], 1 + round % 3);
    }
}

fn large() -> Case {
    let geometry = Geometry::new(&[2, 1], &[1, 1, 1, 1], &[1, 1], 2);
    Case::of(geometry, 3, [34, 40], &[40, 41], &[3, 3]).unwrap()
}

#[test]
fn many_blocks_as_plain_loops() {
    check(&mut Random::new(12), &large(), DType::Float32, 2);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (mut random, case) = (Random::new(13), large());
    let [x, w, dy] =
        case.shapes().map(|shape| random.tensor(Meta::new(DType::Float32, &shape[..])));
    let g = &case.geometry;
    let results = |threads: usize| {
        let width = Width(threads);
        let y = forward(g, &[&x.meta, &w.meta, &dy.meta], width).unwrap();
        let dx = grad_input(g, &[&dy.meta, &w.meta, &x.meta], width).unwrap();
        let dw = grad_weight(g, &[&dy.meta, &x.meta, &w.meta], width).unwrap();
        let one = |k: &dyn Kernel, inputs: &[&Tensor], out: &Meta| {
            run(k, inputs, std::slice::from_ref(out)).unwrap()[0].values()
        };
        [
            one(&*y, &[&x, &w], &dy.meta),
            one(&*dx, &[&dy, &w], &x.meta),
            one(&*dw, &[&dy, &x], &w.meta),
        ]
    };
    assert_eq!(results(1), results(2));
    assert_eq!(results(1), results(9));
}

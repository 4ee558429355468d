//! Recurrences in every form: half precision beside float64, any layout, any number of threads, in
//! place, blocks of rows with a shorter last one. Values are compared with NumPy in Python.

use super::*;
use crate::ops::recurrent::{Cell, Form, Part, Parts, Recurrent, RecurrentGrad, Sizes};

fn forms() -> Vec<Form> {
    let cells = [Cell::Tanh, Cell::Relu, Cell::Lstm, Cell::Gru, Cell::LinearGru];
    let plain =
        |cell| Form { cell, reverse: false, peepholes: false, projection: false, lengths: false };
    let turned = |cell| Form { reverse: true, lengths: true, ..plain(cell) };
    let all = Form { peepholes: true, projection: true, ..turned(Cell::Lstm) };
    cells.into_iter().flat_map(|cell| [plain(cell), turned(cell)]).chain([all]).collect()
}

fn sizes(form: &Form, rows: usize, units: usize) -> Sizes {
    Sizes { steps: 5, rows, units, state: if form.projection { 3 } else { units } }
}

/// Small numbers, or lengths from 0 on.
fn tensor(form: &Form, part: Part, sizes: &Sizes, dtype: DType, seed: u64) -> Tensor {
    let meta = form.meta(part, sizes, dtype);
    let count = meta.numel();
    let values: Vec<f64> = match part {
        Part::Lengths => (0..count).map(|i| (i % (sizes.steps + 1)) as f64).collect(),
        Part::Weight | Part::Projection => noise(count, seed).iter().map(|v| v * 0.3).collect(),
        _ => noise(count, seed),
    };
    Tensor::new(meta, &values)
}

fn tensors(form: &Form, parts: &Parts, sizes: &Sizes, dtype: DType) -> Vec<Tensor> {
    let numbered = parts.iter().enumerate();
    numbered.map(|(i, &part)| tensor(form, part, sizes, dtype, i as u64 + 1)).collect()
}

/// The inputs of the gradient: gradients, and what forward made of `inputs`.
fn saved(form: &Form, inputs: &[Tensor], made: &[Tensor], sizes: &Sizes) -> Vec<Tensor> {
    let op = Recurrent { form: *form };
    let count = usize::from(form.has_cell()) + 2;
    let dtype = inputs[0].meta.dtype;
    let find = |parts: &Parts, part: Part| parts.iter().position(|one| *one == part);
    let parts = RecurrentGrad { form: *form }.inputs();
    let each = parts.iter().enumerate().map(|(i, &part)| match part {
        _ if i < count => tensor(form, part, sizes, dtype, 20 + i as u64),
        Part::Gates | Part::States | Part::Cells => {
            made[find(&op.outputs(), part).unwrap()].clone()
        }
        _ => inputs[find(&op.inputs(), part).unwrap()].clone(),
    });
    each.collect()
}

#[test]
fn every_form_on_any_number_of_threads() {
    for form in forms() {
        for (rows, units) in [(1, 3), (37, 8)] {
            let sizes = sizes(&form, rows, units);
            let op = Recurrent { form };
            let inputs = tensors(&form, &op.inputs(), &sizes, DType::Float32);
            let made = apply_any_width(&op, &inputs).unwrap();
            let back = saved(&form, &inputs, &made, &sizes);
            apply_any_width(&RecurrentGrad { form }, &back).unwrap();
        }
    }
}

/// Weights as ONNX has them, (columns, state).
#[test]
fn transposed_weights_are_packed() {
    for form in forms() {
        let (op, mut random) = (Recurrent { form }, Random::new(4));
        let mut inputs = tensors(&form, &op.inputs(), &sizes(&form, 3, 4), DType::Float32);
        let threads = 2;
        assert!(!packed::check(op.clone(), &inputs.iter().collect::<Vec<_>>(), threads));
        let shape = inputs[1].meta.shape.clone();
        let strides = [1, shape[0] as isize][..].into();
        inputs[1] = random.tensor(Meta { dtype: DType::Float32, shape, strides });
        assert!(packed::check(op, &inputs.iter().collect::<Vec<_>>(), threads), "{form:?}");
    }
}

#[test]
fn large_products_and_short_types_are_near_float64() {
    for form in forms() {
        let sizes = sizes(&form, 18, 72);
        let op = Recurrent { form };
        let run = |dtype| {
            let inputs = tensors(&form, &op.inputs(), &sizes, dtype);
            let made = apply(&op, &inputs, 2).unwrap();
            let back = saved(&form, &inputs, &made, &sizes);
            (made, apply(&RecurrentGrad { form }, &back, 2).unwrap())
        };
        let want = run(DType::Float64);
        for (dtype, tolerance) in [(DType::Float32, 1e-3), (DType::BFloat16, 0.5)] {
            let got = run(dtype);
            for (got, want) in got.0.iter().chain(&got.1).zip(want.0.iter().chain(&want.1)) {
                let most = want.values().iter().fold(1.0, |a: f64, b| a.max(b.abs()));
                let scaled = |t: &Tensor| t.values().iter().map(|v| v / most).collect::<Vec<_>>();
                assert_near(&scaled(got), &scaled(want), tolerance, "a recurrence");
            }
        }
    }
}

#[test]
fn lengths_are_checked_before_anything_is_written() {
    let form = Form { lengths: true, ..forms()[4] };
    let sizes = sizes(&form, 2, 3);
    let op = Recurrent { form };
    let mut inputs = tensors(&form, &op.inputs(), &sizes, DType::Float32);
    for wrong in [-1.0, 6.0] {
        *inputs.last_mut().unwrap() = Tensor::dense(DType::Int64, &[2], &[1.0, wrong]);
        let error = apply(&op, &inputs, 1).unwrap_err().to_string();
        assert!(error.contains("lstm") && error.contains("from 0 to 5"), "{error}");
    }
}

#[test]
fn one_row_runs_on_one_thread_also_where_lengths_are_checked() {
    for form in forms() {
        let sizes = sizes(&form, 1, 64);
        let op = Recurrent { form };
        let inputs = tensors(&form, &op.inputs(), &sizes, DType::Float32);
        let metas: Vec<&Meta> = inputs.iter().map(|tensor| &tensor.meta).collect();
        let outputs = op.infer(&metas).unwrap();
        let io: Vec<&Meta> = metas.into_iter().chain(&outputs).collect();
        let kernel = cpu::Cpu.prepare(&op.into(), &io, Width(4)).unwrap();
        assert_eq!(kernel.threads(), 1, "{form:?}");
    }
}

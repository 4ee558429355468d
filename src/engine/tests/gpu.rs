//! Engines of an emulated GPU.

use super::*;
use crate::device::cuda::{self, emulated};
use crate::kernels;
use crate::ops::copy::{Cast, Convert, Copy};

/// An engine of a GPU whose driver is emulated.
pub fn engine() -> Engine {
    let number = kernels::gpu::Gpu::emulated().unwrap().device.id();
    let engine = Engine::new(cuda::device(number, emulated::driver()));
    Engine { poisons: true, ..engine }
}

/// The engine of that GPU that finds itself by its device.
fn started() -> &'static Engine {
    let device = kernels::gpu::Gpu::emulated().unwrap().device;
    super::super::start(&device);
    of(&device).unwrap()
}

#[test]
fn tensors_go_there_and_back() {
    let engine = engine();
    let x = tensor(&engine, &[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = run(&engine, binary("mul"), &[&x, &x]).unwrap();
    assert_eq!(values::<f32>(&y[0]), [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]);
}

#[test]
fn what_is_out_of_range_is_named_before_anything_is_written() {
    let engine = engine();
    let a = tensor(&engine, &[3], &[6i32, 7, 8]);
    let b = tensor(&engine, &[3], &[2i32, 0, 4]);
    let error = run(&engine, binary("floor_divide"), &[&a, &b]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "floor_divide: got an integer divided by zero, want divisors other than zero"
    );
}

#[test]
fn elements_are_converted_on_their_way_to_another_device() {
    let gpu = started();
    let x = tensor(host(), &[2, 2], &[1f64, 2.0, 3.0, 4.0]);
    let y = tensor(gpu, &[2, 2], &[0f32; 4]);
    let turned = y.permute(&[1, 0]).unwrap();
    for (to, want) in [(&y, [1.0, 2.0, 3.0, 4.0]), (&turned, [1.0, 3.0, 2.0, 4.0])] {
        run_into(gpu, Convert { dtype: DType::Float32 }, &[&x], &[to]).unwrap();
        assert_eq!(values::<f32>(&y), want);
    }
    let (big, back) = (tensor(gpu, &[1], &[300i32]), tensor(host(), &[1], &[7i8]));
    let error = run_into(host(), Convert { dtype: DType::Int8 }, &[&big], &[&back]).unwrap_err();
    assert!(error.to_string().starts_with("convert: "), "{error}");
    assert_eq!(values::<i8>(&back), [7]);
    run_into(host(), Cast { dtype: DType::Int8 }, &[&big], &[&back]).unwrap();
    assert_eq!(values::<i8>(&back), [44]);
}

#[test]
fn what_another_device_gives_has_the_shape_and_dtype_of_its_place() {
    let gpu = started();
    let place = tensor(gpu, &[6], &[9f32; 6]);
    let to = place.slice(&[crate::view::SliceRange { start: 0, count: 2, step: 1 }]).unwrap();
    let refused = |from: &View, to: &View| {
        let error = run_into(gpu, Copy, &[from], &[to]).unwrap_err().to_string();
        assert!(error.starts_with("copy: "), "{error}");
        assert_eq!(values::<f32>(&place), [9.0; 6]);
    };
    for length in [1, 3, 100] {
        refused(&tensor(host(), &[length], &vec![1f32; length]), &to);
    }
    refused(&tensor(host(), &[2], &[1f64; 2]), &to);
    let repeated = tensor(gpu, &[1], &[9f32]).expand(&[2].into_iter().collect()).unwrap();
    refused(&tensor(host(), &[2], &[1f32; 2]), &repeated);
}

#[test]
fn operations_without_a_kernel_are_refused_by_name() {
    let engine = engine();
    let x = tensor(&engine, &[2, 2], &[3f32, 1.0, 2.0, 0.0]);
    let inverse: Kind = serde_json::from_value(json!({"op": "linalg", "f": "inv"})).unwrap();
    let error = run(&engine, inverse, &[&x]).unwrap_err();
    assert!(error.to_string().contains("no kernel for GPUs"), "{error}");
}

#[test]
fn what_is_not_finite_is_found() {
    finds_what_is_not_finite(&engine());
}

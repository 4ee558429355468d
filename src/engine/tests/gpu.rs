//! Engines of an emulated GPU.

use super::*;
use crate::device::cuda::{self, emulated};
use crate::kernels;

/// An engine of a GPU whose driver is emulated.
pub fn engine() -> Engine {
    let number = kernels::gpu::Gpu::emulated().unwrap().device.id();
    let engine = Engine::new(cuda::device(number, emulated::driver()));
    Engine { poisons: true, ..engine }
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

//! What elementwise operations have in common: the shape and memory order of their results, and
//! scalars converted to elements.

use super::{Meta, Scalar, check_dtypes};
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::view;

/// The common shape of all operands under NumPy's rules.
///
/// # Errors
/// [`Error::Shape`] with all the shapes where they do not broadcast together.
pub fn common_shape(op: &'static str, inputs: &[&Meta]) -> Result<Shape> {
    let mut shapes = inputs.iter().map(|m| &m.shape);
    let first = shapes.next().cloned().unwrap_or_default();
    let joined = shapes.try_fold(first, |a, b| Shape::broadcast(op, &a, b));
    let all = || inputs.iter().map(|m| &m.shape);
    joined.map_err(|_| Error::shape(op, all(), "shapes that broadcast together"))
}

/// A dense result in the memory order of the first input that has the result's shape and no
/// repeated elements; row-major if there is none.
pub fn result(dtype: DType, shape: Shape, inputs: &[&Meta]) -> Meta {
    match inputs.iter().find(|m| m.shape == shape && !view::repeats(m)) {
        Some(meta) => meta.like(dtype),
        None => Meta::new(dtype, shape),
    }
}

/// An error unless all inputs have one dtype.
///
/// # Errors
/// [`Error::DType`] with all dtypes.
pub fn same_dtype(op: &'static str, inputs: &[&Meta]) -> Result<()> {
    check_dtypes(op, inputs, |_| true, "tensors of one dtype")
}

/// A scalar converted to an element of the tensor's dtype.
///
/// # Errors
/// [`Error::DType`] for a fractional number, a NaN or an infinity with an integer dtype;
/// [`Error::Value`] for a value outside the range of an integer dtype, for a boolean other than 0
/// and 1, and for a finite value that overflows a float dtype.
pub fn element<T: Element>(op: &'static str, scalar: Scalar) -> Result<T> {
    let dtype = T::DTYPE;
    if dtype.is_float() {
        let (element, value) = (scalar.element::<T>(), scalar.to_f64());
        let fits = element.to_f64().is_finite() || !value.is_finite();
        crate::ensure!(fits, out_of_range(op, value, dtype));
        return Ok(element);
    }
    let value = match scalar {
        Scalar::Int(value) => value,
        Scalar::Real(real) => {
            let whole = real.0.trunc() == real.0 && real.0.is_finite();
            let want = || format!("a whole number for {dtype}, not {}: cast first", real.0);
            crate::ensure!(whole, Error::dtype(op, [dtype], want()));
            crate::ensure!(
                real.0.abs() < i64::MAX as f64 || real.0 == i64::MIN as f64,
                out_of_range(op, real.0, dtype)
            );
            real.0 as i64
        }
    };
    let element = T::from_i64(value);
    crate::ensure!(element.to_i128() == value as i128, out_of_range(op, value, dtype));
    Ok(element)
}

fn out_of_range(op: &'static str, value: impl std::fmt::Display, dtype: DType) -> Error {
    Error::value(op, value, format!("a number that {dtype} holds"))
}

/// The truth value of a scalar, for logical operations on tensors of any dtype.
pub fn truth(scalar: Scalar) -> Bool {
    match scalar {
        Scalar::Int(value) => value != 0,
        Scalar::Real(real) => real.0 != 0.0,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Real;

    #[test]
    fn results_keep_the_order_of_an_input_that_is_not_repeated() {
        let last = Meta { strides: smallvec::smallvec![1, 2], ..Meta::new(DType::Float32, [2, 3]) };
        let wide = Meta { strides: smallvec::smallvec![0, 1], ..Meta::new(DType::Float32, [2, 3]) };
        let made = |inputs: &[&Meta]| result(DType::Bool, [2, 3].into(), inputs).strides;
        assert_eq!(made(&[&wide, &last]).as_slice(), &[1, 2]);
        assert_eq!(made(&[&wide]).as_slice(), &[3, 1]);
    }

    #[test]
    fn scalars_must_fit() {
        let real = |v| Scalar::Real(Real(v));
        assert_eq!(element::<i8>("add", Scalar::Int(-128)).unwrap(), -128);
        assert_eq!(element::<u8>("add", real(255.0)).unwrap(), 255);
        assert!(matches!(element::<u64>("fill", Scalar::Int(-1)), Err(Error::Value { .. })));
        assert!(matches!(element::<u8>("add", Scalar::Int(256)), Err(Error::Value { .. })));
        assert!(matches!(element::<i32>("add", real(0.5)), Err(Error::DType { .. })));
        assert!(matches!(element::<i64>("add", real(f64::NAN)), Err(Error::DType { .. })));
        assert!(matches!(element::<i64>("add", real(9.3e18)), Err(Error::Value { .. })));
        assert!(matches!(element::<Bool>("add", Scalar::Int(2)), Err(Error::Value { .. })));
        assert_eq!(element::<f32>("add", real(0.1)).unwrap(), 0.1);
        assert!(element::<f32>("add", real(f64::NEG_INFINITY)).unwrap().is_infinite());
        assert!(element::<f32>("add", real(f64::NAN)).unwrap().is_nan());
        assert!(matches!(element::<f32>("add", real(1e39)), Err(Error::Value { .. })));
        let half = element::<half::f16>("add", Scalar::Int(65_520));
        assert!(matches!(half, Err(Error::Value { .. })));
        assert!(truth(real(1e-300)).get() && truth(real(f64::NAN)).get());
    }
}

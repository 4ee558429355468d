//! Linear algebra, on matrices that have a result whatever a program's tensors hold.

use serde_json::json;

use super::Sketch;

/// Zeros and ones.
fn flags(s: &mut Sketch, shape: &[usize]) -> Option<usize> {
    let truths = s.truths(shape)?;
    s.op(json!({"op": "cast", "dtype": "float32"}), &[truths])
}

fn linalg(s: &mut Sketch, functions: &[&str], from: usize) -> Option<usize> {
    let f = s.random.pick(functions);
    s.op(json!({"op": "linalg", "f": f}), &[from])
}

pub(super) fn linear_algebra(s: &mut Sketch) -> Option<()> {
    let (any, square) = (flags(s, &[2, 3, 4])?, flags(s, &[2, 3, 3])?);
    linalg(s, &["qr", "svd"], any)?;
    linalg(s, &["det", "slogdet", "eigh"], square)?;
    let small = flags(s, &[4, 1, 1])?;
    let add = json!({"op": "binary_scalar", "f": "add", "scalar": 1, "reverse": false});
    let positive = s.op(add, &[small])?;
    let factor = linalg(s, &["cholesky", "inv"], positive)?;
    let right = s.numbers(&[4, 1, 2])?;
    let solved = s.op(json!({"op": "solve"}), &[positive, right])?;
    let (lower, unit) = (s.is(), s.is());
    let triangular = json!({"op": "triangular_solve", "lower": lower, "unit": unit});
    s.op(triangular, &[factor, solved]).map(drop)
}

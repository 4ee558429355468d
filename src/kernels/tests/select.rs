//! Choosing between elements in any layout.

use super::*;
use crate::ops::select::*;

#[test]
fn chooses_in_every_type() {
    let mut random = Random::new(1);
    for dtype in DType::ALL {
        let condition = Tensor::new(Meta::new(DType::Bool, [1, 300]), &picks());
        let a = random.tensor(random_layout(dtype, &[5, 300]));
        let b = random.tensor(Meta::new(dtype, [5, 1]));
        let made = apply(&Where, &[&condition, &a, &b], 2).unwrap();
        let (x, y, pick) = (a.values(), b.values(), picks());
        let want: Vec<f64> =
            (0..1500).map(|i| if pick[i % 300] != 0.0 { x[i] } else { y[i / 300] }).collect();
        assert_eq!(made[0].values(), want, "{dtype}");
    }
}

fn picks() -> Vec<f64> {
    (0..300).map(|i| (i % 3 == 0 || i % 7 == 2) as u8 as f64).collect()
}

fn random_layout(dtype: DType, shape: &[usize]) -> Meta {
    Random::new(9).layout(dtype, shape)
}

#[test]
fn refuses_other_conditions() {
    let (t, x) = (Meta::new(DType::Bool, [2]), Meta::new(DType::Float32, [2]));
    let y = Meta::new(DType::Float64, [2]);
    assert!(matches!(Where.infer(&[&x, &x, &x]), Err(Error::DType { .. })));
    assert!(matches!(Where.infer(&[&t, &x, &y]), Err(Error::DType { .. })));
    let z = Meta::new(DType::Float32, [3]);
    assert!(matches!(Where.infer(&[&t, &x, &z]), Err(Error::Shape { .. })));
    assert!(matches!(Where.infer(&[&t, &x]), Err(Error::Arity { .. })));
}

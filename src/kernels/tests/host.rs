//! Host operations in Rust; those in Python have tests in Python.

use super::*;
use crate::ops::host::*;

/// Returns the first input's bytes reversed element by element, and the number of inputs.
struct Reverse;

impl HostFn for Reverse {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = Meta::new(DType::Int64, Shape::default());
        Ok(smallvec::smallvec![Meta::new(inputs[0].dtype, inputs[0].shape.clone()), count])
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        let [reversed, count] = outputs else { unreachable!("infer told two outputs") };
        let size = inputs[0].dtype.size();
        let elements = inputs[0].bytes.chunks_exact(size).rev();
        reversed.bytes.chunks_exact_mut(size).zip(elements).for_each(|(to, from)| {
            to.copy_from_slice(from);
        });
        count.bytes.copy_from_slice(&(inputs.len() as i64).to_ne_bytes());
        Ok(())
    }
}

#[test]
fn user_code_sees_row_major_copies() {
    let host = Host::new("reverse", Arc::new(Reverse));
    let values: Vec<f64> = (0..6).map(f64::from).collect();
    for dtype in [DType::UInt8, DType::Float16, DType::Int32, DType::Float64] {
        for strides in [[3, 1], [1, 2], [-5, 2], [8, -1]] {
            let x = Tensor::strided(dtype, &[2, 3], &strides, &values);
            let got = apply(&host, &[&x, &x], 1).unwrap();
            assert_eq!(got[0].values(), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
            assert_eq!(got[1].values(), [2.0]);
        }
    }
}

#[test]
fn equal_only_to_itself_and_not_made_from_text() {
    let make = || Host::new("mine", Arc::new(Reverse));
    let (a, b) = (make(), make());
    assert!(a == a.clone() && a != b);
    assert_eq!((a.name(), a.name().as_ptr()), ("mine", b.name().as_ptr()));
    let text = serde_json::to_string(&crate::ops::Kind::from(a)).unwrap();
    let back = serde_json::from_str::<crate::ops::Kind>(&text).unwrap_err();
    assert!(back.to_string().contains("user code"), "{back}");
}

#[test]
fn the_engine_names_the_user_s_operation() {
    struct Fails;
    impl HostFn for Fails {
        fn infer(&self, _: &[&Meta]) -> Result<Metas> {
            Ok(smallvec::smallvec![Meta::new(DType::Float32, [2])])
        }
        fn call(&self, _: &[HostInput], _: &mut [HostOutput]) -> Result<()> {
            Err(Error::Host { op: "host".into(), message: "no".into() })
        }
    }
    let host = Host::new("fails", Arc::new(Fails));
    let engine = crate::engine::host();
    let error = engine.submit(engine.turn(), &host.into(), Default::default()).unwrap_err();
    assert_eq!(error.to_string(), "fails: host operation failed: no");
}

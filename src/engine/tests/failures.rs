//! The state left after an operation failed.

use super::*;
use crate::error::Error;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};
use crate::ops::index::Gather;
use crate::ops::random::Dropout;
use crate::ops::{Metas, Real};

#[test]
fn unwritten_memory_reads_as_zero_after_a_kernel_failed() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[3], &[1f32, 2.0, 3.0]);
    let index = tensor(&engine, &[2], &[1i64, 7]);
    let fresh = View::new(engine.device(), float([2]));
    let error = run_into(&engine, Gather { axis: 0 }, &[&x, &index], &[&fresh]).unwrap_err();
    assert!(matches!(error, Error::Index { .. }), "{error}");
    assert!(fresh.block.version() > 0);
    assert_eq!(values::<f32>(&fresh), [0.0; 2]);
}

#[test]
fn unwritten_memory_reads_as_zero_after_other_memory_ran_out() {
    let engine = engine(8 << 10);
    let x = tensor(&engine, &[512], &[1f32; 512]);
    let state = tensor(&engine, &[2], &[0i64; 2]);
    let fresh = View::new(engine.device(), float([512]));
    let mask = View::new(engine.device(), Meta::new(DType::Bool, [512]));
    let filler = View::new(engine.device(), float([850]));
    filler.address(true).unwrap();
    let dropout = Dropout { ratio: Real(0.5), offset: 0 };
    let error = run_into(&engine, dropout, &[&x, &state], &[&fresh, &mask]).unwrap_err();
    let Error::OutOfMemory { requested, in_use, available, .. } = error else { panic!("{error}") };
    assert_eq!(requested, 512);
    assert_eq!(in_use, engine.device().ledger().in_use());
    assert!(available < 512, "{available}");
    assert_eq!(values::<f32>(&fresh), [0.0; 512]);
    assert!(!mask.block.is_allocated() && values::<i64>(&state) == [0, 0]);
}

#[test]
fn freed_memory_of_other_sizes_is_given_back_before_memory_runs_out() {
    let engine = engine(8 << 10);
    (0..3).for_each(|_| drop(tensor(&engine, &[512], &[0f32; 512])));
    let sizes = [100, 300, 500].map(|n| tensor(&engine, &[n], &vec![0f32; n]));
    drop(sizes);
    let large = View::new(engine.device(), float([2000]));
    assert!(large.address(true).is_ok());
    let error = View::new(engine.device(), float([1000])).address(true).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { requested: 4000, .. }), "{error}");
}

struct Panics;

impl HostFn for Panics {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Ok(smallvec::smallvec![inputs[0].clone()])
    }

    fn call(&self, _: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        outputs[0].bytes.fill(7);
        panic!("no")
    }
}

#[test]
fn a_panic_costs_no_memory_and_writes_nothing() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2, 3], &[1f32; 6]).permute(&[1, 0]).unwrap();
    let before = engine.device().ledger().in_use();
    let host = Host::new("panics", Arc::new(Panics));
    let error = run(&engine, host.clone(), &[&x]).unwrap_err();
    assert_eq!(error.to_string(), "panics: internal error: no");
    let y = View::new(engine.device(), float([3, 2]));
    run_into(&engine, host, &[&x], &[&y]).unwrap_err();
    assert_eq!(engine.device().ledger().in_use(), before);
    assert_eq!(values::<f32>(&y), [0.0; 6]);
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let engine = engine(1 << 20);
    let elsewhere = Device::new(7, "cpu", Box::new(Limited { left: 0.into() }), 1);
    let (x, far) = (tensor(&engine, &[1], &[1f32]), View::new(&elsewhere, float([1])));
    let copy = || crate::ops::copy::Copy;
    assert!(matches!(run(&engine, copy(), &[&far]), Err(Error::Device { .. })));
    assert!(matches!(run_into(&engine, copy(), &[&x], &[&far]), Err(Error::Device { .. })));
    assert!(matches!(run_into(&engine, copy(), &[&x], &[]), Err(Error::Arity { .. })));
    let (row, column) = (float([1, 1 << 40]), float([1 << 40, 1]));
    let [row, column] = [row, column].map(|meta| View::new(engine.device(), meta));
    let add = crate::ops::binary::Binary { f: crate::ops::binary::BinaryFn::Add };
    let error = run(&engine, add, &[&row, &column]).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
}

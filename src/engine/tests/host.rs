//! Operations that run user code.

use super::initial::{as_state, drawn, is_drawn};
use super::*;
use crate::error::Error;
use crate::ops::Metas;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};

/// User code that maps each float32 element.
struct Each<F>(F);

impl<F: Fn(f32) -> f32 + Send + Sync + 'static> HostFn for Each<F> {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Ok(smallvec::smallvec![inputs[0].clone()])
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        let numbers = inputs[0].bytes.chunks_exact(4);
        for (to, from) in outputs[0].bytes.chunks_exact_mut(4).zip(numbers) {
            let number = f32::from_ne_bytes(from.try_into().unwrap());
            to.copy_from_slice(&(self.0)(number).to_ne_bytes());
        }
        Ok(())
    }
}

fn each(f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> Host {
    Host::new("each", Arc::new(Each(f)))
}

#[test]
fn user_code_runs_without_the_turn() {
    let engine = Arc::new(engine(1 << 20));
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let asks = engine.clone();
    let host = each(move |number| {
        assert!(asks.try_turn().is_some());
        2.0 * number
    });
    assert_eq!(values::<f32>(&run(&engine, host.clone(), &[&x]).unwrap()[0]), [2.0, 4.0]);
    let given = View::new(engine.device(), float([2]));
    run_into(&engine, host, &[&x], &[&given]).unwrap();
    assert_eq!(values::<f32>(&given), [2.0, 4.0]);
}

#[test]
fn user_code_does_not_run_where_a_tensor_does_not_fit() {
    let engine = engine(1 << 20);
    let elsewhere = Device::new(7, "cpu", Box::new(Limited { left: 0.into() }), 1);
    let far = View::new(&elsewhere, float([2]));
    let (x, longer) = (tensor(&engine, &[2], &[1f32; 2]), tensor(&engine, &[3], &[5f32; 3]));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let host = each(move |number| number + counted.fetch_add(1, SeqCst) as f32);
    let into = |from, to: &[&View]| run_into(&engine, host.clone(), &[from], to);
    let elsewhere = |done| matches!(done, Err(Error::Device { .. }));
    assert!(elsewhere(run(&engine, host.clone(), &[&far]).map(drop)));
    assert!(elsewhere(into(&far, &[&x])) && elsewhere(into(&x, &[&far])));
    assert!(matches!(into(&x, &[]), Err(Error::Arity { got: 0, .. })));
    assert!(matches!(into(&x, &[&longer]), Err(Error::Shape { .. })));
    assert_eq!((calls.load(SeqCst), values::<f32>(&longer)), (0, vec![5.0; 3]));
}

#[test]
fn user_code_reads_state_that_is_being_made() {
    let engine = engine(1 << 20);
    let (first, twice) = as_state(&engine, || {
        let first = drawn(&engine);
        let twice = run(&engine, each(|number| 2.0 * number), &[&first]).unwrap();
        (first, twice)
    });
    assert!(is_drawn(&first));
    let want: Vec<f32> = values::<f32>(&first).iter().map(|v| 2.0 * v).collect();
    assert_eq!(values::<f32>(&twice[0]), want);
}

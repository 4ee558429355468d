//! Which arguments a recorded graph may run on, depending on their metas and on shared memory.

use super::*;
use crate::error::Error;
use crate::view::SliceRange;

/// A graph that reads these arguments, and adds the first one to a parameter.
fn reading(engine: &Engine, p: &View, arguments: &[View]) -> Executable {
    let recording = recorded(engine, arguments, || {
        run_into(engine, binary("add"), &[p, &arguments[0]], &[p]).unwrap();
        let (first, last) = (&arguments[0], &arguments[arguments.len() - 1]);
        run(engine, binary("mul"), &[first, last]).unwrap().to_vec()
    });
    Executable::new(engine, &recording, &Options::default()).unwrap()
}

#[test]
fn arguments_that_were_two_tensors_share_no_block_and_no_bytes() {
    let engine = engine(1 << 20);
    let [p, x, y, z] = [1f32; 4].map(|value| tensor(&engine, &[2], &[value; 2]));
    let graph = reading(&engine, &p, &[x.clone(), y.clone()]);
    let whole = tensor(&engine, &[4], &[1f32; 4]);
    let half = |start| whole.slice(&[SliceRange { start, count: 2, step: 1 }]).unwrap();
    assert!(graph.fits(&[y.clone(), z.clone()]) && graph.fits(&[y.clone(), lent(&z)]));
    assert!(!graph.fits(&[y.clone(), y.clone()]));
    assert!(!graph.fits(&[y.clone(), lent(&y)]), "the same memory under another name");
    assert!(!graph.fits(&[half(0), half(2)]), "one block, of which they are parts");
}

#[test]
fn memory_of_another_library_fits_unless_the_graph_writes_it_by_another_name() {
    let engine = engine(1 << 20);
    let [p, x, y] = [1f32; 3].map(|value| tensor(&engine, &[2], &[value; 2]));
    let graph = reading(&engine, &p, std::slice::from_ref(&x));
    assert!(graph.fits(&[lent(&y)]) && !graph.fits(&[lent(&p)]));
    let graph = reading(&engine, &lent(&p), &[x]);
    assert!(graph.fits(&[y]) && !graph.fits(&[p]));
}

#[test]
fn arguments_lie_on_the_device_of_the_graph() {
    let engine = engine(1 << 20);
    let [p, x, y] = [1f32; 3].map(|value| tensor(&engine, &[2], &[value; 2]));
    let graph = reading(&engine, &p, &[x]);
    graph.check_arguments(&[y]).unwrap();
    let elsewhere = Device::new(7, "other", Box::new(Limited { left: 0.into() }), 1);
    let far = View::new(&elsewhere, float([2]));
    assert!(matches!(graph.check_arguments(&[far]), Err(Error::Device { .. })));
}

#[test]
fn the_argument_is_named_and_in_what_it_differs() {
    let engine = engine(1 << 20);
    let [p, x, y] = [1f32; 3].map(|value| tensor(&engine, &[2, 2], &[value; 4]));
    let graph = reading(&engine, &p, &[x.clone(), y]);
    let message = |other: View| graph.check_arguments(&[x.clone(), other]).unwrap_err().to_string();
    let flat = message(tensor(&engine, &[4], &[1f32; 4]));
    assert!(flat.contains("(2, 2) as recorded for argument 1"), "{flat}");
    let wide = message(tensor(&engine, &[2, 2], &[1f64; 4]));
    assert!(wide.contains("float32 as recorded for argument 1"), "{wide}");
    let turned = message(x.permute(&[1, 0]).unwrap());
    assert!(turned.contains("strides [1, 2], want strides [2, 1] as recorded"), "{turned}");
    let elsewhere = Device::new(7, "other", Box::new(Limited { left: 0.into() }), 1);
    let far = message(View::new(&elsewhere, float([2, 2])));
    assert!(far.contains("want it on Device(cpu, -1)"), "{far}");
}

//! Recording: nothing runs, results are kept apart, streams are compared.

use super::*;
use crate::error::Error;

#[test]
fn a_value_that_is_only_recorded_is_not_read() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let mut kept = None;
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        let made = run(&engine, binary("add"), &[&x, &x]).unwrap();
        let error = record::check_read("item", &made[0]).unwrap_err().to_string();
        assert!(error.contains("item") && error.contains("net.py:7"), "{error}");
        assert!(record::check_read("item", &x).is_err());
        kept = Some(made[0].clone());
        Vec::new()
    });
    assert!(recording.was_read());
    let kept = kept.unwrap();
    let error = kept.address(false).unwrap_err();
    assert!(matches!(&error, Error::Graph { message, .. } if message.contains("net.py:7")));
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    assert!(kept.block.current().is_none());
    replay(&engine, &graph, &[x]).unwrap();
    let shown = View { block: kept.block.current().unwrap(), ..kept };
    assert_eq!(values::<f32>(&shown), [2.0, 4.0]);
}

#[test]
fn nothing_runs_and_nothing_is_allocated_while_recording() {
    let engine = engine(1 << 20);
    let (x, p) = (tensor(&engine, &[2], &[1f32, 2.0]), tensor(&engine, &[2], &[1f32, 1.0]));
    let lr = tensor(&engine, &[1], &[1f32]);
    let (before, version) = (engine.device().ledger().in_use(), p.block.version());
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        let made = run(&engine, binary("mul"), &[&x, &p]).unwrap();
        run(&engine, sgd(), &[&p, &made[0], &lr]).unwrap();
        made.to_vec()
    });
    assert_eq!(engine.device().ledger().in_use(), before);
    assert_eq!(values::<f32>(&p), [1.0, 1.0]);
    assert!(p.block.version() > version, "the tape must see the write");
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let version = p.block.version();
    assert_eq!(values::<f32>(&replay(&engine, &graph, &[x]).unwrap()[0]), [1.0, 2.0]);
    assert_eq!(values::<f32>(&p), [0.0, -1.0]);
    assert!(p.block.version() > version);
}

#[test]
fn the_number_of_no_line_changes_nothing() {
    let engine = engine(1 << 20);
    recorded(&engine, &[], || {
        let here = record::origin().unwrap();
        record::set_origin_number(here + 1);
        assert_eq!(record::origin(), Some(here), "the next origin is still to be named");
        vec![]
    });
}

#[test]
fn a_result_is_not_overwritten_while_it_is_held() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let recording = recorded(&engine, std::slice::from_ref(&x), || {
        run(&engine, binary("add"), &[&x, &x]).unwrap().to_vec()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    let step = |values: &[f32]| replay(&engine, &graph, &[tensor(&engine, &[2], values)]).unwrap();
    let first = step(&[1.0, 1.0]).remove(0);
    let second = step(&[2.0, 2.0]).remove(0);
    assert_eq!((values::<f32>(&first), values::<f32>(&second)), (vec![2.0; 2], vec![4.0; 2]));
    let address = second.address(false).unwrap();
    drop(second);
    assert_eq!(step(&[3.0, 3.0])[0].address(false).unwrap(), address);
    assert_eq!(values::<f32>(&first), [2.0; 2]);
}

#[test]
fn a_recording_goes_on_after_its_end() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let mut kept = Vec::new();
    let recording = recorded(&engine, &[], || {
        kept.push(run(&engine, binary("add"), &[&x, &x]).unwrap()[0].clone());
        Vec::new()
    });
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    replay(&engine, &graph, &[]).unwrap();
    let shown = |kept: &View| View { block: kept.block.current().unwrap(), ..kept.clone() };
    record::begin(recording.reopened()).unwrap();
    kept.push(run(&engine, binary("mul"), &[&shown(&kept[0]), &x]).unwrap()[0].clone());
    let mut recording = crate::engine::end_recording(&[]).unwrap();
    recording.seal();
    let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
    run_into(&engine, binary("add"), &[&x, &x], &[&x]).unwrap();
    replay(&engine, &graph, &[]).unwrap();
    assert_eq!(values::<f32>(&shown(&kept[0])), [4.0, 8.0]);
    assert_eq!(values::<f32>(&shown(&kept[1])), [8.0, 32.0]);
}

#[test]
fn streams_are_compared_to_the_last_detail() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let y = tensor(&engine, &[2], &[1f32, 2.0]);
    let record = |kind: Kind, other: &View, keeps: bool| {
        let mut kept = None;
        let recording = recorded(&engine, std::slice::from_ref(&x), || {
            let made = run(&engine, kind, &[&x, other]).unwrap();
            kept = keeps.then(|| made.clone());
            run(&engine, binary("sub"), &[&made[0], &x]).unwrap().to_vec()
        });
        (recording, kept)
    };
    let (first, _) = record(binary("add"), &x, false);
    let differs = |(other, _): (Recording, _)| first.difference(&other).unwrap_or_default();
    assert_eq!(differs(record(binary("add"), &x, false)), "");
    let text = differs(record(binary("mul"), &x, false));
    assert!(text.contains("add at net.py:7") && text.contains("mul at net.py:7"), "{text}");
    assert!(differs(record(binary("add"), &y, false)).contains("another tensor"));
    assert!(differs(record(binary("add"), &x, true)).contains("kept"));
    let longer = recorded(&engine, std::slice::from_ref(&x), Vec::new);
    assert!(first.difference(&longer).unwrap().contains("only in one of them"));
}

fn baked(engine: &Engine, x: &View, values: &[f32]) -> Recording {
    recorded(engine, std::slice::from_ref(x), || {
        let array = lent(&tensor(engine, &[2], values));
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let constant = engine.bake(&engine.turn(), array, &bytes).unwrap();
        run(engine, binary("add"), &[x, &constant]).unwrap().to_vec()
    })
}

#[test]
fn arrays_of_the_host_are_part_of_the_recording() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, 2.0]);
    let first = baked(&engine, &x, &[1.0, 2.0]);
    assert_eq!(first.difference(&baked(&engine, &x, &[1.0, 2.0])), None);
    let text = first.difference(&baked(&engine, &x, &[1.0, 3.0])).unwrap();
    assert!(text.contains("other values from NumPy"), "{text}");
    let graph = Executable::new(&engine, &first, &Options::default()).unwrap();
    assert_eq!(values::<f32>(&replay(&engine, &graph, &[x]).unwrap()[0]), [2.0, 4.0]);
}

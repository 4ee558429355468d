//! What a step computes, and what it refuses.

use super::*;
use crate::error::Error;

#[test]
fn a_step_that_is_read_trains_on_to_the_bit() {
    let trained = trained();
    let file = trained.written();
    let want = trained.run(4);
    assert!(want.windows(2).all(|two| two[0] != two[1]), "{want:?}");
    assert_eq!(run(&mut read(&file).unwrap(), 4), want);
}

#[test]
fn a_step_that_is_saved_again_goes_on() {
    let trained = trained();
    let file = trained.written();
    let whole = run(&mut read(&file).unwrap(), 4);
    let mut first = read(&file).unwrap();
    run(&mut first, 2);
    let mut again = Vec::new();
    first.write(&mut again).unwrap();
    assert_eq!(again.len(), file.len());
    assert_eq!(run(&mut read(&again).unwrap(), 2), whole[2..]);
}

#[test]
fn tensors_are_described_by_their_first_names() {
    let step = read(&trained().written()).unwrap();
    let names = |tensors: &[Tensor]| tensors.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(step.arguments()), ["x"]);
    assert_eq!(names(step.results()), ["product", "x again"]);
    assert_eq!(step.states().map(|t| &*t.name).collect::<Vec<_>>(), ["w", "lr", "lr#2"]);
    let w = step.states().next().unwrap();
    assert_eq!((w.dtype, &w.shape[..], w.bytes()), (DType::Float32, &[3, 2][..], 24));
    assert_eq!(&*step.recording.origins()[1].line, "net.py:7");
}

#[test]
fn results_are_arguments_and_new_tensors() {
    let mut step = read(&trained().written()).unwrap();
    run(&mut step, 1);
    let mut x = [0; 48];
    step.result(1, &mut x).unwrap();
    assert_eq!(floats(&x), X);
    let given = tensor(&[4, 3], &X);
    let first = step.call(std::slice::from_ref(&given)).unwrap();
    let second = step.call(std::slice::from_ref(&given)).unwrap();
    assert!(!Arc::ptr_eq(&first[0].block, &second[0].block));
    assert!(Arc::ptr_eq(&first[1].block, &given.block));
}

#[test]
fn arguments_in_other_memory_are_copied() {
    let file = trained().written();
    let columns = tensor(&[3, 4], &std::array::from_fn::<f32, 12, _>(|i| X[i % 4 * 3 + i / 4]));
    let step = read(&file).unwrap();
    let made = step.call(&[columns.permute(&[1, 0]).unwrap()]).unwrap();
    let want = &run(&mut read(&file).unwrap(), 1)[0];
    assert_eq!(made[0].block.read(floats).unwrap(), *want);
}

#[test]
fn states_are_written() {
    let file = trained().written();
    let (mut step, mut whole) = (read(&file).unwrap(), read(&file).unwrap());
    let want = run(&mut whole, 2);
    step.set_state(1, &bytes(&[0.0])).unwrap();
    let still = run(&mut step, 2);
    assert_eq!(still[0], want[0]);
    assert_eq!(still[1], still[0]);
    assert_ne!(still[2], want[2]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut step = read(&trained().written()).unwrap();
    let said = |done: Result<()>| done.unwrap_err().to_string();
    let called = |step: &Step, given: &[View]| step.call(given).map(drop);
    assert_eq!(
        said(step.run()),
        "Step::run: got no value for argument x, want all arguments bound"
    );
    assert_eq!(said(step.bind(1, &[])), "Step::bind: got argument 1, want one of 1");
    let want = "Step::bind: got 4 bytes for x, want 48 bytes: float32 (4, 3)";
    assert_eq!(said(step.bind(0, &[0; 4])), want);
    assert_eq!(said(step.state(7, &mut [])), "Step::state: got state 7, want one of 3");
    assert_eq!(
        said(step.result(0, &mut [0; 32])),
        "Step::result: got no run, want a run before its results"
    );
    let flat = tensor(&[12], &X);
    let want = "Step.run: argument x: got shapes (12,), want (4, 3)";
    assert_eq!(said(called(&step, &[flat])), want);
    assert_eq!(said(called(&step, &[])), "Step.run: got 0 tensors, want 1");
    let numbers = View::new(engine::host().device(), Meta::new(DType::Int32, [4, 3]));
    let want = "Step.run: argument x: got dtype int32, want float32";
    assert_eq!(said(called(&step, &[numbers])), want);
}

#[test]
fn a_step_is_not_run_by_one_that_is_recorded() {
    let (step, x) = (read(&trained().written()).unwrap(), tensor(&[4, 3], &X));
    record::begin(Recording::new(engine::host().device(), &[])).unwrap();
    let error = step.call(std::slice::from_ref(&x)).unwrap_err();
    record::end().unwrap();
    assert!(error.to_string().starts_with("Step.run: a step is run while another"), "{error}");
    step.call(&[x]).unwrap();
}

#[test]
fn another_number_of_threads_makes_another_plan() {
    let mut step = read(&trained().written()).unwrap();
    let before = step.graph().unwrap();
    assert!(Arc::ptr_eq(&before, &step.graph().unwrap()));
    let mut planned = step.planned();
    planned.as_mut().unwrap().threads += 1;
    drop(planned);
    assert!(!Arc::ptr_eq(&before, &step.graph().unwrap()));
    run(&mut step, 1);
}

#[test]
fn files_are_replaced_as_a_whole() {
    let folder = std::env::temp_dir().join(format!("singa_rs_steps_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("step.srs");
    std::fs::write(&path, trained().written()).unwrap();
    let mut step = Step::open(&path).unwrap();
    run(&mut step, 2);
    step.save(&path).unwrap();
    assert_eq!(run(&mut Step::open(&path).unwrap(), 1), run(&mut step, 1));
    let names = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(names).collect();
    assert_eq!(left, ["step.srs"]);
    let refused = |done: Result<()>| matches!(done, Err(Error::Checkpoint { .. }));
    assert!(refused(Step::open(&folder).map(drop)));
    assert!(refused(Step::open(folder.join("none")).map(drop)));
    assert!(refused(step.save(folder.join("none").join("step.srs"))));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn user_code_and_unknown_results_are_not_written() {
    let trained = trained();
    let names = |origin| Names { results: vec![("loss".into(), origin)], ..trained.names() };
    let write = |names| {
        let done = write(engine::host(), &trained.recording, SETTINGS, names, &mut Vec::new());
        done.map_err(|error| error.to_string())
    };
    assert!(write(names(Returned::Held(trained.w.clone()))).is_ok());
    let want = "save_step: result loss is a tensor that the step does not use";
    assert_eq!(write(names(Returned::Held(tensor(&[1], &[0.0])))).unwrap_err(), want);
    assert_eq!(write(names(Returned::Made(1))).unwrap_err(), want);
}

//! The functions as C calls them.

use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};

use super::*;

fn said() -> String {
    // SAFETY: the message of this thread's last failure.
    unsafe { CStr::from_ptr(singa_step_error()) }.to_str().unwrap().into()
}

/// The path of a step that doubles `x` and adds 1 to `count`.
fn file(name: &str) -> CString {
    let path = std::env::temp_dir().join(format!("singa_rs_{name}_{}.srs", std::process::id()));
    std::fs::write(&path, crate::step::testing::doubling()).unwrap();
    CString::new(path.to_str().unwrap()).unwrap()
}

fn opened(path: &CString) -> *mut CStep {
    let mut step = null_mut();
    // SAFETY: a string and a place for a pointer.
    assert_eq!(unsafe { singa_step_open(path.as_ptr(), &mut step) }, 0, "{}", said());
    step
}

/// A float32 tensor of one element.
fn value(step: *mut CStep, kind: c_int, index: usize) -> f32 {
    let mut value = 0f32;
    // SAFETY: a step that is open, and room for the tensor.
    let done = unsafe { singa_step_read(step, kind, index, (&raw mut value).cast(), 4) };
    assert_eq!(done, 0, "{}", said());
    value
}

#[test]
fn a_step_is_opened_run_saved_and_closed() {
    let path = file("run");
    let step = opened(&path);
    // SAFETY: a step that is open, and pointers to what each function reads and writes.
    unsafe {
        let (mut count, mut index) = (0, 9);
        assert_eq!(singa_step_count(step, 2, &mut count), 0);
        assert_eq!(count, 1);
        assert_eq!(singa_step_find(step, 2, c"count".as_ptr(), &mut index), 0);
        assert_eq!(index, 0);
        let mut tensor = std::mem::zeroed::<CTensor>();
        assert_eq!(singa_step_describe(step, 0, 0, &mut tensor), 0);
        let CTensor { name, dtype, rank, shape, bytes } = tensor;
        assert_eq!((CStr::from_ptr(name), CStr::from_ptr(dtype)), (c"x", c"float32"));
        assert_eq!((rank, *shape, bytes), (1, 1, 4));
        for x in [1.5f32, -2.0] {
            assert_eq!(singa_step_bind(step, 0, (&raw const x).cast(), 4), 0);
            assert_eq!(singa_step_run(step), 0, "{}", said());
            assert_eq!(value(step, 1, 0), 2.0 * x);
        }
        assert_eq!(value(step, 2, 0), 2.0);
        assert_eq!(singa_step_write(step, 0, (&raw const WRITTEN).cast(), 4), 0);
        assert_eq!(singa_step_run(step), 0);
        assert_eq!(singa_step_save(step, path.as_ptr()), 0);
        assert_eq!(singa_step_close(step), 0);
        let again = opened(&path);
        assert_eq!(value(again, 2, 0), WRITTEN + 1.0);
        assert_eq!(singa_step_close(again), 0);
        assert_eq!(singa_step_close(null_mut()), 0);
    }
    std::fs::remove_file(path.to_str().unwrap()).unwrap();
}

static WRITTEN: f32 = 40.0;

#[test]
fn failures_have_a_status_and_a_message() {
    let path = file("fail");
    let (step, mut index) = (opened(&path), 0);
    let expect = |status: c_int, want: c_int, message: &str| {
        assert_eq!((status, said().as_str()), (want, message));
    };
    let none = null::<c_char>();
    // SAFETY: a step that is open, and pointers that are null or valid.
    unsafe {
        let mut other = null_mut();
        let got = "got a null pointer, want a pointer to memory";
        expect(singa_step_open(none, &mut other), 1, &format!("singa_step_open: {got}"));
        expect(singa_step_open(path.as_ptr(), null_mut()), 1, &format!("singa_step_open: {got}"));
        expect(singa_step_run(null_mut()), 1, &format!("singa_step_run: {got}"));
        expect(singa_step_bind(step, 0, null(), 4), 1, &format!("singa_step_bind: {got}"));
        expect(singa_step_read(step, 1, 0, null_mut(), 4), 1, &format!("singa_step_read: {got}"));
        assert_eq!(singa_step_open(c"/nowhere/step.srs".as_ptr(), &mut other), 2);
        assert!(said().starts_with("Step::open: /nowhere/step.srs: "), "{}", said());
        assert!(other.is_null());
        let want = "Step::run: got no value for argument x, want all arguments bound";
        expect(singa_step_run(step), 1, want);
        let want = "singa_step_find: got loss, want one of count";
        expect(singa_step_find(step, 2, c"loss".as_ptr(), &mut index), 1, want);
        let want = "singa_step_count: got kind 3, want SINGA_ARGUMENT, SINGA_RESULT or SINGA_STATE";
        expect(singa_step_count(step, 3, &mut index), 1, want);
        let want = "singa_step_describe: got 1, want an index below 1";
        expect(
            singa_step_describe(step, 1, 1, std::mem::zeroed::<[CTensor; 1]>().as_mut_ptr()),
            1,
            want,
        );
        let not_text = CString::new([0xff]).unwrap();
        assert_eq!(singa_step_open(not_text.as_ptr(), &mut other), 1);
        assert_eq!(singa_step_close(step), 0);
    }
    std::fs::remove_file(path.to_str().unwrap()).unwrap();
}

#[test]
fn a_panic_is_a_status() {
    let done = status("singa_step_run", || panic!("a bug"));
    assert_eq!((done, said().as_str()), (4, "singa_step_run: internal error: a bug"));
}

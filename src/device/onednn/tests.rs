//! Checks of the constants and calling conventions against the library itself.

use super::*;
use crate::dtype::DType;

/// The library; prints that the test is skipped if it is missing.
fn opened() -> Option<&'static Library> {
    let found = library();
    if found.is_none() {
        eprintln!("skipped: oneDNN is missing");
    }
    found
}

#[test]
fn the_library_says_which_it_is() {
    let name = name();
    assert_eq!(name.starts_with("onednn 3."), is_available(), "{name}");
    assert!(is_available() || name == "portable");
}

#[test]
fn a_missing_or_foreign_file_is_refused_in_words() {
    let missing = Library::open(std::path::Path::new("/nowhere/libdnnl.so.3"));
    assert!(missing.is_err_and(|why| why.contains("No such file")));
    let program = std::env::current_exe().expect("the test has a file");
    assert!(Library::open(&program).is_err());
}

#[test]
fn a_reorder_transposes() {
    let Some(library) = opened() else { return };
    let matrix = |strides| Descriptor::strided(library, DType::Float32, &[3, 5], strides).unwrap();
    let from: Vec<f32> = (0..15).map(|i| i as f32).collect();
    let made = reorder(library, [matrix(&[5, 1]), matrix(&[1, 3])]).unwrap();
    let primitive = made.expect("a fast implementation");
    let mut to = [0f32; 15];
    let mut scratch = vec![0u8; primitive.scratch() + 64];
    let addresses = [from.as_ptr().cast::<u8>().cast_mut(), to.as_mut_ptr().cast()];
    let place = scratch.as_mut_ptr().map_addr(|a| a.next_multiple_of(64));
    // SAFETY: the arrays are as large as the descriptors say.
    unsafe { primitive.run(&addresses, place) }.unwrap();
    assert!((0..15).all(|i| to[i % 5 * 3 + i / 5] == from[i]), "{to:?}");
}

#[test]
fn refusals_are_errors_that_name_the_call() {
    let Some(library) = opened() else { return };
    let overlap = Descriptor::strided(library, DType::Float32, &[3, 5], &[2, 1]);
    let text = overlap.err().expect("rows that overlap").to_string();
    assert!(text.contains("oneDNN returned 2 for dnnl_memory_desc_create_with_strides"), "{text}");
    assert!(Descriptor::any(library, DType::Float64, &[1]).is_err());
}

#[test]
fn layouts_compare_and_tell_their_bytes() {
    let Some(library) = opened() else { return };
    let matrix = |strides| Descriptor::strided(library, DType::Float16, &[3, 5], strides).unwrap();
    assert!(matrix(&[5, 1]).equals(library, &matrix(&[5, 1])));
    assert!(!matrix(&[5, 1]).equals(library, &matrix(&[1, 3])));
    assert_eq!((matrix(&[5, 1]).bytes(library), matrix(&[8, 1]).bytes(library)), (30, 48));
}

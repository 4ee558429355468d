use super::*;
use crate::device::cpu;
use crate::dtype::DType;
use crate::ops::View;
use crate::ops::copy::Copy;

/// An operation with the given numbers of inputs and outputs, each a vector of four numbers.
fn op(inputs: usize, outputs: usize) -> Prepared {
    let one = View::new(cpu::device(), Meta::new(DType::Float32, [4]));
    let mut op = Prepared::of(&Copy.into(), std::slice::from_ref(&one), None, 1).unwrap();
    op.change(|call| call.inputs = std::iter::repeat_n(one.meta.clone(), inputs).collect());
    op.change(|call| call.outputs = std::iter::repeat_n(one.meta, outputs).collect());
    op
}

/// Calls `f` with such an operation whose vectors start at these indices of the memory.
fn bound<T>(
    memory: &mut [f32; 16],
    [read, written]: [&[usize]; 2],
    f: impl FnOnce(&Prepared, &Io) -> T,
) -> T {
    let start = memory.as_mut_ptr();
    let at = |place: &usize| start.wrapping_add(*place).cast::<u8>();
    let from: Vec<*const u8> = read.iter().map(|place| at(place).cast_const()).collect();
    let to: Vec<*mut u8> = written.iter().map(at).collect();
    // SAFETY: the vectors are within the memory, and nothing runs.
    let io = unsafe { Io::new(&from, &to, std::ptr::null_mut()) };
    f(&op(read.len(), written.len()), &io)
}

/// Which of the vectors at `read` are examined before those at `written` are overwritten.
fn looked_at(read: &[usize], written: &[usize]) -> Vec<bool> {
    bound(&mut [1.0; 16], [read, written], |op, io| {
        // SAFETY: the vectors are within the memory, which nothing writes.
        let before = unsafe { Before::of(op, io) };
        before.0.iter().map(Option::is_some).collect()
    })
}

#[test]
fn what_shares_a_byte_with_a_result_is_looked_at_before() {
    let found: Vec<bool> = (0..=12).map(|written| looked_at(&[4], &[written])[0]).collect();
    let want: Vec<bool> = (0..=12).map(|written| (1..8).contains(&written)).collect();
    assert_eq!(found, want);
}

#[test]
fn one_result_of_several_is_enough_for_that() {
    assert_eq!(looked_at(&[0, 4, 8], &[12, 2]), [true, true, false]);
    assert_eq!(looked_at(&[0], &[4, 8]), [false]);
}

#[test]
fn one_result_of_several_that_is_not_finite_is_enough_for_a_report() {
    let nans = |memory: &mut [f32; 16]| {
        let error = bound(memory, [&[8], &[0, 4]], |op, io| {
            // SAFETY: the vectors are within the memory, which nothing writes.
            unsafe { not_finite(op, io, Before::of(op, io)) }
        });
        error.map(|error| {
            let Error::NotFinite { report, .. } = error else { panic!("{error}") };
            let found = report.inputs.iter().chain(&report.outputs);
            found.map(|statistics| statistics.nans).collect::<Vec<_>>()
        })
    };
    assert_eq!(nans(&mut [1.0; 16]), None);
    for (place, want) in [(1, [0, 1, 0]), (7, [0, 0, 1])] {
        let mut memory = [1.0; 16];
        memory[place] = f32::NAN;
        assert_eq!(nans(&mut memory), Some(want.to_vec()));
    }
    let mut given = [1.0; 16];
    given[8] = f32::NAN;
    assert_eq!(nans(&mut given), None, "its results are finite");
}

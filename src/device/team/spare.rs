//! Checks that more threads can be started. An OpenMP runtime aborts the process if it cannot start
//! one, so this is tried beforehand.
#![allow(unsafe_code)]

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::{env, thread};

use crate::device::{cpu, heap};
use crate::error::{Error, Result};

/// Starts as many threads as a team of `have` needs to grow to `want`, and ends them again.
///
/// # Errors
/// See [`refusal`].
pub fn for_threads(have: usize, want: usize) -> Result<()> {
    if want <= have {
        return Ok(());
    }
    let (bytes, more) = (stack_bytes(), want - have);
    let (stay, end) = channel::<()>();
    let end = Mutex::new(end);
    // All threads block until `stay` is dropped, so that they exist at the same time.
    let wait = || drop(end.lock().map(|end| end.recv()));
    thread::scope(|scope| {
        let one = |_| thread::Builder::new().stack_size(bytes).spawn_scoped(scope, wait).map(drop);
        let begun = (0..more).try_for_each(one);
        drop(stay);
        begun.map_err(|_| refusal(more))
    })
}

/// The error if this many threads cannot be started: out of memory if their stacks do not fit.
pub fn refusal(threads: usize) -> Error {
    let bytes = threads.saturating_mul(stack_bytes());
    if !heap::has(bytes) {
        return cpu::device().pool().out_of_memory("start threads", bytes);
    }
    let message = format!(
        "{threads} more threads cannot be started: the limit of processes is reached; \
         set_num_threads(1) needs none"
    );
    Error::Device { op: "start threads".into(), message }
}

/// The stack size of OpenMP's threads.
fn stack_bytes() -> usize {
    let named =
        ["OMP_STACKSIZE", "GOMP_STACKSIZE"].into_iter().find_map(|name| env::var(name).ok());
    named.and_then(|text| size(&text)).unwrap_or_else(usual_stack)
}

/// Parses a size in OpenMP's notation: in KiB, or with a unit.
fn size(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_uppercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].trim() {
        "B" => 1,
        "" | "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(unit)
}

/// The system's default stack size.
fn usual_stack() -> usize {
    let mut bytes = 0;
    // SAFETY: the attributes are created, queried and destroyed here.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) == 0 {
            libc::pthread_attr_getstacksize(&attributes, &mut bytes);
            libc::pthread_attr_destroy(&mut attributes);
        }
    }
    if bytes == 0 { 8 << 20 } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_openmp_does() {
        assert_eq!(size("512"), Some(512 << 10));
        assert_eq!(
            [size("2B"), size(" 3 k "), size("4M")],
            [Some(2), Some(3 << 10), Some(4 << 20)]
        );
        assert_eq!([size("much"), size("")], [None, None]);
    }

    #[test]
    fn as_many_as_are_asked_for_are_started() {
        for_threads(1, 4).unwrap();
        for_threads(4, 2).unwrap();
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let text = refusal(2).to_string();
        assert!(text.contains("2 more threads cannot be started"), "{text}");
        assert!(matches!(refusal(1 << 40), Error::OutOfMemory { .. }));
    }
}

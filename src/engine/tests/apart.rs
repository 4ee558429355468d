//! Process-wide behaviour: environment variables and process exit. Each test runs itself in a
//! process of its own.

use std::process::Command;
use std::time::Duration;

use super::*;
use crate::device::ending;
use crate::error::Error;
use crate::ops::copy::Copy;

/// Set in a process that runs a single test.
const ALONE: &str = "SINGA_RS_TEST_ALONE";
const CHECK: &str = "SINGA_RS_CHECK";

/// Whether this process runs the named test alone. If not, runs it in a child process in which
/// `CHECK` has the given value, and returns false.
fn is_alone(test: &str, check: Option<&str>) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", &format!("{module}::{test}")]).env(ALONE, "1").env_remove(CHECK);
    let done = alone.envs(check.map(|value| (CHECK, value))).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && told.contains("1 passed"), "{told}");
    false
}

#[test]
fn the_arena_is_filled_where_the_environment_says_so() {
    for check in [None, Some("0"), Some("1")] {
        if is_alone("the_arena_is_filled_where_the_environment_says_so", check) {
            let backend = Box::new(Limited { left: 0.into() });
            let engine = Engine::new(Device::new(-1, "cpu", backend, 1));
            assert_eq!(engine.poisons, std::env::var(CHECK).is_ok_and(|value| value == "1"));
            return;
        }
    }
}

#[test]
fn where_the_process_ends_nobody_else_runs_anything() {
    if is_alone("where_the_process_ends_nobody_else_runs_anything", None) {
        let engine = engine(1 << 20);
        let x = tensor(&engine, &[1], &[1f32]);
        let copies = || run(&engine, Copy, &[&x]).map(drop);
        let given = std::slice::from_ref(&x);
        let recording = recorded(&engine, given, || run(&engine, Copy, &[&x]).unwrap().to_vec());
        let graph = Executable::new(&engine, &recording, &Options::default()).unwrap();
        let replays = || replay(&engine, &graph, given).map(drop);
        assert!(ending::end(Duration::ZERO));
        assert!(copies().is_ok() && replays().is_ok(), "who ends it may");
        let others = std::thread::scope(|scope| {
            let threads = [scope.spawn(copies), scope.spawn(replays)];
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(others.iter().all(|done| matches!(done, Err(Error::Device { .. }))), "{others:?}");
    }
}

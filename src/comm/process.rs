//! What the system knows of processes.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt;

use crate::comm::Liveness;

/// What is known of a process that was started at that time, as numbers are used again. One that
/// cannot be looked at counts as running.
pub fn state(pid: u32, started: u64) -> Liveness {
    match status(pid) {
        Ok((_, other)) if other != started => Liveness::Dead,
        Ok(('Z' | 'X' | 'x', _)) => Liveness::Dead,
        Ok(('T' | 't', _)) => Liveness::Stopped,
        Err(error) if is_of_nobody(&error) => Liveness::Dead,
        _ => Liveness::Away,
    }
}

/// The state of a process as a letter, and when it was started (proc(5), fields 3 and 22 of stat).
pub fn status(pid: u32) -> Result<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// The name space of this process's number: the others can only look it up in the same one.
pub fn namespace() -> Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|of| of.ino())
}

/// Whether reading about a process failed because it is not there (any more).
fn is_of_nobody(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// The second field is the program's name in parentheses, which may contain anything.
fn parse(text: &str) -> Option<(char, u64)> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987 20";
        for name in ["sh", "a b", ") R 1", "((", "a\nb"] {
            assert_eq!(parse(&format!("12 ({name}) {rest}\n")), Some(('S', 987)), "{name}");
        }
        assert_eq!(parse("12 (sh) S 1 2"), None);
    }

    #[test]
    fn a_process_runs_is_stopped_and_dead() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, started) = (child.id(), status(child.id()).unwrap().1);
        assert_eq!(state(pid, started), Liveness::Away);
        assert_eq!(state(pid, started + 1), Liveness::Dead, "the number is used again");
        Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
        sleep(Duration::from_millis(50));
        assert_eq!(state(pid, started), Liveness::Stopped);
        child.kill().unwrap();
        sleep(Duration::from_millis(50));
        assert_eq!(state(pid, started), Liveness::Dead, "a zombie");
        child.wait().unwrap();
        assert_eq!(state(pid, started), Liveness::Dead);
    }
}

//! How ranks find each other.

use std::fs;

use super::*;

/// A path in shared memory that nothing has.
fn fresh(name: &str) -> PathBuf {
    let path = PathBuf::from(format!("/dev/shm/singa_rs-test-{}-{name}", std::process::id()));
    assert!(!path.exists());
    path
}

fn refusal(path: &Path, rank: usize, size: usize) -> String {
    let opened = Host::open(path, rank, size, Duration::from_millis(50));
    opened.err().expect("it is refused").to_string()
}

#[test]
fn the_last_rank_removes_the_name() {
    let path = fresh("last");
    let first = Host::open(&path, 1, 2, LONG).unwrap();
    assert!(path.exists());
    let last = Host::open(&path, 0, 2, LONG).unwrap();
    assert!(!path.exists());
    let bytes = Segment::bytes(2);
    drop((first, last));
    assert!((1 << 20..3 << 20).contains(&bytes));
}

/// A process that joins a group and ends without a word.
fn dead(path: &Path, rank: usize, size: usize) {
    let host = Host::open(path, rank, size, LONG).unwrap();
    host.segment.member(rank).identity.forge_dead();
    std::mem::forget(host);
}

#[test]
fn nobody_joins_the_dead() {
    let path = fresh("dead");
    for size in [2, 3] {
        dead(&path, 0, 2);
        let hosts: Vec<Host> =
            (0..size).map(|rank| Host::open(&path, rank, size, LONG).unwrap()).collect();
        assert!(!path.exists());
        drop(hosts);
    }
}

#[test]
fn the_last_to_leave_removes_the_name() {
    let path = fresh("leave");
    let hosts: Vec<Host> = (0..2).map(|rank| Host::open(&path, rank, 3, LONG).unwrap()).collect();
    for (left, host) in hosts.into_iter().enumerate() {
        assert!(path.exists(), "{left}");
        drop(host);
    }
    assert!(!path.exists());
}

#[test]
fn ranks_that_come_at_once_form_one_group() {
    for attempt in 0..50 {
        let path = fresh(&format!("once-{attempt}"));
        thread::scope(|scope| {
            for rank in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut host = Host::open(path, rank, 4, LONG).unwrap();
                    let mut all = [9; 4];
                    host.all_gather(&round("numbers"), &[rank as u8], &mut all).unwrap();
                    assert_eq!(all, [0, 1, 2, 3]);
                });
            }
        });
        assert!(!path.exists());
    }
}

#[test]
fn another_groups_file_is_refused() {
    let memory = Memory::new();
    let _first = Host::open(&memory.path(), 0, 3, LONG).unwrap();
    let text = refusal(&memory.path(), 0, 3);
    let holder = format!("rank 0 is taken by process {} (not there yet)", std::process::id());
    assert!(text.contains(&holder), "{text}");
    let text = refusal(&memory.path(), 1, 2);
    assert!(text.ends_with("the number of ranks is 3 there, and 2 here"), "{text}");
}

#[test]
fn other_files_are_refused_and_stay() {
    let path = fresh("other");
    fs::write(&path, "something else").unwrap();
    let text = refusal(&path, 0, 2);
    assert!(text.ends_with("it is not the segment of a group"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), b"something else");
    fs::remove_file(&path).unwrap();
    assert!(refusal(Path::new("/dev/shm"), 0, 2).contains("directory"));
}

#[test]
fn ranks_beyond_the_group_are_refused() {
    for (rank, size) in [(0, 0), (2, 2), (0, 257)] {
        let text = refusal(&fresh("beyond"), rank, size);
        assert!(text.contains(&format!("got rank {rank} of {size}")), "{text}");
    }
}

#[test]
fn a_file_that_stays_locked_is_refused() {
    let memory = Memory::new();
    let other = File::open(memory.path()).unwrap();
    other.lock().unwrap();
    let text = refusal(&memory.path(), 0, 2);
    assert!(text.ends_with("another process has locked it for 50ms"), "{text}");
}

//! Ranks that are processes of their own, killed and stopped at random moments.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use super::model::{Numbers, Operation};
use super::*;

const TIMEOUT: Duration = Duration::from_secs(2);
/// What a busy machine may add to times. A rank that is killed is missed within that alone.
const MARGIN: Duration = Duration::from_millis(1500);
/// How many groups there are at a time.
const GROUPS: usize = 8;
/// Set in a process that is a rank: the path, the rank, the size and the seed of its operations.
const RANK: &str = "SINGA_RS_TEST_RANK";
/// How many groups lose a rank.
const FAULTS: &str = "SINGA_RS_FAULTS";

#[test]
fn ranks_that_are_killed_or_stopped_are_named() {
    if let Ok(text) = std::env::var(RANK) {
        return be_a_rank(&text);
    }
    let count = std::env::var(FAULTS).map_or(16, |count| count.parse().unwrap());
    thread::scope(|scope| {
        for group in 0..GROUPS {
            let seeds = (group..count).step_by(GROUPS);
            scope.spawn(move || seeds.for_each(|seed| lose_a_rank(seed as u64)));
        }
    });
}

/// Runs random operations until one fails.
fn be_a_rank(text: &str) {
    // SAFETY: the process shall not outlive the thread that has started it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let words: Vec<&str> = text.split(' ').collect();
    let [rank, size, seed] = [1, 2, 3].map(|word| words[word].parse::<usize>().unwrap());
    let mut host = Host::open(Path::new(words[0]), rank, size, TIMEOUT * 5).unwrap();
    host.all_gather(&round("all are there"), &[], &mut []).unwrap();
    host.set_timeout(TIMEOUT);
    println!("\nthere");
    let fault = (0..).find_map(|i| Operation::random(seed as u64, i, size).run(&mut host).err());
    println!("\nfault {:?}", fault.unwrap());
}

/// A group of processes; what is left of them is killed in the end.
struct Group {
    children: Vec<Child>,
    lines: Receiver<(usize, String)>,
    _memory: Memory,
}

impl Group {
    fn start(size: usize, seed: u64) -> Self {
        let (memory, (sender, lines)) = (Memory::new(), channel());
        let path = memory.path();
        let start = |rank| {
            let text = format!("{} {rank} {size} {seed}", path.display());
            start(rank, &text, sender.clone())
        };
        Group { children: (0..size).map(start).collect(), lines, _memory: memory }
    }

    fn signal(&self, rank: usize, signal: i32) {
        // SAFETY: the child is not waited for yet, so that its number is its own.
        assert_eq!(unsafe { libc::kill(self.children[rank].id() as i32, signal) }, 0);
    }

    /// The first lines of so many ranks that start with a word.
    fn expect(&self, word: &str, count: usize, limit: Duration) -> Vec<(usize, String)> {
        let end = Instant::now() + limit;
        let next = || {
            loop {
                let left = end.saturating_duration_since(Instant::now());
                let (rank, line) = self.lines.recv_timeout(left).expect("a rank says nothing");
                if let Some(rest) = line.strip_prefix(word) {
                    return (rank, rest.trim().to_owned());
                }
            }
        };
        (0..count).map(|_| next()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Starts this test as a rank, and passes on its lines.
fn start(rank: usize, text: &str, lines: Sender<(usize, String)>) -> Child {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::ranks_that_are_killed_or_stopped_are_named");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &test, "--nocapture"]).env(RANK, text).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let pass = move |line: std::io::Result<String>| {
        let _is_wanted = line.is_ok_and(|line| lines.send((rank, line)).is_ok());
    };
    thread::spawn(move || output.lines().for_each(pass));
    child
}

/// Kills or stops one rank of a group: the others name it, in time.
fn lose_a_rank(seed: u64) {
    let mut numbers = Numbers::new(seed);
    let size = 2 + numbers.below(3);
    let (lost, is_killed) = (numbers.below(size), seed.is_multiple_of(2));
    let mut group = Group::start(size, seed);
    group.expect("there", size, TIMEOUT * 5);
    thread::sleep(Duration::from_micros(numbers.below(60_000) as u64));
    group.signal(lost, if is_killed { libc::SIGKILL } else { libc::SIGSTOP });
    let limit = if is_killed { MARGIN } else { TIMEOUT + MARGIN };
    let state = if is_killed { "Dead" } else { "Stopped" };
    for (rank, fault) in group.expect("fault", size - 1, limit) {
        let want = format!("Timeout {{ ranks: [({lost}, {state})], seconds: ");
        assert!(rank != lost && fault.starts_with(&want), "{seed}: {rank} of {size}: {fault}");
    }
    if !is_killed {
        group.signal(lost, libc::SIGCONT);
        let (rank, fault) = group.expect("fault", 1, MARGIN).remove(0);
        assert!(rank == lost && fault.contains(&format!("for rank {lost} (stopped)")), "{fault}");
    }
    for (rank, child) in group.children.iter_mut().enumerate() {
        let ended = child.wait().unwrap();
        assert!(ended.success() || (rank == lost && ended.signal() == Some(libc::SIGKILL)));
    }
}

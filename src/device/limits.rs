//! How much memory this process may still take, given the machine, the control groups above it, and
//! its own resource limits.
#![allow(unsafe_code)]

use std::path::PathBuf;

#[cfg(unix)]
use super::heap::unused;
use super::pages;

/// Left to the rest of the process, so that running out raises an exception instead of getting the
/// process killed by the kernel.
const RESERVE_BYTES: usize = 256 << 20;
/// The reserve is at most one part in this many of the machine's memory or a group's limit.
const RESERVE_SHARE: usize = 8;
/// The reserve below the process's own limits. Exceeding those kills nothing, but small
/// allocations, thread stacks and other libraries' memory are refused.
#[cfg(unix)]
const OWN_RESERVE_BYTES: usize = 64 << 20;

/// Bytes that this process may still fill: the least of the machine's free memory, the headroom of
/// the control groups and that of the process's data limit, minus a reserve.
pub fn memory() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| machine_headroom(&text));
    let told = pages::free().map(|free| without_reserve(free, pages::installed()));
    let known = machine.into_iter().chain(told).chain(data_headroom());
    cgroup_headrooms().into_iter().chain(known).min().unwrap_or(usize::MAX)
}

/// Bytes of address space that this process may still reserve (`ulimit -v`), minus a reserve.
#[cfg(unix)]
pub fn addresses() -> usize {
    own_headroom(limit(libc::RLIMIT_AS), statm(0), unused).unwrap_or(usize::MAX)
}

/// Bytes of address space that this process may still reserve: Windows has no such limit.
#[cfg(not(unix))]
pub fn addresses() -> usize {
    usize::MAX
}

/// Bytes that this process may still fill (`ulimit -d`), if that is limited.
#[cfg(unix)]
fn data_headroom() -> Option<usize> {
    own_headroom(limit(libc::RLIMIT_DATA), statm(5), unused)
}

/// Windows has no such limit.
#[cfg(not(unix))]
fn data_headroom() -> Option<usize> {
    None
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
type Resource = libc::__rlimit_resource_t;
#[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
type Resource = libc::c_int;

/// A resource limit of this process, if one is set.
#[cfg(unix)]
fn limit(resource: Resource) -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes two numbers.
    let known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
    let bytes = limit.rlim_cur;
    (known && bytes != libc::RLIM_INFINITY).then_some(usize::try_from(bytes).ok()?)
}

/// The headroom below a limit of the process; None if there is no limit. If little is left, the
/// heap's free bytes (`again`) count, which take longer to find out.
#[cfg(unix)]
fn own_headroom(
    limit: Option<usize>,
    used: impl FnOnce() -> Option<usize>,
    again: impl FnOnce() -> usize,
) -> Option<usize> {
    let limit = limit?;
    let reserve = OWN_RESERVE_BYTES.min(limit / RESERVE_SHARE);
    let left = limit.saturating_sub(used()?);
    let again = if left < 2 * reserve { again() } else { 0 };
    Some((left + again).saturating_sub(reserve))
}

/// A field of `/proc/self/statm`, which counts pages, in bytes.
#[cfg(unix)]
fn statm(place: usize) -> impl FnOnce() -> Option<usize> {
    move || {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        let count: usize = text.split_whitespace().nth(place)?.parse().ok()?;
        count.checked_mul(pages::page())
    }
}

/// The free part of `total` bytes, minus a reserve for the rest of the process.
fn without_reserve(free: usize, total: usize) -> usize {
    free.saturating_sub(RESERVE_BYTES.min(total / RESERVE_SHARE))
}

/// The machine's headroom, from the text of its `meminfo`.
fn machine_headroom(meminfo: &str) -> Option<usize> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? << 10)
    };
    Some(without_reserve(bytes("MemAvailable")?, bytes("MemTotal")?))
}

/// The headroom of each control group above this process.
fn cgroup_headrooms() -> Vec<usize> {
    let headroom = |(is_first_version, folder): (bool, PathBuf)| {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let (limit, usage) = match is_first_version {
            true => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            false => ("memory.max", "memory.current"),
        };
        group_headroom(&read(limit)?, &read(usage)?, &read("memory.stat").unwrap_or_default())
    };
    control_groups("memory").into_iter().filter_map(headroom).collect()
}

/// The folders of the control groups above this process that may limit what a controller counts,
/// and whether they are of version 1.
pub(super) fn control_groups(controller: &str) -> Vec<(bool, PathBuf)> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    membership.lines().flat_map(|line| folders(line, controller).unwrap_or_default()).collect()
}

/// Those of one line of `/proc/self/cgroup`, the innermost first.
fn folders(line: &str, controller: &str) -> Option<Vec<(bool, PathBuf)>> {
    let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
    let is_first_version = !controllers.is_empty();
    let mut root = PathBuf::from("/sys/fs/cgroup");
    if is_first_version {
        root.push(controllers.split(',').find(|name| *name == controller)?);
    }
    let leaf = root.join(group.trim_start_matches('/'));
    let within = leaf.ancestors().take_while(|folder| folder.starts_with(&root));
    Some(within.map(|folder| (is_first_version, folder.to_owned())).collect())
}

/// The headroom of a control group, from the texts of its limit, its usage and its statistics; None
/// if it has no limit.
fn group_headroom(limit: &str, usage: &str, stat: &str) -> Option<usize> {
    let [limit, usage] = [limit, usage].map(|text| text.trim().parse::<usize>().ok());
    let (limit, usage) = (limit?, usage?);
    let count = |name: &str| {
        stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse::<usize>().ok())
    };
    // Pages of cached files count as usage but are reclaimed under pressure. Version 1 counts those
    // of child groups separately.
    let cached = count("total_inactive_file").or_else(|| count("inactive_file")).unwrap_or(0);
    Some(without_reserve(limit.saturating_sub(usage.saturating_sub(cached)), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn large_memory_keeps_a_fixed_reserve_and_small_memory_a_share() {
        assert_eq!(without_reserve(10 << 30, 16 << 30), (10 << 30) - 256 * MIB);
        assert_eq!(without_reserve(400 * MIB, 512 * MIB), 336 * MIB);
        assert_eq!(without_reserve(10 * MIB, 512 * MIB), 0);
    }

    #[test]
    fn the_machine_leaves_what_it_calls_available() {
        let text = "MemTotal:        1048576 kB\nMemFree:          100 kB\n\
                    MemAvailable:     524288 kB\nBuffers:         4 kB\n";
        assert_eq!(machine_headroom(text), Some(384 * MIB));
        assert_eq!(machine_headroom("MemTotal: 1048576 kB\nMemFree: 100 kB\n"), None);
        assert_eq!(machine_headroom("MemAvailable: much\nMemTotal: 4 kB\n"), None);
    }

    #[test]
    fn a_control_group_s_cached_files_count_as_free() {
        let [limit, usage] = [800 * MIB, 500 * MIB].map(|n| format!("{n}\n"));
        let free = |stat: &str| group_headroom(&limit, &usage, stat);
        assert_eq!(free(""), Some(200 * MIB));
        let stat = format!("anon 1\ninactive_file {}\nactive_file 9\n", 100 * MIB);
        assert_eq!(free(&stat), Some(300 * MIB));
        // Version 1: the group's own pages, and the total including child groups.
        let stat = format!("inactive_file {MIB}\ntotal_inactive_file {}\n", 50 * MIB);
        assert_eq!(free(&stat), Some(250 * MIB));
        assert_eq!(free(&format!("inactive_file {}\n", 900 * MIB)), Some(700 * MIB));
    }

    #[test]
    fn a_process_leaves_what_its_limit_does_not_use() {
        let of =
            |limit: usize, used: Option<usize>| own_headroom(Some(limit), || used, || 15 * MIB);
        assert_eq!(own_headroom(None, || Some(1), || 0), None);
        assert_eq!(of(800 * MIB, Some(500 * MIB)), Some(236 * MIB));
        assert_eq!(of(80 * MIB, Some(30 * MIB)), Some(40 * MIB));
        assert_eq!(of(80 * MIB, Some(90 * MIB)), Some(5 * MIB));
        assert_eq!(of(80 * MIB, None), None);
        #[cfg(target_os = "linux")]
        assert!([0, 5].iter().all(|&place| statm(place)().unwrap() > MIB));
    }

    #[test]
    fn a_control_group_without_a_limit_leaves_everything() {
        assert_eq!(group_headroom("max\n", "4096\n", ""), None);
        let unlimited = "9223372036854771712\n";
        assert!(group_headroom(unlimited, "4096\n", "").unwrap() > 1 << 60);
        assert_eq!(group_headroom("4096\n", "", ""), None);
    }

    #[test]
    fn control_groups_are_found_in_both_versions() {
        let found = |line| folders(line, "cpu").map(|all| all.into_iter().unzip());
        let paths = |all: [&str; 2]| all.map(PathBuf::from).to_vec();
        let second = paths(["/sys/fs/cgroup/user", "/sys/fs/cgroup"]);
        assert_eq!(found("0::/user"), Some((vec![false; 2], second)));
        let first = paths(["/sys/fs/cgroup/cpu/user", "/sys/fs/cgroup/cpu"]);
        assert_eq!(found("4:cpuacct,cpu:/user"), Some((vec![true; 2], first)));
        assert!(["4:cpuset:/user", "4", ""].iter().all(|line| found(line).is_none()));
    }
}

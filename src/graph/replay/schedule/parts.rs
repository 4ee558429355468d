//! The initial assignment of nodes to workers.

use std::ops::Range;

use crate::graph::Edges;

/// Nanoseconds from the end of a node until another worker knows of it, and has what it made.
const MESSAGE: u64 = 500;
/// The same where it is decided whether a node moves to another worker, whose successors often have
/// to come back.
const MOVE: u64 = 4 * MESSAGE;
/// Nanoseconds, and the part of the time, by which another assignment must end earlier than the usual
/// one.
const LEAST_GAIN: u64 = 20_000;
const LEAST_PART: u64 = 20;

/// Assigns the nodes of segments to parts, one per worker; `times` are those of the nodes. Also
/// returns, by segment, how many nanoseconds earlier the parts end than one worker would.
///
/// Usually nodes are dealt level by level, which balances the parts whatever the times really are.
/// Where that spreads branches over the parts, which then wait for each other again and again, each
/// node goes, in recorded order, to the part where it ends first.
pub(super) fn parts(
    edges: &Edges,
    segments: &[Range<u32>],
    workers: usize,
    times: &[u64],
) -> (Vec<u32>, Vec<u64>) {
    let (mut parts, mut gains) = (vec![0; edges.rows()], Vec::with_capacity(segments.len()));
    for segment in segments {
        deal(edges, segment, workers, times, &mut parts);
        let mut end = lay(edges, segment, workers, times, &mut parts, |part, _| part as usize);
        let own = segment.start as usize..segment.end as usize;
        let dealt = parts[own.clone()].to_vec();
        let first = lay(edges, segment, workers, times, &mut parts, |_, ends| {
            (0..ends.len()).min_by_key(|&part| ends[part]).unwrap_or(0)
        });
        if first + LEAST_GAIN.max(end / LEAST_PART) < end {
            end = first;
        } else {
            parts[own].copy_from_slice(&dealt);
        }
        let alone: u64 = segment.clone().map(|node| times[node as usize]).sum();
        gains.push(alone.saturating_sub(end));
    }
    (parts, gains)
}

/// When the last node of a segment ends, each worker running those of its part in recorded order.
/// `choose` picks a node's part, given the one that it has, and when it would end in each if what
/// comes from other parts came later by [`MOVE`].
fn lay(
    edges: &Edges,
    segment: &Range<u32>,
    workers: usize,
    times: &[u64],
    parts: &mut [u32],
    choose: impl Fn(u32, &[u64]) -> usize,
) -> u64 {
    let mut free = vec![0; workers];
    let mut done: Vec<u64> = Vec::with_capacity(segment.len());
    let mut ends = vec![0; workers];
    for node in segment.clone() {
        let end = |part: usize, delay: u64| {
            let told = |&earlier: &u32| {
                let is_far = parts[earlier as usize] as usize != part;
                done[(earlier - segment.start) as usize] + if is_far { delay } else { 0 }
            };
            let ready = edges.row(node as usize).iter().map(told).max().unwrap_or(0);
            ready.max(free[part]) + times[node as usize]
        };
        ends.iter_mut().enumerate().for_each(|(part, at)| *at = end(part, MOVE));
        let part = choose(parts[node as usize], &ends);
        let end = end(part, MESSAGE);
        parts[node as usize] = part as u32;
        free[part] = end;
        done.push(end);
    }
    done.into_iter().max().unwrap_or(0)
}

/// Within each level (nodes of the same depth), all parts get about the same amount of work. Subject
/// to that, a node goes to the part with most of its predecessors, since dependencies across parts
/// require communication.
fn deal(edges: &Edges, segment: &Range<u32>, workers: usize, times: &[u64], parts: &mut [u32]) {
    let levels = levels(edges, segment);
    let level = |node: u32| levels[(node - segment.start) as usize] as usize;
    let mut work = vec![0; segment.len()];
    segment.clone().for_each(|node| work[level(node)] += times[node as usize]);
    // By level and worker: the work assigned so far.
    let mut dealt = vec![0; segment.len() * workers];
    let mut known = vec![0u32; workers];
    for node in segment.clone() {
        let (level, time) = (level(node), times[node as usize]);
        let dealt = &mut dealt[level * workers..][..workers];
        let earlier = || edges.row(node as usize).iter().map(|&e| parts[e as usize] as usize);
        earlier().for_each(|part| known[part] += 1);
        let most = (work[level] / workers as u64).saturating_sub(time / 2);
        let part = best(dealt, &known, most);
        earlier().for_each(|part| known[part] = 0);
        dealt[part] += time;
        parts[node as usize] = part as u32;
    }
}

/// Of the parts with at most `most` work of a level, the one with most of a node's predecessors
/// (the first of several, so that neighbours stay together); if there is none, the part with the
/// least work.
fn best(dealt: &[u64], known: &[u32], most: u64) -> usize {
    let fits = (0..dealt.len()).filter(|&part| dealt[part] <= most);
    let least = || (0..dealt.len()).min_by_key(|&part| dealt[part]);
    fits.rev().max_by_key(|&part| known[part]).or_else(least).unwrap_or(0)
}

/// The depth of each node: the length of the longest path of dependencies before it.
fn levels(edges: &Edges, segment: &Range<u32>) -> Vec<u32> {
    let mut levels = Vec::with_capacity(segment.len());
    for node in segment.clone() {
        let earlier = edges.row(node as usize).iter();
        let deepest = earlier.map(|&e| levels[(e - segment.start) as usize] + 1).max();
        levels.push(deepest.unwrap_or(0));
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Csr;

    fn deal(rows: &[&[u32]], workers: usize, times: &[u64]) -> Vec<u32> {
        let mut edges = Csr::with_capacity(rows.len(), 0);
        for row in rows {
            row.iter().for_each(|&earlier| edges.push(earlier));
            edges.end_row();
        }
        let all = 0..rows.len() as u32;
        parts(&edges, std::slice::from_ref(&all), workers, times).0
    }

    /// A chain of steps of a long node, four short ones that wait for it, and `more` one after the
    /// other.
    fn chain(steps: u32, more: u32, first: u32) -> impl Iterator<Item = (Vec<u32>, u64)> {
        let each = 5 + more;
        (0..each * steps).map(move |n| {
            let (at, k) = (first + n, n % each);
            let row = match k {
                0 if n == 0 => vec![],
                0 if more == 0 => (at - 4..at).collect(),
                1..5 => vec![at - k],
                5 => (at - 4..at).collect(),
                _ => vec![at - 1],
            };
            (row, if k == 0 { 2_000 } else { 200 })
        })
    }

    #[test]
    fn long_chains_stay_together_though_their_steps_are_wide() {
        let of = |steps: u32| {
            let nodes = chain(steps, 0, 0).chain(chain(steps, 1, 5 * steps));
            let (rows, times): (Vec<Vec<u32>>, Vec<u64>) = nodes.unzip();
            let rows: Vec<&[u32]> = rows.iter().map(|row| &row[..]).collect();
            deal(&rows, 2, &times)
        };
        let parts = of(100);
        assert!(parts[..500].iter().all(|&part| part == parts[0]));
        assert!(parts[500..].iter().all(|&part| part != parts[0]));
        let parts = of(5);
        assert!(parts[..25].iter().any(|&part| part != parts[0]), "there is too little to gain");
    }

    #[test]
    fn gains_are_what_several_workers_save() {
        let mut edges = Csr::with_capacity(3, 0);
        (0..3).for_each(|_| edges.end_row());
        let (parts, gains) = parts(&edges, &[0..2, 2..3], 2, &[9_000, 9_000, 5_000]);
        assert_eq!((&parts[..2], &gains[..]), (&[0, 1][..], &[9_000, 0][..]));
    }

    #[test]
    fn a_chain_stays_together() {
        assert_eq!(deal(&[&[], &[0], &[1], &[2], &[3]], 3, &[10, 90, 10, 30, 10]), [0; 5]);
    }

    #[test]
    fn each_branch_of_a_tree_has_a_part() {
        let rows: [&[u32]; 7] = [&[], &[0], &[0], &[1], &[1], &[2], &[2]];
        assert_eq!(deal(&rows, 2, &[10; 7]), [0, 0, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn short_nodes_lie_beside_a_long_one() {
        let rows: [&[u32]; 5] = [&[]; 5];
        assert_eq!(deal(&rows, 2, &[40, 10, 10, 10, 10]), [0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_wavefront_is_cut_once() {
        const SIDE: u32 = 16;
        let row = |n: u32| {
            let above = n.checked_sub(SIDE);
            let left = (!n.is_multiple_of(SIDE)).then(|| n - 1);
            above.into_iter().chain(left).collect::<Vec<u32>>()
        };
        let rows: Vec<Vec<u32>> = (0..SIDE * SIDE).map(row).collect();
        let parts = deal(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>(), 2, &[10; 256]);
        let part = |n: u32| parts[n as usize];
        let across = (0..SIDE * SIDE).flat_map(|n| row(n).into_iter().map(move |e| (e, n)));
        let across = across.filter(|&(e, n)| part(e) != part(n)).count();
        assert!(across <= 2 * SIDE as usize, "{across}");
        assert!((112..=144).contains(&parts.iter().filter(|&&part| part == 0).count()));
    }
}

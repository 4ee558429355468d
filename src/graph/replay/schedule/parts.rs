//! The initial assignment of nodes to workers.

use std::ops::Range;

use crate::graph::Edges;

/// Assigns the nodes of segments to parts, one per worker; `times` are those of the nodes. Within
/// each level (nodes of the same depth), all parts get about the same amount of work. Subject to
/// that, a node goes to the part with most of its predecessors, since dependencies across parts
/// require communication.
pub(super) fn parts(
    edges: &Edges,
    segments: &[Range<u32>],
    workers: usize,
    times: &[u64],
) -> Vec<u32> {
    let mut parts = vec![0; edges.rows()];
    for segment in segments {
        deal(edges, segment, workers, times, &mut parts);
    }
    parts
}

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
        parts(&edges, std::slice::from_ref(&all), workers, times)
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

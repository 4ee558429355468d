//! Oracles for edges, schedules and replay, which check byte by byte and pair by pair.

use std::collections::HashMap;
use std::ops::Range;

use super::programs::meets;
use crate::graph::memory::layout::{Layout, OUTSIDE};
use crate::graph::{Edges, Graph, Place, Schedule};

/// What a node touches: (resource, bytes, is it written); the host is resource -1.
fn touched(graph: &Graph, n: usize) -> Vec<(i64, Range<usize>, bool)> {
    let node = &graph.ops()[n];
    let (inputs, outputs) = (&node.inputs, &node.outputs);
    let one = |writes| move |p: &Place| (p.block as i64, p.byte_range(), writes);
    let host = node.call.effects.host.then_some((-1, 0..1, true));
    inputs.iter().map(one(false)).chain(outputs.iter().map(one(true))).chain(host).collect()
}

fn conflict(graph: &Graph, a: usize, b: usize) -> bool {
    let other = touched(graph, b);
    touched(graph, a)
        .iter()
        .any(|(r, x, w)| other.iter().any(|(s, y, v)| r == s && (*w || *v) && meets(x, y)))
}

/// For each pair of nodes, whether there is a path.
pub fn paths(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; nodes]; nodes];
    edges.iter().for_each(|&(from, to)| reach[from][to] = true);
    for k in 0..nodes {
        for i in 0..nodes {
            for j in 0..nodes {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
    reach
}

/// All edges as (from, to).
pub fn pairs(edges: &Edges) -> Vec<(usize, usize)> {
    let row =
        |(to, row): (usize, &[u32])| row.iter().map(|&f| (f as usize, to)).collect::<Vec<_>>();
    edges.iter().enumerate().flat_map(row).collect()
}

/// Whether the edges order all nodes that must be ordered.
pub fn ordered(graph: &Graph, edges: &[(usize, usize)]) -> bool {
    let n = graph.ops().len();
    let reach = paths(n, edges);
    (0..n).all(|b| (0..b).all(|a| !conflict(graph, a, b) || reach[a][b]))
}

/// A byte of memory: (block, or -1 for the arena; position).
type Byte = (i64, usize);
/// (block, or -1 for scratch and untouched arena; writer, or -1 for before the run).
type Tag = (i64, i64);

fn home(layout: Option<&Layout>, block: u32) -> (i64, usize) {
    match layout.map(|l| l.offsets[block as usize]).filter(|&o| o != OUTSIDE) {
        Some(offset) => (-1, offset),
        None => (block as i64, 0),
    }
}

fn bytes(layout: Option<&Layout>, place: &Place) -> Vec<Byte> {
    let (memory, base) = home(layout, place.block);
    place.byte_range().map(|byte| (memory, base + byte)).collect()
}

fn scratch(graph: &Graph, layout: Option<&Layout>, n: usize) -> Vec<Byte> {
    let size = graph.kernels()[n].kernel.scratch();
    let Some(layout) = layout.filter(|_| size > 0) else { return Vec::new() };
    let base = layout.scratch.iter().find(|s| s.0 as usize == n).unwrap().1;
    (base..base + size).map(|byte| (-1, byte)).collect()
}

/// The bytes of memory that a node touches, and whether it writes them.
fn touched_bytes(graph: &Graph, layout: &Layout, n: usize) -> HashMap<Byte, bool> {
    let node = &graph.ops()[n];
    let all = |p: &Place| bytes(Some(layout), p);
    let mut touched: HashMap<Byte, bool> =
        node.inputs.iter().flat_map(all).map(|byte| (byte, false)).collect();
    let written = node.outputs.iter().flat_map(all);
    touched.extend(written.chain(scratch(graph, Some(layout), n)).map(|byte| (byte, true)));
    touched
}

/// Whether the schedule orders all nodes of each segment that touch the same bytes.
pub fn scheduled(graph: &Graph, layout: &Layout, schedule: &Schedule) -> bool {
    let reach = paths(graph.ops().len(), &pairs(&schedule.edges));
    let touched: Vec<_> = (0..graph.ops().len()).map(|n| touched_bytes(graph, layout, n)).collect();
    let conflict = |a: usize, b: usize| {
        touched[a].iter().any(|(byte, w)| touched[b].get(byte).is_some_and(|v| *w || *v))
    };
    schedule.segments.iter().all(|segment| {
        let nodes = segment.start as usize..segment.end as usize;
        let mut pairs = nodes.clone().flat_map(|b| (nodes.start..b).map(move |a| (a, b)));
        pairs.all(|(a, b)| !conflict(a, b) || reach[a][b])
    })
}

/// Runs the schedule over the layout, or with separate memory for each block, and returns what each
/// node finds in each byte that matters to it. The last list is what blocks outside the arena hold
/// at the end.
pub fn found(graph: &Graph, layout: Option<&Layout>, schedule: &[u32]) -> Vec<Vec<Tag>> {
    let mut memory: HashMap<Byte, Tag> = HashMap::new();
    let mut found = vec![Vec::new(); graph.ops().len() + 1];
    let untouched = |byte: &Byte| (byte.0, -1);
    for &n in schedule {
        let node = &graph.ops()[n as usize];
        let outputs = &node.outputs;
        let gaps = outputs.iter().filter(|p| p.meta.bytes() != p.byte_range().len());
        for place in node.inputs.iter().chain(gaps) {
            for byte in bytes(layout, place) {
                found[n as usize].push(*memory.get(&byte).unwrap_or(&untouched(&byte)));
            }
        }
        for place in outputs {
            let all = bytes(layout, place).into_iter();
            memory.extend(all.map(|byte| (byte, (place.block as i64, n as i64))));
        }
        memory.extend(scratch(graph, layout, n as usize).into_iter().map(|b| (b, (-1, n as i64))));
    }
    for block in (0..graph.roles().len() as u32).filter(|&b| graph.offset(b).is_none()) {
        for byte in 0..graph.block_bytes(block) {
            let byte = (block as i64, byte);
            found[graph.ops().len()].push(*memory.get(&byte).unwrap_or(&untouched(&byte)));
        }
    }
    found
}

/// Whether all operands that a node writes are apart from the others, except for pairs that may
/// share the same place.
fn apart(graph: &Graph, layout: &Layout, n: usize) -> bool {
    let node = &graph.ops()[n];
    let (inputs, outputs) = (&node.inputs, &node.outputs);
    let clash = |a: &[Byte], b: &[Byte]| a.iter().any(|byte| b.contains(byte));
    let all = |p: &Place| bytes(Some(layout), p);
    let work = scratch(graph, Some(layout), n);
    (0..outputs.len()).all(|o| {
        let to = all(&outputs[o]);
        let may = |i: usize| {
            let pair = &(i, o);
            (node.call.effects.state.contains(pair)
                || node.call.kind.family().in_place().contains(pair))
                && to == all(&inputs[i])
                && inputs[i].meta == outputs[o].meta
        };
        (0..inputs.len()).all(|i| may(i) || !clash(&to, &all(&inputs[i])))
            && (0..o).all(|k| !clash(&to, &all(&outputs[k])))
            && !clash(&to, &work)
    }) && inputs.iter().all(|p| !clash(&all(p), &work))
}

/// Whether a schedule over a layout has the same effect as the recording.
pub fn replays(graph: &Graph, layout: &Layout, schedule: &[u32]) -> bool {
    let n = graph.ops().len();
    let recorded: Vec<u32> = (0..n as u32).collect();
    let (want, got) = (found(graph, None, &recorded), found(graph, Some(layout), schedule));
    let temporary = |block: i64| block >= 0 && graph.offset(block as u32).is_some();
    // What a temporary block held before it was written does not matter.
    let same = |(w, g): (&Tag, &Tag)| w == g || temporary(w.0) && w.1 == -1;
    let all = |(w, g): (&Vec<Tag>, &Vec<Tag>)| w.iter().zip(g).all(same);
    want.iter().zip(&got).all(all) && (0..n).all(|n| apart(graph, layout, n))
}

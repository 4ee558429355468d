//! A graph as text: a short summary for people, JSON for programs.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::graph::{Graph, Place, Role};
use crate::ops::Kind;

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Argument, Role::Captured, Role::Slot, Role::Temporary];

    /// Its name, as `summary` and `to_json` print it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Argument => "argument",
            Role::Captured => "captured",
            Role::Slot => "slot",
            Role::Temporary => "temporary",
        }
    }
}

impl Graph {
    /// The operations, blocks and memory of the graph, in a few lines.
    pub fn summary(&self) -> String {
        let (nodes, edges) = (self.ops().len(), self.edges().items().len());
        let (bound, arena) = (self.lower_bound_bytes(), self.arena_bytes());
        let over = 100.0 * (arena - bound) as f64 / bound.max(1) as f64;
        format!(
            "{nodes} nodes, {} blocks, {edges} edges\noperations: {}\nblocks: {}\n\
             arena: {}, {over:.2}% over the lower bound of {}",
            self.roles().len(),
            self.operations(),
            self.blocks(),
            size(arena),
            size(bound),
        ) + &self.shared()
    }

    /// The line on how many operations several threads share, if any.
    fn shared(&self) -> String {
        let (segments, nodes) = (self.segments(), self.segments().iter().map(|s| s.len()));
        let threads = self.schedule().map_or(1, |schedule| schedule.workers);
        match (nodes.sum::<usize>(), segments.len()) {
            (0, _) => String::new(),
            (nodes, count) => {
                format!("\nshared: {nodes} nodes in {count} parts, on {threads} threads")
            }
        }
    }

    /// The operations with their counts, the most frequent first.
    fn operations(&self) -> String {
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        self.ops().iter().for_each(|op| *counts.entry(op.call.name()).or_default() += 1);
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        list(counts.into_iter().map(|(name, count)| format!("{count} {name}")))
    }

    /// How many blocks there are of each role, and their bytes.
    fn blocks(&self) -> String {
        let of = |role: Role| (0u32..).zip(self.roles()).filter(move |(_, r)| **r == role);
        let one = |role: Role| {
            let bytes = of(role).map(|(block, _)| self.block_bytes(block)).sum();
            format!("{} {} ({})", of(role).count(), role.name(), size(bytes))
        };
        list(Role::ALL.into_iter().filter(|&role| of(role).count() > 0).map(one))
    }

    /// Everything: `nodes` (name, attributes, inputs, outputs, scratch, floating-point operations,
    /// bytes read and written, the recorder's number for the source line), `blocks` (bytes, role,
    /// lifetime, offset in the arena, whether it is written), `edges` (the nodes that must run
    /// before each node), `segments` (the ranges of nodes that several threads share), `curve`
    /// (bytes that are live in the arena while each node runs) and `totals`.
    pub fn to_json(&self) -> Value {
        let blocks = 0..self.roles().len() as u32;
        json!({
            "nodes": (0..self.ops().len()).map(|n| self.node_json(n)).collect::<Vec<_>>(),
            "blocks": blocks.map(|block| self.block_json(block)).collect::<Vec<_>>(),
            "edges": self.edges().iter().collect::<Vec<_>>(),
            "segments": self.segments().iter().map(|s| (s.start, s.end)).collect::<Vec<_>>(),
            "curve": self.curve(),
            "totals": {
                "nodes": self.ops().len(),
                "blocks": self.roles().len(),
                "edges": self.edges().items().len(),
                "arena_bytes": self.arena_bytes(),
                "lower_bound_bytes": self.lower_bound_bytes(),
                "peak_bytes": self.peak_bytes(),
            },
        })
    }

    fn node_json(&self, n: usize) -> Value {
        let op = &self.ops()[n];
        let places = |places: &[Place]| places.iter().map(place_json).collect::<Vec<_>>();
        let cost = op.call.cost();
        let scratch = self
            .scratch_offset(n)
            .map(|offset| json!({"bytes": self.kernels()[n].kernel.scratch(), "offset": offset}));
        json!({
            "name": op.call.name(),
            "attributes": attributes(&op.call.kind),
            "inputs": places(&op.inputs),
            "outputs": places(&op.outputs),
            "scratch": scratch,
            "flops": cost.flops,
            "bytes": cost.bytes,
            "origin": op.origin,
        })
    }

    fn block_json(&self, block: u32) -> Value {
        let life = self.lifetime(block);
        json!({
            "bytes": self.block_bytes(block),
            "role": self.roles()[block as usize].name(),
            "first": life.map(|life| life.first),
            "last": life.map(|life| life.last),
            "offset": self.offset(block),
            "is_written": self.is_written(block),
        })
    }
}

/// An operation's attributes without its name.
fn attributes(kind: &Kind) -> Value {
    let mut fields = serde_json::to_value(kind).expect("attributes are plain data");
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("op");
    }
    fields
}

fn place_json(place: &Place) -> Value {
    json!({
        "block": place.block,
        "offset": place.offset,
        "dtype": place.meta.dtype.to_string(),
        "shape": &place.meta.shape[..],
        "strides": &place.meta.strides[..],
    })
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A number of bytes in human-readable form.
pub fn size(bytes: usize) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.2} {unit}") }
}

#[cfg(test)]
mod tests;

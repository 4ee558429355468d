//! The links and the consumer of a region: each processes a block of rows after the one before it.
#![allow(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use super::stripes::Stripes;
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::cpu;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;
use crate::ops::region::{Part, Region};

/// Prepares a region without a producer; `values` are the metas of all its values.
///
/// # Errors
/// Those of the operations.
pub fn prepare(region: &Region, values: &[Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let stripes = match region.operations().count() {
        1 => None,
        _ => Stripes::of(region, values),
    };
    let Some(stripes) = stripes else {
        let blocks = Blocks::new(1, 1, Width::ONE);
        let passes = blocks.for_both(|_| Pass::new(region, values, |_| 0, width))?;
        return Ok(Arc::new(Blocked { blocks, passes }));
    };
    let blocks = Blocks::new(stripes.rows, stripes.block_rows(width), width);
    let inner = if blocks.is_split() { Width::ONE } else { width };
    let passes = blocks.for_both(|rows| {
        let metas: Vec<Meta> = (0..values.len()).map(|v| stripes.block(values, v, rows)).collect();
        Pass::new(region, &metas, |v| stripes.row_bytes(values, v), inner)
    })?;
    Ok(Arc::new(Blocked { blocks, passes }))
}

/// Where an operation finds an operand, or writes a result.
#[derive(Clone, Copy)]
enum Location {
    /// The number of the input, and the bytes from row to row.
    Input(usize, usize),
    /// The number of the output, and the bytes from row to row.
    Output(usize, usize),
    /// The offset in bytes into the scratch memory.
    Between(usize),
}

/// The kernels for a block.
#[derive(Clone)]
pub struct Pass {
    stages: Vec<Stage>,
    /// Bytes of intermediate results; the kernels' own scratch memory follows them.
    between: usize,
    /// Bytes of scratch memory, a multiple of [`ALIGNMENT`].
    pub scratch: usize,
}

#[derive(Clone)]
struct Stage {
    kernel: Arc<dyn Kernel>,
    operands: SmallVec<[Location; 4]>,
    results: SmallVec<[Location; 2]>,
}

impl Pass {
    /// `step` returns the bytes from row to row of a value.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn new(
        region: &Region,
        values: &[Meta],
        step: impl Fn(usize) -> usize,
        width: Width,
    ) -> Result<Pass> {
        let (locations, between) = locations(region, values, step);
        let stages = (region.inputs..).zip(region.parts()).map(|(at, (part, link))| {
            // Only the consumer, which comes last, may have several results.
            let results = at..if part == Part::Consumer { values.len() } else { at + 1 };
            let io = link.operands.iter().copied().chain(results.clone());
            let io: SmallVec<[&Meta; 8]> = io.map(|v| &values[v]).collect();
            let kernel = cpu::prepare(&link.kind, &io, width)?;
            let operands = link.operands.iter().map(|&v| locations[v]).collect();
            Ok(Stage { kernel, operands, results: locations[results].into() })
        });
        let stages = stages.collect::<Result<Vec<_>>>()?;
        let scratch = stages.iter().map(|stage| stage.kernel.scratch()).max().unwrap_or(0);
        Ok(Pass { stages, between, scratch: between + scratch.next_multiple_of(ALIGNMENT) })
    }

    /// Bytes that the kernels hold.
    pub fn bytes(&self) -> usize {
        self.stages.iter().map(|stage| stage.kernel.bytes()).sum()
    }

    /// Runs on the rows of inputs and outputs from `row` on; `space` has [`Pass::scratch`] bytes.
    pub fn run(&self, io: &Io, row: usize, space: *mut u8) -> Result<()> {
        let address = |at: &Location| match *at {
            Location::Input(i, step) => io.input::<u8>(i).wrapping_add(row * step).cast_mut(),
            Location::Output(o, step) => io.output::<u8>(o).wrapping_add(row * step),
            Location::Between(at) => space.wrapping_add(at),
        };
        for stage in &self.stages {
            let operands: SmallVec<[*const u8; 8]> =
                stage.operands.iter().map(|at| address(at).cast_const()).collect();
            let results: SmallVec<[*mut u8; 4]> = stage.results.iter().map(address).collect();
            let scratch = space.wrapping_add(self.between);
            // SAFETY: `io` is what this was prepared for; each thread has its own scratch memory,
            // and blocks are disjoint.
            stage.kernel.run(&unsafe { Io::new(&operands, &results, scratch) })?;
        }
        Ok(())
    }
}

/// The location of each value, and the total bytes of the intermediate results.
fn locations(
    region: &Region,
    values: &[Meta],
    step: impl Fn(usize) -> usize,
) -> (Vec<Location>, usize) {
    let mut locations: Vec<Location> =
        (0..region.inputs).map(|i| Location::Input(i, step(i))).collect();
    let last_use = |value: usize| {
        let links = (0..).zip(region.operations());
        links.filter(|(_, link)| link.operands.contains(&value)).map(|(i, _)| i).last().unwrap_or(0)
    };
    let room = values[region.inputs..].iter().map(Meta::bytes).max().unwrap_or(0);
    let room = room.next_multiple_of(ALIGNMENT);
    // For each slot of the scratch memory, the last operation that reads its contents.
    let mut rooms: Vec<usize> = Vec::new();
    for i in 0..values.len() - region.inputs {
        if let Some(output) = region.outputs.iter().position(|&o| o == i) {
            locations.push(Location::Output(output, step(region.inputs + i)));
            continue;
        }
        let free = rooms.iter().position(|&last| last < i).unwrap_or(rooms.len());
        rooms.resize(rooms.len().max(free + 1), 0);
        rooms[free] = last_use(region.inputs + i).max(i);
        locations.push(Location::Between(free * room));
    }
    (locations, rooms.len() * room)
}

/// A region, block by block.
struct Blocked {
    blocks: Blocks,
    passes: [Pass; 2],
}

impl Blocked {
    /// Bytes of scratch memory per thread.
    fn space(&self) -> usize {
        self.passes[0].scratch.max(self.passes[1].scratch)
    }
}

impl Kernel for Blocked {
    fn scratch(&self) -> usize {
        self.blocks.seats() * self.space()
    }

    fn threads(&self) -> usize {
        if self.blocks.is_split() {
            return self.blocks.seats();
        }
        self.passes[0].stages.iter().map(|stage| stage.kernel.threads()).max().unwrap_or(1)
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.passes.iter().map(Pass::bytes).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.blocks.each(|seat, rows| {
            let space = io.scratch::<u8>().wrapping_add(seat * self.space());
            self.blocks.of(&self.passes, rows).run(io, rows.start, space)
        })
    }

    /// What the last operation checks has the same places among the region's inputs and its own.
    fn check(&self, io: &Io) -> Result<()> {
        self.passes[0].stages.last().map_or(Ok(()), |stage| stage.kernel.check(io))
    }
}

//! All steps of a recurrence. Rows are independent, so each thread takes blocks of them through all
//! steps and waits for no other thread.
#![allow(unsafe_code)]

use std::ops::Range;

use super::cells::{Cell, Elman, Gru, LinearGru, Lstm, Row};
use super::plan::Plan;
use super::products::{Product, Products, Weights};
use super::sequence::{self, Rows, Sequence};
use crate::error::Result;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::recurrent::{self, Part, Recurrent, Sizes};
use crate::ops::{Family, Meta};

/// The kernel, which computes in type `W`.
pub struct Forward<W> {
    op: Recurrent,
    sizes: Sizes,
    /// The second product is that of a GRU's candidate, or a projection.
    plan: Plan<W>,
}

impl<W: Wide> Forward<W> {
    /// The kernel for contiguous tensors of type `W`.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(op: &Recurrent, io: &[&Meta], width: Width) -> Result<Self> {
        let form = op.form;
        let sizes = form.sizes(op.name(), io[0], io[1])?;
        let blocks = Blocks::new(sizes.rows, sequence::block(sizes.rows), width);
        let products = Products::new(&blocks, weights(op, io, &sizes), sizes.steps)?;
        // Of states, cell states, sums, units, and the results of the second product.
        let cell = if form.has_cell() { sizes.units } else { 0 };
        let second = products.second.as_ref().map_or(0, Product::columns);
        let columns = [sizes.state, cell, products.first.columns(), sizes.units, second];
        Ok(Forward { op: op.clone(), sizes, plan: Plan::new(blocks, products, columns) })
    }

    fn blocks(&self, io: &Io, sequence: Sequence, cell: impl Cell<W>) -> Result<()> {
        let (plan, places) = (&self.plan, Places::new(io, &self.op, sequence));
        plan.each(io, |[state, cells, sums, units, second], scratch, rows| {
            let room = Room { state, cell: cells, sums, units, second };
            let columns = plan.columns;
            Block { plan, io, sequence, cell, places, rows, columns, room, scratch }.run()
        })
    }
}

/// The weights of the first and of the second product.
fn weights(op: &Recurrent, io: &[&Meta], sizes: &Sizes) -> (Weights, Option<Weights>) {
    let Sizes { units, state, .. } = *sizes;
    let part = |columns: usize, offset: usize| {
        let meta = Meta { shape: [state, columns].into(), ..io[1].clone() };
        Weights { meta, input: 1, offset }
    };
    let parts = op.inputs();
    let projection = parts.iter().position(|part| *part == Part::Projection);
    match op.form.cell {
        recurrent::Cell::Gru => (part(2 * units, 0), Some(part(units, 2 * units))),
        cell => {
            let meta = |input: usize| Weights { meta: io[input].clone(), input, offset: 0 };
            (part(cell.gates() * units, 0), projection.map(meta))
        }
    }
}

impl<W: Wide> Kernel for Forward<W> {
    fn scratch(&self) -> usize {
        self.plan.scratch()
    }

    fn threads(&self) -> usize {
        self.plan.blocks.seats()
    }

    fn run(&self, io: &Io) -> Result<()> {
        // SAFETY: `io` is what this was prepared for, with as much scratch memory as requested.
        let sequence = unsafe {
            self.plan.pack(io)?;
            Sequence::new(self.op.form, self.sizes, io)
        };
        let vector = |part: Part| {
            let rows: Rows<W> = sequence.input(io, &self.op.inputs(), part);
            // SAFETY: these inputs have one row, and nothing is written to them.
            unsafe { rows.get(0) }
        };
        match self.op.form.cell {
            recurrent::Cell::Tanh => self.blocks(io, sequence, Elman::<false>),
            recurrent::Cell::Relu => self.blocks(io, sequence, Elman::<true>),
            recurrent::Cell::Lstm => self.blocks(io, sequence, Lstm(vector(Part::Peepholes))),
            recurrent::Cell::Gru => self.blocks(io, sequence, Gru),
            recurrent::Cell::LinearGru => self.blocks(io, sequence, LinearGru(vector(Part::Bias))),
        }
    }
}

/// The tensors.
#[derive(Clone, Copy)]
struct Places<W> {
    given: Rows<W>,
    first_state: Rows<W>,
    first_cell: Rows<W>,
    states: Rows<W>,
    last_state: Rows<W>,
    last_cell: Rows<W>,
    gates: Rows<W>,
    cells: Rows<W>,
}

impl<W> Places<W> {
    fn new(io: &Io, op: &Recurrent, sequence: Sequence) -> Self {
        let (inputs, outputs) = (op.inputs(), op.outputs());
        let (input, output) =
            (|part| sequence.input(io, &inputs, part), |part| sequence.output(io, &outputs, part));
        Places {
            given: input(Part::Given),
            first_state: input(Part::State),
            first_cell: input(Part::Cell),
            states: output(Part::States),
            last_state: output(Part::State),
            last_cell: output(Part::Cell),
            gates: output(Part::Gates),
            cells: output(Part::Cells),
        }
    }
}

/// A thread's arrays, with a row for each of the block's.
struct Room<'a, W> {
    state: &'a mut [W],
    cell: &'a mut [W],
    sums: &'a mut [W],
    units: &'a mut [W],
    second: &'a mut [W],
}

/// Row `row` of an array of this many columns.
#[inline(always)]
pub fn row<W>(of: &[W], row: usize, columns: usize) -> &[W] {
    &of[row * columns..][..columns]
}

/// The same, to be written.
#[inline(always)]
pub fn row_mut<W>(of: &mut [W], row: usize, columns: usize) -> &mut [W] {
    &mut of[row * columns..][..columns]
}

/// A block of rows on its way through all steps.
struct Block<'a, 'io, W, C> {
    plan: &'a Plan<W>,
    io: &'a Io<'io>,
    sequence: Sequence<'a>,
    cell: C,
    places: Places<W>,
    rows: &'a Range<usize>,
    columns: [usize; 5],
    room: Room<'a, W>,
    scratch: *mut u8,
}

impl<W: Wide, C: Cell<W>> Block<'_, '_, W, C> {
    fn run(mut self) -> Result<()> {
        // SAFETY: the tensors are those that the kernel was prepared for, and no other block
        // accesses these rows of what is written.
        unsafe {
            self.places.first_state.load(self.rows, self.room.state);
            self.places.first_cell.load(self.rows, self.room.cell);
            for step in 0..self.sequence.sizes.steps {
                self.multiply(false)?;
                W::Reach::run(Isa::active(), Step { block: &mut self, step, second: false });
                if self.plan.products.second.is_some() {
                    self.multiply(true)?;
                    W::Reach::run(Isa::active(), Step { block: &mut self, step, second: true });
                }
            }
            self.places.last_state.store(self.rows, self.room.state);
            self.places.last_cell.store(self.rows, self.room.cell);
            for tensor in [self.places.states, self.places.gates, self.places.cells] {
                self.sequence.clear(tensor, self.rows);
            }
        }
        Ok(())
    }

    unsafe fn multiply(&mut self, second: bool) -> Result<()> {
        let Room { state, sums, units, second: results, .. } = &mut self.room;
        let which = usize::from(self.rows.len() != self.plan.blocks.sizes()[0]);
        let (products, packed) = (&self.plan.products, self.io.scratch::<u8>());
        let behind = products.behind(packed);
        // SAFETY: by the caller's promise; the weights are packed before blocks run.
        unsafe {
            match &products.second {
                Some(product) if second => {
                    product.run(which, self.io, behind, (&**units, &mut **results), self.scratch)
                }
                _ => products.first.run(
                    which,
                    self.io,
                    packed,
                    (&**state, &mut **sums),
                    self.scratch,
                ),
            }
        }
    }
}

/// What follows a product in a step.
struct Step<'a, 'b, 'io, W, C> {
    block: &'a mut Block<'b, 'io, W, C>,
    step: usize,
    second: bool,
}

impl<W: Wide, C: Cell<W>> Body for Step<'_, '_, '_, W, C> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Step { block, step, second } = self;
        let (sequence, first) = (block.sequence, block.rows.start);
        let is_last = second == block.plan.products.second.is_some();
        for i in sequence.active(step, block.rows) {
            let at = sequence.at(step, first + i);
            // SAFETY: the step is one that the row has, and the row is the block's own.
            unsafe {
                match second {
                    false => block.first::<L>(i, at),
                    true if !sequence.form.projection => block.second::<L>(i, at),
                    true => {}
                }
                if is_last {
                    block.settle(i, at);
                }
            }
        }
    }
}

impl<W: Wide, C: Cell<W>> Block<'_, '_, W, C> {
    /// Row `i` in the step that lies at `at`. The gates may be the same tensor as what is given: a
    /// row is read before it is written.
    #[inline(always)]
    unsafe fn row(&mut self, i: usize, at: usize) -> Row<'_, W> {
        let [state, cell, sums, units, second] = self.columns;
        let room = &mut self.room;
        // SAFETY: by the caller's promise.
        let (given, kept) = unsafe { (self.places.given.get(at), self.places.cells.put(at)) };
        Row {
            given,
            sums: row_mut(room.sums, i, sums),
            state: row(room.state, i, state),
            cell: row_mut(room.cell, i, cell),
            units: row_mut(room.units, i, units),
            second: row_mut(room.second, i, second),
            kept,
        }
    }

    #[inline(always)]
    unsafe fn first<L: Level>(&mut self, i: usize, at: usize) {
        let (cell, sums) = (self.cell, self.columns[2]);
        // SAFETY: by the caller's promise; what was given is not read any more.
        let gates = unsafe {
            cell.first::<L>(self.row(i, at));
            self.places.gates.put(at)
        };
        let count = sums.min(gates.len());
        gates[..count].copy_from_slice(&row(self.room.sums, i, sums)[..count]);
    }

    #[inline(always)]
    unsafe fn second<L: Level>(&mut self, i: usize, at: usize) {
        let (cell, [_, _, sums, _, second]) = (self.cell, self.columns);
        // SAFETY: as in `first`.
        let gates = unsafe {
            cell.second::<L>(self.row(i, at));
            self.places.gates.put(at)
        };
        gates[sums..].copy_from_slice(row(self.room.second, i, second));
    }

    /// The new state.
    #[inline(always)]
    unsafe fn settle(&mut self, i: usize, at: usize) {
        let [state, _, _, units, second] = self.columns;
        let new = match self.sequence.form.projection {
            true => row(self.room.second, i, second),
            false => row(self.room.units, i, units),
        };
        row_mut(self.room.state, i, state).copy_from_slice(new);
        // SAFETY: by the caller's promise.
        unsafe { self.places.states.put(at) }.copy_from_slice(new);
    }
}

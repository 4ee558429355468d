//! The gradients of all steps of a recurrence, from the last to the first, in blocks of rows.
#![allow(unsafe_code)]

use std::ops::Range;

use super::cells::{Back, Cell, Elman, Gru, LinearGru, Lstm};
use super::forward::{row, row_mut};
use super::plan::Plan;
use super::products::{Products, Weights};
use super::sequence::{self, Rows, Sequence};
use crate::error::Result;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::recurrent::{self, Part, RecurrentGrad, Sizes};
use crate::ops::{Family, Meta};

/// The kernel, which computes in type `W`.
pub struct Backward<W> {
    op: RecurrentGrad,
    sizes: Sizes,
    /// The first product goes from the gradients of the gates to that of the state before; the
    /// second is a GRU's candidate, or a projection, which comes before the gates.
    plan: Plan<W>,
}

impl<W: Wide> Backward<W> {
    /// The kernel for contiguous tensors of type `W`.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(op: &RecurrentGrad, io: &[&Meta], width: Width) -> Result<Self> {
        let sizes = op.form.sizes(op.name(), io[op.gates()], io[op.weight()])?;
        let blocks = Blocks::new(sizes.rows, sequence::block(sizes.rows), width);
        let products = Products::new(&blocks, weights(op, io, &sizes), sizes.steps)?;
        let columns = columns(op, &sizes, &products);
        Ok(Backward { op: op.clone(), sizes, plan: Plan::new(blocks, products, columns) })
    }

    fn blocks<C: Cell<W>>(&self, io: &Io, sequence: Sequence, cell: C) -> Result<()> {
        let (plan, places) = (&self.plan, Places::new(io, &self.op, sequence));
        plan.each(io, |[state, cells, sums, tail, product], scratch, rows| {
            let room = Room { state, cell: cells, sums, tail, product };
            let columns = plan.columns;
            Block { plan, io, sequence, cell, places, rows, columns, room, scratch }.run()
        })
    }
}

/// The columns of a thread's arrays: gradients of states and of cell states, those of the sums and
/// of what stands apart, and the results of products.
fn columns(op: &RecurrentGrad, sizes: &Sizes, products: &Products) -> [usize; 5] {
    let (Sizes { units, state, .. }, form) = (*sizes, &op.form);
    let is_apart = products.second.is_some() || form.cell == recurrent::Cell::LinearGru;
    [
        state,
        if form.has_cell() { units } else { 0 },
        products.first.depth(),
        if is_apart { units } else { 0 },
        state.max(units),
    ]
}

/// The weights of the first and of the second product, which are those of forward, transposed.
fn weights(op: &RecurrentGrad, io: &[&Meta], sizes: &Sizes) -> (Weights, Option<Weights>) {
    let Sizes { units, state, .. } = *sizes;
    let (input, row) = (op.weight(), op.form.cell.gates() * units);
    let transposed = |input: usize, [rows, columns]: [usize; 2], step: usize, offset: usize| {
        let strides = [1, step as isize][..].into();
        let meta = Meta { dtype: io[input].dtype, shape: [rows, columns].into(), strides };
        Weights { meta, input, offset }
    };
    let projection = op.inputs().iter().position(|part| *part == Part::Projection);
    match op.form.cell {
        recurrent::Cell::Gru => {
            let candidate = transposed(input, [units, state], row, 2 * units);
            (transposed(input, [2 * units, state], row, 0), Some(candidate))
        }
        _ => {
            let projected = |input: usize| transposed(input, [state, units], state, 0);
            (transposed(input, [row, state], row, 0), projection.map(projected))
        }
    }
}

impl<W: Wide> Kernel for Backward<W> {
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
        match self.op.form.cell {
            recurrent::Cell::Tanh => self.blocks(io, sequence, Elman::<false>),
            recurrent::Cell::Relu => self.blocks(io, sequence, Elman::<true>),
            recurrent::Cell::Lstm => {
                let peepholes: Rows<W> = sequence.input(io, &self.op.inputs(), Part::Peepholes);
                // SAFETY: they have one row, and nothing is written to them.
                self.blocks(io, sequence, Lstm(unsafe { peepholes.get(0) }))
            }
            recurrent::Cell::Gru => self.blocks(io, sequence, Gru),
            recurrent::Cell::LinearGru => self.blocks(io, sequence, LinearGru(&[])),
        }
    }
}

/// The tensors.
#[derive(Clone, Copy)]
struct Places<W> {
    dstates: Rows<W>,
    last_state: Rows<W>,
    last_cell: Rows<W>,
    gates: Rows<W>,
    states: Rows<W>,
    first_state: Rows<W>,
    cells: Rows<W>,
    first_cell: Rows<W>,
    dgiven: Rows<W>,
    first_dstate: Rows<W>,
    first_dcell: Rows<W>,
    made: Rows<W>,
    projected: Rows<W>,
}

impl<W> Places<W> {
    fn new(io: &Io, op: &RecurrentGrad, sequence: Sequence) -> Self {
        let (inputs, outputs) = (op.inputs(), op.outputs());
        let input = |part| sequence.input(io, &inputs, part);
        let saved = |part| sequence.saved(io, &inputs, part);
        let output = |part| sequence.output(io, &outputs, part);
        Places {
            dstates: input(Part::States),
            last_state: input(Part::State),
            last_cell: input(Part::Cell),
            gates: saved(Part::Gates),
            states: saved(Part::States),
            first_state: saved(Part::State),
            cells: saved(Part::Cells),
            first_cell: saved(Part::Cell),
            dgiven: output(Part::Given),
            first_dstate: output(Part::State),
            first_dcell: output(Part::Cell),
            made: output(Part::Cells),
            projected: output(Part::States),
        }
    }
}

/// A thread's arrays, with a row for each of the block's.
struct Room<'a, W> {
    state: &'a mut [W],
    cell: &'a mut [W],
    sums: &'a mut [W],
    tail: &'a mut [W],
    product: &'a mut [W],
}

/// A block of rows on its way back through all steps.
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
        let is_projected = self.sequence.form.projection;
        // SAFETY: the tensors are those that the kernel was prepared for, and no other block
        // accesses these rows of what is written.
        unsafe {
            self.places.last_state.load(self.rows, self.room.state);
            self.places.last_cell.load(self.rows, self.room.cell);
            for step in (0..self.sequence.sizes.steps).rev() {
                self.pass(step, Stage::Take);
                if is_projected {
                    self.multiply(Stage::Take)?;
                }
                self.pass(step, Stage::Gates);
                if self.plan.products.second.is_some() && !is_projected {
                    self.multiply(Stage::Gates)?;
                    self.pass(step, Stage::Second);
                }
                self.multiply(Stage::Second)?;
                self.pass(step, Stage::Give);
            }
            self.places.first_dstate.store(self.rows, self.room.state);
            self.places.first_dcell.store(self.rows, self.room.cell);
            for tensor in [self.places.dgiven, self.places.made, self.places.projected] {
                self.sequence.clear(tensor, self.rows);
            }
        }
        Ok(())
    }

    fn pass(&mut self, step: usize, stage: Stage) {
        W::Reach::run(Isa::active(), Step { block: self, step, stage });
    }

    /// The product behind a stage.
    unsafe fn multiply(&mut self, behind: Stage) -> Result<()> {
        let Room { state, sums, tail, product, .. } = &mut self.room;
        let which = usize::from(self.rows.len() != self.plan.blocks.sizes()[0]);
        let (products, packed) = (&self.plan.products, self.io.scratch::<u8>());
        let later = products.behind(packed);
        // SAFETY: by the caller's promise; the weights are packed before blocks run.
        unsafe {
            match (&products.second, behind) {
                (Some(second), Stage::Take) => {
                    second.run(which, self.io, later, (&**state, &mut **tail), self.scratch)
                }
                (Some(second), Stage::Gates) => {
                    second.run(which, self.io, later, (&**tail, &mut **product), self.scratch)
                }
                _ => products.first.run(
                    which,
                    self.io,
                    packed,
                    (&**sums, &mut **product),
                    self.scratch,
                ),
            }
        }
    }
}

/// The parts of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Adds the gradient that the states have from outside.
    Take,
    /// The gradients of the gates.
    Gates,
    /// What depends on the second product.
    Second,
    /// Adds the gradient that came by the state.
    Give,
}

struct Step<'a, 'b, 'io, W, C> {
    block: &'a mut Block<'b, 'io, W, C>,
    step: usize,
    stage: Stage,
}

impl<W: Wide, C: Cell<W>> Body for Step<'_, '_, '_, W, C> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Step { block, step, stage } = self;
        let (sequence, first) = (block.sequence, block.rows.start);
        for i in sequence.active(step, block.rows) {
            let at = sequence.at(step, first + i);
            // SAFETY: the step is one that the row has, and the row is the block's own.
            unsafe {
                match stage {
                    Stage::Take => block.take(i, at),
                    Stage::Give => block.give(i),
                    Stage::Gates | Stage::Second => block.gates::<L>(i, at, step, stage),
                }
            }
        }
    }
}

impl<W: Wide, C: Cell<W>> Block<'_, '_, W, C> {
    #[inline(always)]
    unsafe fn take(&mut self, i: usize, at: usize) {
        let own = row_mut(self.room.state, i, self.columns[0]);
        // SAFETY: by the caller's promise.
        let (outside, projected) =
            unsafe { (self.places.dstates.get(at), self.places.projected.put(at)) };
        own.iter_mut().zip(outside).for_each(|(own, &outside)| *own = *own + outside);
        if !projected.is_empty() {
            projected.copy_from_slice(own);
        }
    }

    #[inline(always)]
    fn give(&mut self, i: usize) {
        let state = self.columns[0];
        let made = row(self.room.product, i, state);
        let own = row_mut(self.room.state, i, state);
        own.iter_mut().zip(made).for_each(|(own, &made)| *own = *own + made);
    }

    /// The gradients of the gates of row `i`, and what depends on them.
    #[inline(always)]
    unsafe fn gates<L: Level>(&mut self, i: usize, at: usize, step: usize, stage: Stage) {
        let [state, cell, sums, tail, _] = self.columns;
        let (places, n) = (&self.places, self.rows.start + i);
        let has_cell = self.sequence.form.has_cell();
        let (all, start) = match has_cell {
            true => (places.cells, places.first_cell),
            false => (places.states, places.first_state),
        };
        let units = self.sequence.sizes.units;
        let is_projected = self.sequence.form.projection;
        let room = &mut self.room;
        let (up, apart): (&mut [W], &mut [W]) = match is_projected {
            true => {
                // All of it passes through the projection.
                row_mut(room.state, i, state).fill(W::ZERO);
                (row_mut(room.tail, i, tail), &mut [])
            }
            false => (row_mut(room.state, i, state), row_mut(room.tail, i, tail)),
        };
        // SAFETY: by the caller's promise; a row has a step before all but its first one.
        let made = unsafe {
            Back {
                gates: places.gates.get(at),
                state: places.states.get(at),
                before: match step {
                    0 => start.get(n),
                    _ => all.get(self.sequence.at(step - 1, n)),
                },
                kept: places.cells.get(at),
                up,
                cell: row_mut(room.cell, i, cell),
                sums: row_mut(room.sums, i, sums),
                tail: apart,
                second: row_mut(room.product, i, units),
                made: places.made.put(at),
            }
        };
        match stage {
            Stage::Second => self.cell.second_back::<L>(made),
            _ => self.cell.back::<L>(made),
        }
        if self.plan.products.second.is_none() || is_projected || stage == Stage::Second {
            // SAFETY: as above. The gates may be the same tensor: nothing reads them any more.
            let to = unsafe { self.places.dgiven.put(at) };
            let (head, rest) = to.split_at_mut(if C::TAIL { 2 * units } else { sums });
            head.copy_from_slice(&row(self.room.sums, i, sums)[..head.len()]);
            rest.copy_from_slice(&row(self.room.tail, i, tail)[..rest.len()]);
        }
    }
}

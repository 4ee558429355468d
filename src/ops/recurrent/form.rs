//! The form of a recurrence: its cell, its direction and its optional inputs.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Meta, check_float, check_meta};
use crate::shape::Shape;

/// What a recurrence computes in each step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// The hyperbolic tangent (Elman, 1990).
    Tanh,
    /// The rectifier.
    Relu,
    /// Input, output and forget gates and a candidate, in this order (Hochreiter and Schmidhuber,
    /// 1997; Gers et al., 2000).
    Lstm,
    /// Update and reset gates and a candidate, in this order, with the reset before the candidate's
    /// product (Cho et al., 2014).
    Gru,
    /// The same with the reset behind the product and its bias.
    LinearGru,
}

impl Cell {
    /// The number of columns per unit.
    pub fn gates(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Lstm => 4,
            Cell::Gru | Cell::LinearGru => 3,
        }
    }

    /// Picks by the operation that a cell belongs to.
    pub(super) fn pick<T>(self, [rnn, lstm, gru]: [T; 3]) -> T {
        match self {
            Cell::Tanh | Cell::Relu => rnn,
            Cell::Lstm => lstm,
            Cell::Gru | Cell::LinearGru => gru,
        }
    }
}

/// The attributes of a recurrence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Form {
    /// What each step computes.
    pub cell: Cell,
    /// Whether it goes from the last step to the first.
    pub reverse: bool,
    /// Whether gates also see the cell state, by one weight a unit (`Lstm` alone).
    pub peepholes: bool,
    /// Whether the state is a projection of the units (`Lstm` alone; Sak et al., 2014).
    pub projection: bool,
    /// Whether each row has a length of its own.
    pub lengths: bool,
}

/// The extents of a recurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Steps.
    pub steps: usize,
    /// Rows, which are independent of each other.
    pub rows: usize,
    /// Units.
    pub units: usize,
    /// Features of the state: the units, unless they are projected.
    pub state: usize,
}

/// An input or output of a recurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// (steps, rows, gates * units): what the gates are computed from but for the state.
    Given,
    /// (steps, rows, gates * units): the gates.
    Gates,
    /// (steps, rows, state): the states.
    States,
    /// (steps, rows, units): cell states; of a `LinearGru` the candidate's product.
    Cells,
    /// (state, gates * units): the weights of the state.
    Weight,
    /// (rows, state): a state.
    State,
    /// (rows, units): a cell state.
    Cell,
    /// (units,): the bias of the candidate's product.
    Bias,
    /// (3 * units,): the peepholes of the input, output and forget gates.
    Peepholes,
    /// (units, state): the weights of the projection.
    Projection,
    /// (rows,), int64: the number of steps of each row.
    Lengths,
}

/// The inputs or outputs of a recurrence, in order.
pub type Parts = SmallVec<[Part; 10]>;

impl Form {
    /// Whether each step also has a cell state.
    pub fn has_cell(&self) -> bool {
        self.cell == Cell::Lstm
    }

    /// The parts that are there.
    pub(super) fn parts(&self, all: &[(Part, bool)]) -> Parts {
        all.iter().filter(|(_, is)| *is).map(|(part, _)| *part).collect()
    }

    /// The optional inputs behind the others.
    pub(super) fn options(&self) -> [(Part, bool); 3] {
        [
            (Part::Peepholes, self.peepholes),
            (Part::Projection, self.projection),
            (Part::Lengths, self.lengths),
        ]
    }

    /// Checks the attributes themselves.
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        let fits = self.has_cell() || !(self.peepholes || self.projection);
        let want = "peepholes and a projection of an LSTM alone";
        crate::ensure!(fits, Error::value(op, format!("{self:?}"), want));
        Ok(())
    }

    /// The extents, from the gates and the weights of the state.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DType`] where these two have others than [`Part`] names.
    pub fn sizes(&self, op: &'static str, gates: &Meta, weight: &Meta) -> Result<Sizes> {
        check_float(op, gates)?;
        let count = self.cell.gates();
        let refuse = |want: String| Error::shape(op, [&gates.shape, &weight.shape], want);
        let is_gates = gates.shape.rank() == 3 && gates.shape[2].is_multiple_of(count);
        crate::ensure!(is_gates, refuse(format!("(steps, rows, {count} * units)")));
        let columns = gates.shape[2];
        let is_weight = weight.shape.rank() == 2 && weight.shape[1] == columns;
        crate::ensure!(is_weight, refuse(format!("weights of the state of {columns} columns")));
        let (units, state) = (columns / count, weight.shape[0]);
        let want = || format!("weights of the state of {units} rows");
        crate::ensure!(self.projection || state == units, refuse(want()));
        Ok(Sizes { steps: gates.shape[0], rows: gates.shape[1], units, state })
    }

    /// The meta of a part, row-major.
    pub fn meta(&self, part: Part, sizes: &Sizes, dtype: DType) -> Meta {
        let Sizes { steps, rows, units, state } = *sizes;
        let columns = self.cell.gates() * units;
        let shape: Shape = match part {
            Part::Given | Part::Gates => [steps, rows, columns].into(),
            Part::States => [steps, rows, state].into(),
            Part::Cells => [steps, rows, units].into(),
            Part::Weight => [state, columns].into(),
            Part::State => [rows, state].into(),
            Part::Cell => [rows, units].into(),
            Part::Bias => [units].into(),
            Part::Peepholes => [3 * units].into(),
            Part::Projection => [units, state].into(),
            Part::Lengths => [rows].into(),
        };
        Meta::new(if part == Part::Lengths { DType::Int64 } else { dtype }, shape)
    }

    /// Checks all inputs, `weight` being the number of the weights of the state and `gates` that of
    /// a tensor of gates.
    pub(super) fn check_inputs(
        &self,
        op: &'static str,
        inputs: &[&Meta],
        parts: &Parts,
        [gates, weight]: [usize; 2],
    ) -> Result<Sizes> {
        self.check(op)?;
        let (got, want) = (inputs.len(), parts.len());
        let arity = || Error::arity(op, got, want);
        crate::ensure!(got == want, arity());
        let sizes = self.sizes(op, inputs[gates], inputs[weight])?;
        for (&part, &given) in parts.iter().zip(inputs) {
            let meta = self.meta(part, &sizes, inputs[gates].dtype);
            check_meta(op, "a tensor", given, meta.dtype, &meta.shape)?;
        }
        Ok(sizes)
    }
}

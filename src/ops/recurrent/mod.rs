//! Recurrent networks: one operation for all steps of a layer in one direction, behind the product
//! of its inputs and before the products that are the gradients of its weights.

mod form;

use serde::{Deserialize, Serialize};

use super::{Catalog, Cost, Family, Meta, Metas, product};
use crate::error::Result;
pub use form::{Cell, Form, Part, Parts, Sizes};

/// (given, weight, state, ...) -> (states, last state, ...): all steps of a recurrence (ONNX `RNN`,
/// `LSTM`, `GRU`). `given` is the product of the inputs, with the biases. In the order of [`Part`]:
///
/// | cell | inputs | outputs |
/// |---|---|---|
/// | `Tanh`, `Relu` | given, weight, state | states, state |
/// | `Lstm` | given, weight, state, cell | states, state, cell, gates, cells |
/// | `Gru` | given, weight, state | states, state, gates |
/// | `LinearGru` | given, weight, state, bias | states, state, gates, cells |
///
/// then as inputs peepholes, projection and lengths, where the form has them. A row's steps from its
/// length on are zero in all results, and its last state is that of the step before; in reverse, it
/// starts there. A length that is negative or beyond the steps is an [`crate::Error::Value`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Recurrent {
    /// The form.
    #[serde(flatten)]
    pub form: Form,
}

/// The gradient of [`Recurrent`] with respect to given, state, and cell:
///
/// | cell | inputs | outputs |
/// |---|---|---|
/// | `Tanh`, `Relu` | dstates, dstate, states, weight | dgiven, dstate |
/// | `Lstm` | dstates, dstate, dcell, gates, cells, cell, weight | dgiven, dstate, dcell |
/// | `Gru` | dstates, dstate, gates, states, state, weight | dgiven, dstate |
/// | `LinearGru` | dstates, dstate, gates, states, state, cells, weight | dgiven, dstate, dcells |
///
/// then as inputs peepholes, projection and lengths, where the form has them. With a projection,
/// further outputs are the units before it (as cells), and the gradients of what it makes of them
/// (as states). The gradients of the weights are products of these.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RecurrentGrad {
    /// The form.
    #[serde(flatten)]
    pub form: Form,
}

impl Recurrent {
    /// What its inputs are.
    pub fn inputs(&self) -> Parts {
        let form = &self.form;
        let [peepholes, projection, lengths] = form.options();
        form.parts(&[
            (Part::Given, true),
            (Part::Weight, true),
            (Part::State, true),
            (Part::Cell, form.has_cell()),
            (Part::Bias, form.cell == Cell::LinearGru),
            peepholes,
            projection,
            lengths,
        ])
    }

    /// What its outputs are.
    pub fn outputs(&self) -> Parts {
        let form = &self.form;
        form.parts(&[
            (Part::States, true),
            (Part::State, true),
            (Part::Cell, form.has_cell()),
            (Part::Gates, form.cell.gates() > 1),
            (Part::Cells, matches!(form.cell, Cell::Lstm | Cell::LinearGru)),
        ])
    }
}

impl RecurrentGrad {
    /// What its inputs are, gradients first.
    pub fn inputs(&self) -> Parts {
        let form = &self.form;
        let [peepholes, projection, lengths] = form.options();
        let is_gru = matches!(form.cell, Cell::Gru | Cell::LinearGru);
        form.parts(&[
            (Part::States, true),
            (Part::State, true),
            (Part::Cell, form.has_cell()),
            (Part::Gates, form.cell.gates() > 1),
            (Part::States, !form.has_cell()),
            (Part::State, is_gru),
            (Part::Cells, matches!(form.cell, Cell::Lstm | Cell::LinearGru)),
            (Part::Cell, form.has_cell()),
            (Part::Weight, true),
            peepholes,
            projection,
            lengths,
        ])
    }

    /// What its outputs are.
    pub fn outputs(&self) -> Parts {
        let form = &self.form;
        form.parts(&[
            (Part::Given, true),
            (Part::State, true),
            (Part::Cell, form.has_cell()),
            (Part::Cells, form.cell == Cell::LinearGru || form.projection),
            (Part::States, form.projection),
        ])
    }
}

impl Catalog for Recurrent {
    fn names() -> Vec<&'static str> {
        NAMES.to_vec()
    }
}

impl Catalog for RecurrentGrad {
    fn names() -> Vec<&'static str> {
        GRADIENTS.to_vec()
    }
}

const NAMES: [&str; 3] = ["rnn", "lstm", "gru"];
const GRADIENTS: [&str; 3] = ["rnn_grad", "lstm_grad", "gru_grad"];

impl Family for Recurrent {
    fn name(&self) -> &'static str {
        self.form.cell.pick(NAMES)
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let sizes = self.form.check_inputs(self.name(), inputs, &self.inputs(), [0, 1])?;
        let meta = |part: &Part| self.form.meta(*part, &sizes, inputs[0].dtype);
        Ok(self.outputs().iter().map(meta).collect())
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        self.form.cell.pick([&[(0, 0)], &[(0, 3)], &[(0, 2)]])
    }

    fn checked(&self) -> &'static [usize] {
        last(self.form.lengths, self.inputs().len())
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[0], io[1])
    }
}

impl Family for RecurrentGrad {
    fn name(&self) -> &'static str {
        self.form.cell.pick(GRADIENTS)
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let parts = self.inputs();
        let (gates, weight) = (self.gates(), self.weight());
        let sizes = self.form.check_inputs(self.name(), inputs, &parts, [gates, weight])?;
        let meta = |part: &Part| self.form.meta(*part, &sizes, inputs[0].dtype);
        Ok(self.outputs().iter().map(meta).collect())
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        self.form.cell.pick([&[(2, 0)], &[(3, 0)], &[(2, 0)]])
    }

    fn checked(&self) -> &'static [usize] {
        last(self.form.lengths, self.inputs().len())
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cost(io, io[self.gates()], io[self.weight()])
    }
}

impl RecurrentGrad {
    /// The number of the input that holds the gates: of one without gates, its states.
    pub fn gates(&self) -> usize {
        self.form.cell.pick([2, 3, 2])
    }

    /// The number of the input that holds the weights of the state.
    pub fn weight(&self) -> usize {
        let is_weight = |part: &Part| *part == Part::Weight;
        self.inputs().iter().position(is_weight).expect("a recurrence has weights")
    }
}

/// The number of the last of `count` inputs, if it is there.
fn last(is: bool, count: usize) -> &'static [usize] {
    const NUMBERS: [usize; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    if is { &NUMBERS[count - 1..count] } else { &[] }
}

/// A product with the weights each step, and some functions of each gate.
fn cost(io: &[&Meta], gates: &Meta, weight: &Meta) -> Cost {
    let depth = weight.shape.first().copied().unwrap_or(0);
    let behind = product(&[gates.numel(), 16]);
    let flops = product(&[gates.numel(), 2, depth]).saturating_add(behind);
    Cost { behind, ..Cost::of(io, flops) }
}

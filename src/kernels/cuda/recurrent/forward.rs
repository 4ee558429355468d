//! The steps of a recurrent layer.

use super::layer::{Dense, Fields, Layer};
use crate::error::Result;
use crate::kernels::cuda::matmul::Matrix;
use crate::kernels::cuda::program::Program;
use crate::ops::recurrent::{Cell, Part, Recurrent};
use crate::ops::{Family, Meta};

/// Tensors between products and kernels.
struct Rooms {
    weight: Matrix,
    projection: Option<Matrix>,
    /// The state as it is multiplied, and the product.
    state: Matrix,
    sums: Matrix,
    /// The units before a projection, or what a reset gate leaves of the state; and the product.
    units: Option<Matrix>,
    projected: Option<Matrix>,
}

/// The program of all steps.
///
/// # Errors
/// Those of shapes that do not fit.
pub fn recurrent(op: &Recurrent, io: &[&Meta]) -> Result<Program> {
    let (parts, made) = (op.inputs(), op.outputs());
    let sizes = op.form.sizes(op.name(), io[0], io[1])?;
    let tensors = io.split_at(parts.len());
    let mut layer = Layer::new(op.name(), &op.form, sizes, io[0].dtype, tensors);
    use Part::{Bias, Cell, Cells, Gates, Given, Lengths, Peepholes, State, States};
    let at = |part: Part| parts.iter().position(|one| *one == part);
    let read = [Given, Bias, Peepholes, Lengths, State, Cell].map(|part| layer.input(at(part)));
    let [given, bias, peepholes, lengths, first_state, first_cell] = read;
    let to = |part: Part| made.iter().position(|one| *one == part);
    let written = [States, State, Cell, Gates, Cells].map(|part| layer.output(to(part)));
    let [states, state, cell, gates, cells] = written;
    let rooms = Rooms::new(&mut layer, &at, state.expect("a state"));
    let narrow = (layer.narrow != layer.wide()).then_some(rooms.state.dense());
    let between = |one: &Option<Matrix>| one.as_ref().map(Matrix::dense);
    let mut fields = Fields::default();
    fields.read([
        given,
        bias,
        peepholes,
        Some(rooms.sums.dense()),
        between(&rooms.projected),
        lengths,
    ]);
    fields.write(written);
    fields.write([narrow, between(&rooms.units)]);
    for to in [state, narrow].into_iter().flatten() {
        layer.start(sizes.state, first_state.expect("a state"), to);
    }
    if let (Some(from), Some(to)) = (first_cell, cell) {
        layer.start(sizes.units, from, to);
    }
    let columns = layer.columns();
    layer.clear(lengths, &[(states, sizes.state), (gates, columns), (cells, sizes.units)]);
    (0..sizes.steps).for_each(|step| rooms.step(&mut layer, &fields, step));
    Ok(layer.finish())
}

impl Rooms {
    fn new(layer: &mut Layer, at: &impl Fn(Part) -> Option<usize>, last_state: Dense) -> Rooms {
        let (sizes, wide, narrow) = (layer.sizes, layer.wide(), layer.narrow);
        let weight = layer.matrix(at(Part::Weight)).expect("a recurrence has weights");
        let projection = layer.matrix(at(Part::Projection));
        let dense = Meta::new(wide, [sizes.rows, sizes.state]);
        let state = match narrow == wide {
            true => Matrix { meta: dense, place: last_state.1 },
            false => layer.room(narrow, sizes.state),
        };
        let is_twice = layer.form.cell == Cell::Gru || projection.is_some();
        Rooms {
            weight,
            projection,
            state,
            sums: layer.room(wide, layer.columns()),
            units: is_twice.then(|| layer.room(narrow, sizes.units)),
            projected: is_twice.then(|| layer.room(wide, sizes.state)),
        }
    }

    fn step(&self, layer: &mut Layer, fields: &Fields, step: usize) {
        let (early, sizes) = (layer.early(), layer.sizes);
        let weight = self.weight.columns(0, early);
        layer.push(self.state.times(&weight, &self.sums.columns(0, early), false));
        let call = layer.of_cell("forward_step");
        layer.call("Forward", fields, &call, sizes.units, Some(step));
        let (Some(units), Some(to)) = (&self.units, &self.projected) else { return };
        let (weight, call) = match &self.projection {
            Some(projection) => (projection.clone(), "forward_state"),
            None => (self.weight.columns(early, sizes.units), "forward_candidate"),
        };
        layer.push(units.times(&weight, to, false));
        layer.call("Forward", fields, call, sizes.state, Some(step));
    }
}

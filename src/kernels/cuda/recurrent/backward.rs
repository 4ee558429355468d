//! The gradient of a recurrent layer's steps.

use super::layer::{Fields, Layer};
use crate::error::Result;
use crate::kernels::cuda::matmul::Matrix;
use crate::kernels::cuda::program::Program;
use crate::ops::recurrent::{Cell, Part, RecurrentGrad};
use crate::ops::{Family, Meta};

/// Tensors between products and kernels.
struct Rooms {
    weight: Matrix,
    projection: Option<Matrix>,
    /// The slopes of the gates, and their product.
    slopes: Matrix,
    sums: Matrix,
    /// The slope of a state that is a projection, as it is multiplied.
    state: Option<Matrix>,
    /// Products on the way to the slopes of the gates.
    ups: Option<Matrix>,
    /// What of a slope passes by the gates, and a reset gate.
    up: Option<Matrix>,
    tail: Option<Matrix>,
}

/// The program of the gradient.
///
/// # Errors
/// Those of shapes that do not fit.
pub fn recurrent_grad(op: &RecurrentGrad, io: &[&Meta]) -> Result<Program> {
    let (parts, made, gates) = (op.inputs(), op.outputs(), io[op.gates()]);
    let sizes = op.form.sizes(op.name(), gates, io[op.weight()])?;
    let tensors = io.split_at(parts.len());
    let mut layer = Layer::new(op.name(), &op.form, sizes, gates.dtype, tensors);
    use Part::{Cell, Cells, Gates, Given, Lengths, Peepholes, State, States};
    // Gradients come first, then what forward was given and made.
    let first = |part: Part| parts.iter().position(|one| *one == part);
    let saved = |part: Part| parts.iter().rposition(|one| *one == part);
    let [dstates, last_dstate, last_dcell] =
        [States, State, Cell].map(|part| layer.input(first(part)));
    let kept = [Gates, States, State, Cells, Cell, Peepholes].map(|part| layer.input(saved(part)));
    let lengths = layer.input(saved(Lengths));
    let to = |part: Part| made.iter().position(|one| *one == part);
    let written = [Given, State, Cell, Cells, States].map(|part| layer.output(to(part)));
    let [dgiven, dstate, dcell, units, projected] = written;
    let rooms = Rooms::new(&mut layer, &saved);
    let between = |one: &Option<Matrix>| one.as_ref().map(Matrix::dense);
    let mut fields = Fields::default();
    fields.read([dstates].into_iter().chain(kept));
    fields.read([Some(rooms.sums.dense()), between(&rooms.ups), lengths]);
    fields.write(written);
    fields.write([between(&rooms.up), between(&rooms.tail)]);
    fields.write([Some(rooms.slopes.dense()), between(&rooms.state)]);
    layer.start(sizes.state, last_dstate.expect("a slope"), dstate.expect("a slope"));
    if let (Some(from), Some(to)) = (last_dcell, dcell) {
        layer.start(sizes.units, from, to);
    }
    let columns = layer.columns();
    layer.clear(lengths, &[(dgiven, columns), (units, sizes.units), (projected, sizes.state)]);
    (0..sizes.steps).rev().for_each(|step| rooms.step(&mut layer, &fields, step));
    let end = layer.of_cell("backward_end");
    layer.call("Backward", &fields, &end, sizes.state, None);
    Ok(layer.finish())
}

impl Rooms {
    fn new(layer: &mut Layer, saved: &impl Fn(Part) -> Option<usize>) -> Rooms {
        let (sizes, wide, narrow, cell) =
            (layer.sizes, layer.wide(), layer.narrow, layer.form.cell);
        let (is_gru, projects) = (cell == Cell::Gru, layer.form.projection);
        let passes = is_gru || cell == Cell::LinearGru;
        Rooms {
            weight: layer.matrix(saved(Part::Weight)).expect("a recurrence has weights"),
            projection: layer.matrix(saved(Part::Projection)),
            slopes: layer.room(narrow, layer.columns()),
            sums: layer.room(wide, sizes.state),
            state: projects.then(|| layer.room(narrow, sizes.state)),
            ups: (is_gru || projects).then(|| layer.room(wide, sizes.units)),
            up: passes.then(|| layer.room(wide, sizes.units)),
            tail: is_gru.then(|| layer.room(wide, sizes.units)),
        }
    }

    fn step(&self, layer: &mut Layer, fields: &Fields, step: usize) {
        let (early, sizes) = (layer.early(), layer.sizes);
        let call = |layer: &mut Layer, call: &str, columns| {
            layer.call("Backward", fields, call, columns, Some(step));
        };
        if let (Some(projection), Some(state), Some(to)) =
            (&self.projection, &self.state, &self.ups)
        {
            call(layer, "backward_state", sizes.state);
            layer.push(state.times(&projection.transposed(), to, false));
        }
        let of_gates = layer.of_cell("backward_step");
        call(layer, &of_gates, sizes.units);
        if let (Some(_), Some(to)) = (&self.tail, &self.ups) {
            let weight = self.weight.columns(early, sizes.units).transposed();
            layer.push(self.slopes.columns(early, sizes.units).times(&weight, to, false));
            call(layer, "backward_reset", sizes.units);
        }
        let weight = self.weight.columns(0, early).transposed();
        layer.push(self.slopes.columns(0, early).times(&weight, &self.sums, false));
    }
}

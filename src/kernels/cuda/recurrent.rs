//! Recurrent layers and their gradients, one block a row.

use super::check::{Check, Found};
use super::copy::copy;
use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::computed;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::recurrent::{Cell, Form, Part, Recurrent, RecurrentGrad, Sizes};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/recurrent.cu");

/// The tensors of a kernel, which are row-major and of one float type: others are copied first, or
/// at the end.
struct Staged<'a> {
    name: &'static str,
    program: Program,
    dtype: DType,
    /// Where each input is, and then each output.
    places: Vec<Place>,
    /// The outputs that are copied at the end.
    late: Vec<(Place, &'a Meta, usize)>,
}

impl<'a> Staged<'a> {
    fn new(name: &'static str, dtype: DType, io: &[&'a Meta], inputs: usize) -> Staged<'a> {
        let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        let mut staged = Staged {
            name,
            program: Program::default(),
            dtype: wide,
            places: Vec::new(),
            late: Vec::new(),
        };
        for (i, meta) in io.iter().enumerate() {
            match i < inputs {
                true => staged.input(i, meta),
                false => staged.output(i - inputs, meta),
            }
        }
        staged
    }

    /// The meta of a tensor as the kernel has it.
    fn dense(&self, meta: &Meta) -> Meta {
        let dtype = if meta.dtype.is_float() { self.dtype } else { meta.dtype };
        Meta::new(dtype, meta.shape.clone())
    }

    fn input(&mut self, i: usize, meta: &'a Meta) {
        let dense = self.dense(meta);
        if dense == *meta {
            self.places.push(Place::Input(i));
            return;
        }
        let room = self.program.take(dense.bytes());
        let program = std::mem::take(&mut self.program);
        self.program = program.then(copy(self.name, meta, &dense), &[Place::Input(i), room]);
        self.places.push(room);
    }

    fn output(&mut self, o: usize, meta: &'a Meta) {
        let dense = self.dense(meta);
        if dense == *meta {
            self.places.push(Place::Output(o, 0));
            return;
        }
        let room = self.program.take(dense.bytes());
        self.late.push((room, meta, o));
        self.places.push(room);
    }

    /// The program with the kernel, and the copies behind it.
    fn finish(self, source: Source, rooms: &[Place]) -> Program {
        let places: Vec<Place> = self.places.iter().chain(rooms).copied().collect();
        let mut program = self.program.then(source, &places);
        for (room, meta, o) in self.late {
            let dtype = if meta.dtype.is_float() { self.dtype } else { meta.dtype };
            let dense = Meta::new(dtype, meta.shape.clone());
            program = program.then(copy(self.name, &dense, meta), &[room, Place::Output(o, 0)]);
        }
        program
    }
}

/// What a cell is called in CUDA C.
fn cell(form: &Form) -> &'static str {
    match form.cell {
        Cell::Tanh => "TANH",
        Cell::Relu => "RELU",
        Cell::Lstm => "LSTM",
        Cell::Gru => "GRU",
        Cell::LinearGru => "LINEAR_GRU",
    }
}

fn extents(source: &mut Source, sizes: &Sizes) -> String {
    let Sizes { steps, rows, units, state } = *sizes;
    source.record("Extents", [steps, rows, units, state].map(|size| size as i64))
}

/// The name of the tensor that is at `found` among inputs or outputs.
fn named(kind: &str, found: Option<usize>) -> String {
    found.map_or_else(|| "nullptr".into(), |i| format!("g.{kind}{i}"))
}

fn begun(name: &'static str, dtypes: [Vec<DType>; 2], sizes: &Sizes) -> Source {
    let [inputs, outputs] = dtypes;
    let mut source = Source::new(name, &inputs, &outputs).with(TEMPLATES).waiting();
    source.threads = (sizes.units as u32).next_multiple_of(32).clamp(32, THREADS);
    source.blocks(sizes.rows)
}

/// Each row's length is one of its steps', if it has one.
fn checked(
    form: &Form,
    name: &'static str,
    sizes: &Sizes,
    inputs: &[&Meta],
    program: Program,
) -> Program {
    let (steps, last) = (sizes.steps, inputs.len() - 1);
    if !form.lengths {
        return program;
    }
    let refusal =
        move |found: Found| Error::value(name, found.integer, format!("lengths from 0 to {steps}"));
    let bad = |source: &mut Source| format!("x < 0 || x > {}", source.size(steps));
    program.checked(Check::new(last, inputs[last], bad, refusal), inputs[last])
}

/// The types of staged tensors, and of `rooms` more at the end.
fn dtypes(staged: &Staged, io: [&[&Meta]; 2], rooms: usize) -> [Vec<DType>; 2] {
    let of =
        |metas: &[&Meta]| metas.iter().map(|meta| staged.dense(meta).dtype).collect::<Vec<_>>();
    let [inputs, mut outputs] = io.map(of);
    outputs.extend(vec![staged.dtype; rooms]);
    [inputs, outputs]
}

/// The program of all steps.
///
/// # Errors
/// Those of shapes that do not fit.
pub fn recurrent(op: &Recurrent, io: &[&Meta]) -> Result<Program> {
    let (parts, made, form) = (op.inputs(), op.outputs(), &op.form);
    let (inputs, outputs) = io.split_at(parts.len());
    let sizes = form.sizes(op.name(), io[0], io[1])?;
    let mut staged = Staged::new(op.name(), io[0].dtype, io, inputs.len());
    let room = staged.program.take(sizes.rows * sizes.units * staged.dtype.size());
    let mut source = begun(op.name(), dtypes(&staged, [inputs, outputs], 1), &sizes);
    let input = |part: Part| named("in", parts.iter().position(|one| *one == part));
    let output = |part: Part| named("out", made.iter().position(|one| *one == part));
    use Part::{Bias, Cells, Gates, Given, Lengths, Peepholes, Projection, State, States, Weight};
    let given = [Given, Weight, State, Part::Cell, Bias, Peepholes, Projection, Lengths].map(input);
    let results = [States, State, Part::Cell, Gates, Cells].map(output);
    let (kind, of) = (computed(staged.dtype), extents(&mut source, &sizes));
    source.line(format!(
        "recurrent<{kind}, {}, {}>(Forward<{kind}>{{{}, {}, g.out{}}}, {of});",
        cell(form),
        form.reverse,
        given.join(", "),
        results.join(", "),
        outputs.len()
    ));
    let program = staged.finish(source, &[room]);
    Ok(checked(form, op.name(), &sizes, inputs, program))
}

/// The program of the gradient.
///
/// # Errors
/// Those of shapes that do not fit.
pub fn recurrent_grad(op: &RecurrentGrad, io: &[&Meta]) -> Result<Program> {
    let (parts, made, form) = (op.inputs(), op.outputs(), &op.form);
    let (inputs, outputs) = io.split_at(parts.len());
    let (gates, weight) = (op.gates(), op.weight());
    let sizes = form.sizes(op.name(), io[gates], io[weight])?;
    let mut staged = Staged::new(op.name(), io[gates].dtype, io, inputs.len());
    let bytes = sizes.rows * sizes.units * staged.dtype.size();
    let rooms = [0, 1].map(|_| staged.program.take(bytes));
    let mut source = begun(op.name(), dtypes(&staged, [inputs, outputs], 2), &sizes);
    // Gradients come first, then what forward was given and made.
    let first = |part: Part| named("in", parts.iter().position(|one| *one == part));
    let saved = |part: Part| named("in", parts.iter().rposition(|one| *one == part));
    let output = |part: Part| named("out", made.iter().position(|one| *one == part));
    use Part::{Cells, Gates, Given, Lengths, Peepholes, Projection, State, States, Weight};
    let gradients = [States, State, Part::Cell].map(first);
    let kept = [Gates, States, State, Cells, Part::Cell, Weight].map(saved);
    let options = [Peepholes, Projection, Lengths].map(saved);
    let results = [Given, State, Part::Cell, Cells, States].map(output);
    let (kind, of) = (computed(staged.dtype), extents(&mut source, &sizes));
    source.line(format!(
        "recurrent_grad<{kind}, {}, {}>(Backward<{kind}>{{{}, {}, {}, {}, g.out{}, g.out{}}}, {of});",
        cell(form),
        form.reverse,
        gradients.join(", "),
        kept.join(", "),
        options.join(", "),
        results.join(", "),
        outputs.len(),
        outputs.len() + 1
    ));
    let program = staged.finish(source, &rooms);
    Ok(checked(form, op.name(), &sizes, inputs, program))
}

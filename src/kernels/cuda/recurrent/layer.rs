//! What the two directions of a recurrence have in common: its tensors, products and kernels.

use super::staged::Staged;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernels::cuda::check::{Check, Found};
use crate::kernels::cuda::copy::copy;
use crate::kernels::cuda::matmul::Matrix;
use crate::kernels::cuda::program::{Place, Program, Step};
use crate::kernels::cuda::source::{Source, THREADS};
use crate::kernels::cuda::types::{computed, stored};
use crate::ops::Meta;
use crate::ops::recurrent::{Cell, Form, Sizes};

const TEMPLATES: &str = include_str!("../c/recurrent.cu");

/// A dense tensor of one type.
pub type Dense = (DType, Place);

/// The fields of a structure of tensors that kernels take.
#[derive(Default)]
pub struct Fields {
    inputs: Vec<Dense>,
    outputs: Vec<Dense>,
    names: Vec<String>,
}

impl Fields {
    /// Appends tensors that are read, some of which may not be there.
    pub fn read(&mut self, all: impl IntoIterator<Item = Option<Dense>>) {
        for one in all {
            self.names.push(named("in", self.inputs.len(), one.is_some()));
            self.inputs.extend(one);
        }
    }

    /// Appends tensors that are written.
    pub fn write(&mut self, all: impl IntoIterator<Item = Option<Dense>>) {
        for one in all {
            self.names.push(named("out", self.outputs.len(), one.is_some()));
            self.outputs.extend(one);
        }
    }
}

fn named(kind: &str, i: usize, is_there: bool) -> String {
    if is_there { format!("g.{kind}{i}") } else { "nullptr".into() }
}

/// A recurrence on its way into a program.
pub struct Layer<'a> {
    pub name: &'static str,
    pub form: &'a Form,
    pub sizes: Sizes,
    /// The type of what is multiplied.
    pub narrow: DType,
    pub staged: Staged<'a>,
    inputs: &'a [&'a Meta],
    outputs: &'a [&'a Meta],
}

impl<'a> Layer<'a> {
    pub fn new(
        name: &'static str,
        form: &'a Form,
        sizes: Sizes,
        narrow: DType,
        (inputs, outputs): (&'a [&'a Meta], &'a [&'a Meta]),
    ) -> Layer<'a> {
        Layer { name, form, sizes, narrow, staged: Staged::new(name, narrow), inputs, outputs }
    }

    /// The type that is computed in.
    pub fn wide(&self) -> DType {
        self.staged.wide
    }

    /// The columns of all gates.
    pub fn columns(&self) -> usize {
        self.form.cell.gates() * self.sizes.units
    }

    /// The columns that a product with the state takes first: a GRU's candidate comes later.
    pub fn early(&self) -> usize {
        if self.form.cell == Cell::Gru { 2 * self.sizes.units } else { self.columns() }
    }

    /// An input as kernels take it.
    pub fn input(&mut self, i: Option<usize>) -> Option<Dense> {
        let (i, meta) = (i?, self.inputs[i?]);
        let dtype = if meta.dtype.is_float() { self.wide() } else { meta.dtype };
        Some((dtype, self.staged.input(i, meta)))
    }

    /// An output as kernels take it.
    pub fn output(&mut self, o: Option<usize>) -> Option<Dense> {
        Some((self.wide(), self.staged.output(o?, self.outputs[o?])))
    }

    /// An input as it is.
    pub fn matrix(&self, i: Option<usize>) -> Option<Matrix> {
        Some(Matrix { meta: self.inputs[i?].clone(), place: Place::Input(i?) })
    }

    /// Scratch memory for a matrix with so many columns.
    pub fn room(&mut self, dtype: DType, columns: usize) -> Matrix {
        let meta = Meta::new(dtype, [self.sizes.rows, columns]);
        let place = self.staged.program.take(meta.bytes());
        Matrix { meta, place }
    }

    /// Copies rows of so many columns.
    pub fn start(&mut self, columns: usize, from: Dense, to: Dense) {
        let meta = |(dtype, _): Dense| Meta::new(dtype, [self.sizes.rows, columns]);
        let source = copy(self.name, &meta(from), &meta(to));
        self.push(Step { source, places: vec![from.1, to.1], library: None });
    }

    /// Clears the steps that rows do not have, of tensors with so many columns.
    pub fn clear(&mut self, lengths: Option<Dense>, of: &[(Option<Dense>, usize)]) {
        let Some((_, lengths)) = lengths else { return };
        for (tensor, columns) in of {
            let Some((dtype, place)) = *tensor else { continue };
            let source = Source::new(self.name, &[DType::Int64], &[dtype]);
            let mut source = source.with(TEMPLATES);
            let (of, wide) = (self.extents(&mut source), source.size(*columns));
            source.line(format!("clear(g.out0, g.in0, {of}, {wide});"));
            let count = self.sizes.steps * self.sizes.rows * columns;
            self.push(threads(source, count, vec![lengths, place]));
        }
    }

    /// Adds what runs next.
    pub fn push(&mut self, step: Step) {
        self.staged.program.steps.push(step);
    }

    /// Adds a call of a template for a step, or for none, with a thread for each column of all rows.
    pub fn call(
        &mut self,
        kind: &str,
        fields: &Fields,
        call: &str,
        columns: usize,
        step: Option<usize>,
    ) {
        let dtypes = |all: &[Dense]| all.iter().map(|(dtype, _)| *dtype).collect::<Vec<_>>();
        let Fields { inputs, outputs, names } = fields;
        let mut source = Source::new(self.name, &dtypes(inputs), &dtypes(outputs)).with(TEMPLATES);
        let of = self.extents(&mut source);
        let step = step.map_or(String::new(), |step| format!(", {}", source.size(step)));
        let (wide, narrow) = (computed(self.wide()), stored(self.narrow));
        let tensors = format!("{kind}<{wide}, {narrow}>{{{}}}", names.join(", "));
        source.line(format!("{call}({tensors}, {of}{step});"));
        let places = inputs.iter().chain(outputs).map(|(_, place)| *place).collect();
        self.push(threads(source, self.sizes.rows * columns, places));
    }

    fn extents(&self, source: &mut Source) -> String {
        let Sizes { steps, rows, units, state } = self.sizes;
        let reverse = usize::from(self.form.reverse);
        source.record("Extents", [steps, rows, units, state, reverse].map(|size| size as i64))
    }

    /// A template for this cell.
    pub fn of_cell(&self, template: &str) -> String {
        let cell = match self.form.cell {
            Cell::Tanh => "TANH",
            Cell::Relu => "RELU",
            Cell::Lstm => "LSTM",
            Cell::Gru => "GRU",
            Cell::LinearGru => "LINEAR_GRU",
        };
        format!("{template}<{cell}, {}>", self.form.projection)
    }

    /// The program: each row's length is one of its steps', if it has one.
    pub fn finish(self) -> Program {
        let Layer { name, form, sizes: Sizes { steps, .. }, staged, inputs, .. } = self;
        let (program, last) = (staged.finish(), inputs.len() - 1);
        if !form.lengths {
            return program;
        }
        let want = move || format!("lengths from 0 to {steps}");
        let refusal = move |found: Found| Error::value(name, found.integer, want());
        let bad = |source: &mut Source| format!("x < 0 || x > {}", source.size(steps));
        program.checked(Check::new(last, inputs[last], bad, refusal), inputs[last])
    }
}

/// A kernel with a thread for each of so many elements.
fn threads(source: Source, count: usize, places: Vec<Place>) -> Step {
    Step { source: source.blocks(count.div_ceil(THREADS as usize)), places, library: None }
}

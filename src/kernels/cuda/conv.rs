//! Convolution and its gradients.

use super::copy;
use super::program::{Library, Place, Program, Step};
use super::source::{Source, THREADS};
use super::types::{computed, stored};
use super::window::{self, Window, images};
use crate::device::cuda::Demand;
use crate::device::cuda::convolution::{Convolution, Layout, Pass};
use crate::dtype::DType;
use crate::ops::conv::{Conv, ConvGradInput, ConvGradWeight};
use crate::ops::geometry::{Geometry, spatial};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/conv.cu");

fn begun(name: &'static str, dtype: DType, inputs: usize) -> Source {
    let source = Source::new(name, &vec![dtype; inputs], &[dtype]);
    source.with(window::TEMPLATES).with(TEMPLATES)
}

/// The window and the groups as arguments.
fn slides(source: &mut Source, geometry: &Geometry, kernel: &[usize]) -> String {
    let Geometry { stride, padding, dilation, groups } = geometry;
    let window = Window { kernel, stride, padding, dilation }.argument(source);
    format!("{window}, {}", source.record("Groups", [*groups as i64]))
}

/// The program of (x, w, perhaps b) -> y.
pub fn conv(op: &Conv, io: &[&Meta]) -> Program {
    let (inputs, [x, w, y]) = (io.len() - 1, [io[0], io[1], io[io.len() - 1]]);
    let mut source = begun(op.name(), x.dtype, inputs);
    let all = [x, w, y].map(|meta| images(&mut source, meta)).join(", ");
    let (bias, step) = match inputs {
        3 => ("g.in2".to_string(), io[2].strides[0]),
        _ => (format!("(const {} *)0", stored(x.dtype)), 0),
    };
    let step = source.integer(step as i64);
    let slides = slides(&mut source, &op.geometry, spatial(&w.shape));
    let wide = computed(x.dtype);
    source.line(format!("conv<{wide}>(g.in0, g.in1, {bias}, g.out0, {all}, {step}, {slides});"));
    let program = Program::one(source.blocks(y.numel().div_ceil(THREADS as usize)), inputs, 1);
    let bias = (inputs == 3).then_some(io[2]);
    if bias.is_some_and(|bias| bias.shape[0] > 1 && bias.strides[0] != 1) {
        return program;
    }
    let mut places = vec![Place::Input(0), Place::Input(1), Place::Output(0, 0)];
    places.extend(bias.map(|_| Place::Input(2)));
    let (pass, geometry) = (Pass::Forward, &op.geometry);
    Convolving { pass, geometry, metas: [x, w, y] }.by_library(program, places)
}

/// The program of (dy, w) -> dx.
pub fn grad_input(op: &ConvGradInput, io: &[&Meta]) -> Program {
    let [dy, w, dx] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), dy.dtype, 2);
    let all = [dy, w, dx].map(|meta| images(&mut source, meta)).join(", ");
    let slides = slides(&mut source, &op.geometry, spatial(&w.shape));
    let wide = computed(dy.dtype);
    source.line(format!("conv_grad_input<{wide}>(g.in0, g.in1, g.out0, {all}, {slides});"));
    let program = Program::one(source.blocks(dx.numel().div_ceil(THREADS as usize)), 2, 1);
    let places = vec![Place::Output(0, 0), Place::Input(1), Place::Input(0)];
    let (pass, geometry) = (Pass::GradInput, &op.geometry);
    Convolving { pass, geometry, metas: [dx, w, dy] }.by_library(program, places)
}

/// The program of (dy, x) -> dw.
pub fn grad_weight(op: &ConvGradWeight, io: &[&Meta]) -> Program {
    let [dy, x, dw] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), dy.dtype, 2);
    let all = [dy, x, dw].map(|meta| images(&mut source, meta)).join(", ");
    let slides = slides(&mut source, &op.geometry, &op.kernel);
    let wide = computed(dy.dtype);
    source.line(format!("conv_grad_weight<{wide}>(g.in0, g.in1, g.out0, {all}, {slides});"));
    let sites = dy.shape[0] * spatial(&dy.shape).iter().product::<usize>();
    let program = Program::one(source.sharing(sites).blocks(dw.numel()), 2, 1);
    let places = vec![Place::Input(1), Place::Output(0, 0), Place::Input(0)];
    let (pass, geometry) = (Pass::GradWeight, &op.geometry);
    Convolving { pass, geometry, metas: [x, dw, dy] }.by_library(program, places)
}

/// A convolution, or one of its gradients, for a library.
struct Convolving<'a> {
    pass: Pass,
    geometry: &'a Geometry,
    /// Of x, w and y, or of their gradients.
    metas: [&'a Meta; 3],
}

impl Convolving<'_> {
    /// The program by a library where there is one, on x, w, y and perhaps a bias: what has gaps or
    /// another layout is copied before or after.
    fn by_library(self, mut program: Program, mut places: Vec<Place>) -> Program {
        let Some(convolution) = self.described(places.len() == 4) else { return program };
        let layout = convolution.layout;
        let mut around = [Vec::new(), Vec::new()];
        for (t, meta) in self.metas.into_iter().enumerate() {
            let dense = dense(meta, layout);
            if dense.strides == meta.strides {
                continue;
            }
            let place = std::mem::replace(&mut places[t], program.take(dense.bytes()));
            let is_result = t == self.pass.order()[2];
            let (from, to, places) = match is_result {
                false => (meta, &dense, vec![place, places[t]]),
                true => (&dense, meta, vec![places[t], place]),
            };
            let source = copy::copy("copy", from, to);
            around[usize::from(is_result)].push(Step { source, places, library: None });
        }
        let demand = Demand::Convolution(convolution);
        program.steps[0].library = Some(Box::new(Library { demand, places, around }));
        program
    }

    /// Matrix units take halves whose channels are innermost; images of other numbers stay as they
    /// are.
    fn layout(&self) -> Layout {
        let [x, _, y] = self.metas;
        let is_half = matches!(x.dtype, DType::Float16 | DType::BFloat16);
        let are = |layout| [x, y].iter().all(|meta| **meta == dense(meta, layout));
        let are_last = are(Layout::ChannelsLast) && !are(Layout::ChannelsFirst);
        match is_half || are_last {
            true => Layout::ChannelsLast,
            false => Layout::ChannelsFirst,
        }
    }

    /// None where a library takes no such convolution.
    fn described(&self, has_bias: bool) -> Option<Convolution> {
        let Geometry { stride, padding, dilation, groups } = self.geometry;
        let (before, after) = padding.split_at(stride.len());
        let (dtype, is_some) =
            (self.metas[0].dtype, self.metas.iter().all(|meta| meta.numel() > 0));
        if before != after || !is_some || !dtype.is_float() {
            return None;
        }
        // A second axis of one place is put before a lone one.
        let missing = usize::from(stride.len() == 1);
        let spread = |of: &[usize], rest: usize| [&vec![rest; missing], of].concat();
        let extents =
            self.metas.map(|meta| [&meta.shape[..2], &vec![1; missing], &meta.shape[2..]].concat());
        Some(Convolution {
            pass: self.pass,
            dtype,
            layout: self.layout(),
            extents,
            slides: [spread(stride, 1), spread(before, 0), spread(dilation, 1)],
            groups: *groups,
            has_bias,
        })
    }
}

/// A dense tensor of the same extents. Axes of one place have the strides that they have.
fn dense(meta: &Meta, layout: Layout) -> Meta {
    let mut dense = meta.clone();
    let steps = layout.strides(&meta.shape);
    for d in (0..meta.shape.rank()).filter(|&d| meta.shape[d] != 1) {
        dense.strides[d] = steps[d] as isize;
    }
    dense
}

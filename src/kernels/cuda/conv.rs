//! Convolution and its gradients.

use super::program::Program;
use super::source::{Source, THREADS};
use super::types::{computed, stored};
use super::window::{self, Window, images};
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
    Program::one(source.blocks(y.numel().div_ceil(THREADS as usize)), inputs, 1)
}

/// The program of (dy, w) -> dx.
pub fn grad_input(op: &ConvGradInput, io: &[&Meta]) -> Program {
    let [dy, w, dx] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), dy.dtype, 2);
    let all = [dy, w, dx].map(|meta| images(&mut source, meta)).join(", ");
    let slides = slides(&mut source, &op.geometry, spatial(&w.shape));
    let wide = computed(dy.dtype);
    source.line(format!("conv_grad_input<{wide}>(g.in0, g.in1, g.out0, {all}, {slides});"));
    Program::one(source.blocks(dx.numel().div_ceil(THREADS as usize)), 2, 1)
}

/// The program of (dy, x) -> dw.
pub fn grad_weight(op: &ConvGradWeight, io: &[&Meta]) -> Program {
    let [dy, x, dw] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), dy.dtype, 2).waiting();
    let all = [dy, x, dw].map(|meta| images(&mut source, meta)).join(", ");
    let slides = slides(&mut source, &op.geometry, &op.kernel);
    let wide = computed(dy.dtype);
    source.line(format!("conv_grad_weight<{wide}>(g.in0, g.in1, g.out0, {all}, {slides});"));
    let sites = dy.shape[0] * spatial(&dy.shape).iter().product::<usize>();
    source.threads = (sites as u32).next_multiple_of(32).clamp(32, THREADS);
    Program::one(source.blocks(dw.numel()), 2, 1)
}

//! Pooling over windows of images, and its gradients.

use super::program::Program;
use super::source::{Source, THREADS};
use super::types::computed;
use super::window::{self, images};
use crate::dtype::DType;
use crate::ops::pooling::{AvgPool, AvgPoolGrad, MaxPool, MaxPoolGrad, Mean, Window};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/pooling.cu");

fn begun(name: &'static str, inputs: &[DType], outputs: &[DType], elements: usize) -> Source {
    let source = Source::new(name, inputs, outputs).with(window::TEMPLATES).with(TEMPLATES);
    source.blocks(elements.div_ceil(THREADS as usize))
}

fn argument(source: &mut Source, window: &Window) -> String {
    let Window { kernel, stride, padding, dilation, .. } = window;
    window::Window { kernel, stride, padding, dilation }.argument(source)
}

/// The program of x -> (y, index).
pub fn max_pool(op: &MaxPool, io: &[&Meta]) -> Program {
    let [x, y, index] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), &[x.dtype], &[y.dtype, index.dtype], y.numel());
    let all = [x, y, index].map(|meta| images(&mut source, meta)).join(", ");
    let window = argument(&mut source, &op.window);
    source
        .line(format!("max_pool<{}>(g.in0, g.out0, g.out1, {all}, {window});", computed(x.dtype)));
    Program::one(source, 1, 2)
}

/// The program of (dy, index) -> dx.
pub fn max_pool_grad(op: &MaxPoolGrad, io: &[&Meta]) -> Program {
    let [dy, index, dx] = [io[0], io[1], io[2]];
    let mut source = begun(op.name(), &[dy.dtype, index.dtype], &[dx.dtype], dx.numel());
    let all = [dy, index, dx].map(|meta| images(&mut source, meta)).join(", ");
    let window = argument(&mut source, &op.window);
    source.line(format!(
        "max_pool_grad<{}>(g.in0, g.in1, g.out0, {all}, {window});",
        computed(dy.dtype)
    ));
    Program::one(source, 2, 1)
}

fn mean(source: &mut Source, mean: &Mean) -> String {
    let divisor = mean.divisor.unwrap_or(0) as i64;
    source.record("Mean", [divisor, i64::from(mean.count_include_pad)])
}

fn average(name: &'static str, of: &Window, by: &Mean, io: &[&Meta]) -> Program {
    let [from, to] = [io[0], io[1]];
    let mut source = begun(name, &[from.dtype], &[to.dtype], to.numel());
    let all = [from, to].map(|meta| images(&mut source, meta)).join(", ");
    let (window, mean) = (argument(&mut source, of), mean(&mut source, by));
    let template = if name.ends_with("_grad") { "avg_pool_grad" } else { "avg_pool" };
    source.line(format!(
        "{template}<{}>(g.in0, g.out0, {all}, {window}, {mean});",
        computed(from.dtype)
    ));
    Program::one(source, 1, 1)
}

/// The program of x -> y.
pub fn avg_pool(op: &AvgPool, io: &[&Meta]) -> Program {
    average(op.name(), &op.window, &op.mean, io)
}

/// The program of dy -> dx.
pub fn avg_pool_grad(op: &AvgPoolGrad, io: &[&Meta]) -> Program {
    average(op.name(), &op.window, &op.mean, io)
}

//! The rules of the optimizers, element by element.
#![allow(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::cpu::elementwise::update::{Formula, prepare as pass};
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::optim::{Input, Rule, Update};
use crate::ops::{Family, Meta};

/// Prepares an update.
///
/// # Errors
/// [`Error::DType`] for parameters that are not floats.
pub fn prepare(op: &Update, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    match op.rule {
        Rule::Sgd { momentum, nesterov } => {
            by(op, io, width, move |numbers| Descent::new(momentum, nesterov, numbers))
        }
        Rule::Adam { decoupled } => {
            by(op, io, width, move |numbers| Moments::new(decoupled, numbers))
        }
        Rule::Adagrad => by(op, io, width, |numbers| History(numbers.clone())),
        Rule::Lion => by(op, io, width, |numbers| Sign(numbers.clone())),
        Rule::Rmsprop => by(op, io, width, |numbers| Average(numbers.clone())),
    }
}

/// What an update reads besides the parameter, the gradient and the moments.
#[derive(Clone)]
struct Numbers {
    /// The hyperparameters, in order.
    all: SmallVec<[f64; 4]>,
    decay: Option<f64>,
    step: i32,
}

/// Prepares an update by the formula that `formula` makes from the numbers that it reads.
fn by<F: Formula>(
    op: &Update,
    io: &[&Meta],
    width: Width,
    formula: impl Fn(&Numbers) -> F + Send + Sync + 'static,
) -> Result<Arc<dyn Kernel>> {
    let are_double: Vec<bool> = io.iter().map(|meta| meta.dtype == DType::Float64).collect();
    let at = [Input::Number, Input::Decay, Input::Step];
    let at = at.map(|kind| op.numbers(kind).collect::<SmallVec<[usize; 4]>>());
    let read = move |io: &Io| {
        let number = |&i: &usize| read_number(io, i, are_double[i]);
        formula(&Numbers {
            all: at[0].iter().map(number).collect(),
            decay: at[1].first().map(number),
            step: at[2].first().map_or(0, |&i| read_step(io, i)),
        })
    };
    let moments: SmallVec<[usize; 2]> = op.numbers(Input::Moment).collect();
    let update: Result<Arc<dyn Kernel>> = crate::dispatch!(float io[0].dtype,
        T => Ok(pass::<T, _>(io, &moments, width, read)),
        else => not_float(op.name(), io[0]));
    let (update, name) = (update?, op.name());
    Ok(match op.numbers(Input::Step).next() {
        Some(step) => checked(move |io| check_step(name, read_step(io, step)), update),
        None => update,
    })
}

fn read_number(io: &Io, i: usize, is_double: bool) -> f64 {
    // SAFETY: `infer` checked that it has one element of one of these dtypes.
    unsafe {
        match is_double {
            true => *io.input::<f64>(i),
            false => (*io.input::<f32>(i)).into(),
        }
    }
}

/// The number of updates so far.
fn read_step(io: &Io, i: usize) -> i32 {
    // SAFETY: `infer` checked that it is an int32 with one element.
    unsafe { *io.input::<i32>(i) }
}

fn check_step(op: &'static str, step: i32) -> Result<()> {
    let want = "a step counted from 0";
    crate::ensure!(step >= 0, Error::value(op, format!("step {step}"), want));
    Ok(())
}

/// The gradient with weight decay.
#[inline(always)]
fn decayed<A: Wide>(decay: Option<A>, g: A, p: A) -> A {
    decay.map_or(g, |decay| g + decay * p)
}

/// A second moment, flushed unless nothing is added to it before the division by its root: then
/// not even a denormal one may become zero.
#[inline(always)]
fn second_moment<A: Wide>(value: A, eps: f64) -> A {
    if eps == 0.0 { value } else { value.flushed() }
}

/// AdaGrad's.
struct History(Numbers);

impl Formula for History {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [history, _]: [&mut [A]; 2]) {
        let [lr, eps] = [self.0.all[0], self.0.all[1]].map(A::of);
        let decay = self.0.decay.map(A::of);
        for ((p, &g), history) in p.iter_mut().zip(g).zip(history) {
            let g = decayed(decay, g, *p);
            *history = *history + g * g;
            *p = *p - lr * g / (*history + eps).sqrt();
        }
    }
}

/// Lion's.
struct Sign(Numbers);

impl Formula for Sign {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [m, _]: [&mut [A]; 2]) {
        let [lr, beta1, beta2] = [0, 1, 2].map(|i| A::of(self.0.all[i]));
        let [fresh1, fresh2] = [1, 2].map(|i| A::of(1.0 - self.0.all[i]));
        let [zero, one, decay] = [0.0, 1.0, self.0.decay.unwrap_or(0.0)].map(A::of);
        for ((p, &g), m) in p.iter_mut().zip(g).zip(m) {
            let mean = beta1 * *m + fresh1 * g;
            // Zero and NaN are their own signs.
            let sign = if mean > zero {
                one
            } else if mean < zero {
                zero - one
            } else {
                mean
            };
            *p = *p - lr * (sign + decay * *p);
            *m = (beta2 * *m + fresh2 * g).flushed();
        }
    }
}

/// RMSProp's.
struct Average(Numbers);

impl Formula for Average {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [average, _]: [&mut [A]; 2]) {
        let (rho, eps) = (self.0.all[1], self.0.all[2]);
        let [lr, rho, fresh, eps_] = [self.0.all[0], rho, 1.0 - rho, eps].map(A::of);
        let decay = self.0.decay.map(A::of);
        for ((p, &g), average) in p.iter_mut().zip(g).zip(average) {
            let g = decayed(decay, g, *p);
            *average = second_moment(rho * *average + fresh * (g * g), eps);
            *p = *p - lr * g / (*average + eps_).sqrt();
        }
    }
}

/// Adam's.
struct Moments {
    /// The factor applied to the parameter first (decoupled decay).
    shrink: Option<f64>,
    /// The decay that is added to the gradient.
    decay: Option<f64>,
    beta: [f64; 2],
    /// lr / (1 - beta1^t)
    rate: f64,
    /// 1 / sqrt(1 - beta2^t)
    root: f64,
    eps: f64,
}

impl Moments {
    fn new(decoupled: bool, numbers: &Numbers) -> Moments {
        let [lr, beta1, beta2, eps] = [0, 1, 2, 3].map(|i| numbers.all[i]);
        let bias = |beta: f64| 1.0 - beta.powf(numbers.step as f64 + 1.0);
        Moments {
            shrink: decoupled.then_some(1.0 - lr * numbers.decay.unwrap_or(0.0)),
            decay: numbers.decay.filter(|_| !decoupled),
            beta: [beta1, beta2],
            rate: lr / bias(beta1),
            root: bias(beta2).sqrt().recip(),
            eps,
        }
    }
}

impl Formula for Moments {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [m, v]: [&mut [A]; 2]) {
        let [beta1, beta2] = self.beta.map(A::of);
        let [fresh1, fresh2] = self.beta.map(|beta| A::of(1.0 - beta));
        let [rate, root, eps] = [self.rate, self.root, self.eps].map(A::of);
        let (shrink, decay) = (self.shrink.map(A::of), self.decay.map(A::of));
        for (((p, &g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            let g = decayed(decay, g, *p);
            *m = (beta1 * *m + fresh1 * g).flushed();
            *v = second_moment(beta2 * *v + fresh2 * (g * g), self.eps);
            let start = shrink.map_or(*p, |s| *p * s);
            *p = start - rate * *m / (v.sqrt() * root + eps);
        }
    }
}

/// That of stochastic gradient descent.
struct Descent {
    lr: f64,
    decay: Option<f64>,
    /// Momentum, and 1 - dampening.
    momentum: Option<[f64; 2]>,
    nesterov: bool,
}

impl Descent {
    fn new(momentum: bool, nesterov: bool, numbers: &Numbers) -> Descent {
        let all = &numbers.all;
        let momentum = momentum.then(|| [all[1], 1.0 - all[2]]);
        Descent { lr: all[0], decay: numbers.decay, momentum, nesterov }
    }
}

impl Formula for Descent {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [buffer, _]: [&mut [A]; 2]) {
        let (lr, decay) = (A::of(self.lr), self.decay.map(A::of));
        let Some(momentum) = self.momentum else {
            return p.iter_mut().zip(g).for_each(|(p, &g)| *p = *p - lr * decayed(decay, g, *p));
        };
        let [momentum, fresh] = momentum.map(A::of);
        for ((p, &g), buffer) in p.iter_mut().zip(g).zip(buffer) {
            let g = decayed(decay, g, *p);
            *buffer = (momentum * *buffer + fresh * g).flushed();
            *p = *p - lr * if self.nesterov { g + momentum * *buffer } else { *buffer };
        }
    }
}

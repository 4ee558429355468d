//! The rules of the optimizers.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::not_float;
use super::update::{Rule, prepare};
use super::wide::Wide;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::optim::{Adagrad, Adam, Rmsprop, STEP, Sgd};
use crate::ops::{Family, Meta};

/// Prepares an update whose rule `rule` makes from the hyperparameters.
fn update<R: Rule>(
    op: &dyn Family,
    io: &[&Meta],
    moments: &[usize],
    width: Width,
    rule: impl Fn(&Scalars) -> R + Send + Sync + 'static,
) -> Result<Arc<dyn Kernel>> {
    let are_double: Vec<bool> = io.iter().map(|meta| meta.dtype == DType::Float64).collect();
    let read = move |io: &Io| rule(&Scalars { io, are_double: &are_double });
    crate::dispatch!(float io[0].dtype, T => Ok(prepare::<T, _>(io, moments, width, read)),
        else => not_float(op.name(), io[0]))
}

/// The hyperparameters of an update: float32 or float64.
struct Scalars<'a> {
    io: &'a Io<'a>,
    /// By input: whether it is float64.
    are_double: &'a [bool],
}

impl Scalars<'_> {
    /// The value of input `i`.
    fn get(&self, i: usize) -> f64 {
        // SAFETY: `infer` checked that it has one element of one of these dtypes.
        unsafe {
            match self.are_double[i] {
                true => *self.io.input::<f64>(i),
                false => (*self.io.input::<f32>(i)).into(),
            }
        }
    }
}

/// A second moment, flushed unless nothing is added to it before the division by its root: then
/// not even a denormal one may become zero.
#[inline(always)]
fn second_moment<A: Wide>(value: A, eps: f64) -> A {
    if eps == 0.0 { value } else { value.flushed() }
}

/// Prepares AdaGrad.
///
/// # Errors
/// [`Error::DType`] for parameters that are not floats.
pub fn adagrad(op: &Adagrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let decay = op.weight_decay.then_some(5);
    update(op, io, &[3], width, move |io: &Scalars| History {
        lr: io.get(2),
        eps: io.get(4),
        decay: decay.map(|i| io.get(i)),
    })
}

/// AdaGrad's rule.
struct History {
    lr: f64,
    eps: f64,
    decay: Option<f64>,
}

impl Rule for History {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [history, _]: [&mut [A]; 2]) {
        let [lr, eps] = [self.lr, self.eps].map(A::of);
        let decay = self.decay.map(A::of);
        for ((p, &g), history) in p.iter_mut().zip(g).zip(history) {
            let g = decay.map_or(g, |d| g + d * *p);
            *history = *history + g * g;
            *p = *p - lr * g / (*history + eps).sqrt();
        }
    }
}

/// Prepares Adam.
///
/// # Errors
/// As [`adagrad`].
pub fn adam(op: &Adam, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let family = op.clone();
    let update = update(op, io, &[3, 4], width, move |io: &Scalars| Moments::new(&family, io))?;
    Ok(checked(check_step, update))
}

/// The number of updates so far.
fn step(io: &Io) -> i32 {
    // SAFETY: `infer` checked that it is an int32 with one element.
    unsafe { *io.input::<i32>(STEP) }
}

fn check_step(io: &Io) -> Result<()> {
    let (step, want) = (step(io), "a step counted from 0");
    crate::ensure!(step >= 0, Error::value("adam", format!("step {step}"), want));
    Ok(())
}

/// Adam's rule.
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
    fn new(op: &Adam, io: &Scalars) -> Moments {
        let step = step(io.io);
        let [lr, beta1, beta2, eps] = [2, 5, 6, 7].map(|i| io.get(i));
        let bias = |beta: f64| 1.0 - beta.powf(step as f64 + 1.0);
        let decay = if op.weight_decay { io.get(9) } else { 0.0 };
        Moments {
            shrink: op.decoupled.then_some(1.0 - lr * decay),
            decay: (op.weight_decay && !op.decoupled).then_some(decay),
            beta: [beta1, beta2],
            rate: lr / bias(beta1),
            root: bias(beta2).sqrt().recip(),
            eps,
        }
    }
}

impl Rule for Moments {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [m, v]: [&mut [A]; 2]) {
        let [beta1, beta2] = self.beta.map(A::of);
        let [fresh1, fresh2] = self.beta.map(|beta| A::of(1.0 - beta));
        let [rate, root, eps] = [self.rate, self.root, self.eps].map(A::of);
        let (shrink, decay) = (self.shrink.map(A::of), self.decay.map(A::of));
        for (((p, &g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            let g = decay.map_or(g, |d| g + d * *p);
            *m = (beta1 * *m + fresh1 * g).flushed();
            *v = second_moment(beta2 * *v + fresh2 * (g * g), self.eps);
            let start = shrink.map_or(*p, |s| *p * s);
            *p = start - rate * *m / (v.sqrt() * root + eps);
        }
    }
}

/// Prepares RMSProp.
///
/// # Errors
/// As [`adagrad`].
pub fn rmsprop(op: &Rmsprop, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let decay = op.weight_decay.then_some(6);
    update(op, io, &[3], width, move |io: &Scalars| Average {
        lr: io.get(2),
        rho: io.get(4),
        eps: io.get(5),
        decay: decay.map(|i| io.get(i)),
    })
}

/// RMSProp's rule.
struct Average {
    lr: f64,
    rho: f64,
    eps: f64,
    decay: Option<f64>,
}

impl Rule for Average {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [average, _]: [&mut [A]; 2]) {
        let [lr, rho, fresh, eps] = [self.lr, self.rho, 1.0 - self.rho, self.eps].map(A::of);
        let decay = self.decay.map(A::of);
        for ((p, &g), average) in p.iter_mut().zip(g).zip(average) {
            let g = decay.map_or(g, |d| g + d * *p);
            *average = second_moment(rho * *average + fresh * (g * g), self.eps);
            *p = *p - lr * g / (*average + eps).sqrt();
        }
    }
}

/// Prepares stochastic gradient descent.
///
/// # Errors
/// As [`adagrad`].
pub fn sgd(op: &Sgd, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let family = op.clone();
    update(op, io, op.buffer().as_slice(), width, move |io: &Scalars| Descent::new(&family, io))
}

/// The rule of stochastic gradient descent.
struct Descent {
    lr: f64,
    decay: Option<f64>,
    /// Momentum, and 1 - dampening.
    momentum: Option<[f64; 2]>,
    nesterov: bool,
}

impl Descent {
    fn new(op: &Sgd, io: &Scalars) -> Descent {
        Descent {
            lr: io.get(2),
            decay: op.decay().map(|i| io.get(i)),
            momentum: op.buffer().map(|i| [io.get(i + 1), 1.0 - io.get(i + 2)]),
            nesterov: op.nesterov,
        }
    }
}

impl Rule for Descent {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [buffer, _]: [&mut [A]; 2]) {
        let lr = A::of(self.lr);
        let decay = self.decay.map(A::of);
        let decayed = |g: A, p: A| decay.map_or(g, |d| g + d * p);
        let Some(momentum) = self.momentum else {
            return p.iter_mut().zip(g).for_each(|(p, &g)| *p = *p - lr * decayed(g, *p));
        };
        let [momentum, fresh] = momentum.map(A::of);
        for ((p, &g), buffer) in p.iter_mut().zip(g).zip(buffer) {
            let g = decayed(g, *p);
            *buffer = (momentum * *buffer + fresh * g).flushed();
            *p = *p - lr * if self.nesterov { g + momentum * *buffer } else { *buffer };
        }
    }
}

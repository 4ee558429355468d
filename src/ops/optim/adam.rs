//! Adam and AdamW.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Signature, prepare, scalar, second_moment};
use crate::error::{Error, Result};
use crate::kernels::cpu::update::Rule;
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::{Catalog, Cost, Effects, Family, Meta, Metas};

/// `(param, grad, lr, m, v, beta1, beta2, eps, step, [decay])`: updates `param`, `m` and `v`.
///
/// `t = step + 1; g = grad + decay*param; m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g;`
/// `param -= lr * m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + eps)` (Kingma, Ba 2015). Decoupled, the
/// decay stays out of the gradient and `param -= lr*decay*param` comes first (AdamW; Loshchilov,
/// Hutter 2019). `step` is an int32 counted from 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Adam {
    /// Whether the weight decay is AdamW's.
    pub decoupled: bool,
    /// Whether there is a weight decay.
    pub weight_decay: bool,
}

/// The number of the input that holds the step.
const STEP: usize = 8;

impl Adam {
    fn rule(&self, io: &Io) -> Step {
        let step = step(io);
        let [lr, beta1, beta2, eps] = [2, 5, 6, 7].map(|i| scalar(io, i));
        let bias = |beta: f64| 1.0 - beta.powf(step as f64 + 1.0);
        let decay = if self.weight_decay { scalar(io, 9) } else { 0.0 };
        Step {
            shrink: self.decoupled.then_some(1.0 - lr * decay),
            decay: (self.weight_decay && !self.decoupled).then_some(decay),
            beta: [beta1, beta2],
            rate: lr / bias(beta1),
            root: bias(beta2).sqrt().recip(),
            eps,
        }
    }
}

/// The number of updates so far.
fn step(io: &Io) -> i32 {
    // SAFETY: `infer` checked that it is an int32 with one element.
    #[allow(unsafe_code)]
    unsafe {
        *io.input::<i32>(STEP)
    }
}

fn check_step(io: &Io) -> Result<()> {
    let (step, want) = (step(io), "a step counted from 0");
    crate::ensure!(step >= 0, Error::value("adam", format!("step {step}"), want));
    Ok(())
}

impl Catalog for Adam {
    fn names() -> Vec<&'static str> {
        vec!["adam"]
    }
}

impl Family for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 9 + self.weight_decay as usize;
        Signature { op: self.name(), inputs: count, moments: &[3, 4], counters: &[STEP] }
            .infer(inputs)
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0), (3, 1), (4, 2)])
    }

    fn checked(&self) -> &'static [usize] {
        &[STEP]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 24)
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let family = self.clone();
        let update = prepare!(self, io, &[3, 4], width, move |io: &Io| family.rule(io))?;
        Ok(checked(check_step, update))
    }
}

struct Step {
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

impl Rule for Step {
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

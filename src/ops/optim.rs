//! Optimizers: an operation updates one parameter and its moments in place. Each rule is a row.
//!
//! Hyperparameters are float32 or float64 tensors of shape (1,), read when the operation runs, so
//! that they may change from step to step. Arithmetic is in the moments' dtype: float64 for float64
//! parameters, float32 for all others. Decaying moments are set to zero where they would be
//! denormal.

use serde::{Deserialize, Serialize};

use super::{Catalog, Cost, Effects, Family, Locality, Meta, Metas, check_float, check_meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::view;

/// `(param, grad, lr, ...)`, followed by what the rule reads besides: updates `param` and the
/// moments.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Update {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Whether there is a weight decay: unless the rule says otherwise, `g = grad + decay * param`
    /// takes the gradient's place.
    pub weight_decay: bool,
}

/// The rule of an update.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "f", rename_all = "snake_case")]
pub enum Rule {
    /// `([decay], [buf, momentum, dampening])`: `buf = momentum*buf + (1-dampening)*g;`
    /// `g = nesterov ? g + momentum*buf : buf; param -= lr*g` (SINGA's `opt.SGD`).
    Sgd {
        /// Whether there are inputs for a momentum buffer, a momentum and a dampening.
        momentum: bool,
        /// Whether to use Nesterov momentum; without momentum it has no effect.
        nesterov: bool,
    },
    /// `(m, v, beta1, beta2, eps, step, [decay])`: `t = step + 1; m = beta1*m + (1-beta1)*g;`
    /// `v = beta2*v + (1-beta2)*g*g; param -= lr * m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + eps)`
    /// (Kingma, Ba 2015). Decoupled, the decay stays out of the gradient and
    /// `param -= lr*decay*param` comes first (AdamW; Loshchilov, Hutter 2019). `step` is an int32
    /// counted from 0.
    Adam {
        /// Whether the weight decay is AdamW's.
        decoupled: bool,
    },
    /// `(history, eps, [decay])`: `history += g*g; param -= lr*g / sqrt(history+eps)` (Duchi,
    /// Hazan, Singer 2011; epsilon inside the root as in SINGA's `opt.AdaGrad`).
    Adagrad,
    /// `(m, beta1, beta2, [decay])`: `param -= lr * (sign(beta1*m + (1-beta1)*g) + decay*param);`
    /// `m = beta2*m + (1-beta2)*g`, where g is the gradient without decay (Chen et al. 2023).
    Lion,
    /// `(avg, rho, eps, [decay])`: `avg = rho*avg + (1-rho)*g*g; param -= lr*g / sqrt(avg+eps)`
    /// (Hinton's lecture 6e; epsilon inside the root as in SINGA's `opt.RMSProp`).
    Rmsprop,
}

/// What an update reads at one of its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The parameter.
    Parameter,
    /// The gradient, of the parameter's shape and dtype.
    Gradient,
    /// A moment, of the parameter's shape.
    Moment,
    /// A hyperparameter.
    Number,
    /// The weight decay, if there is one.
    Decay,
    /// An integer counted from 0, of shape (1,).
    Step,
}

/// The number of the input that holds the gradient.
pub const GRADIENT: usize = 1;

/// A rule's name, what it reads after (param, grad, lr), and its operations an element.
type Row = (&'static str, &'static [Input], u64);

impl Rule {
    /// Each rule, with the attributes that matter.
    pub fn all() -> [Rule; 7] {
        [
            Rule::Adagrad,
            Rule::Adam { decoupled: false },
            Rule::Adam { decoupled: true },
            Rule::Lion,
            Rule::Rmsprop,
            Rule::Sgd { momentum: false, nesterov: false },
            Rule::Sgd { momentum: true, nesterov: true },
        ]
    }

    fn row(&self) -> Row {
        use Input::{Decay, Moment, Number, Step};
        match self {
            Rule::Sgd { momentum: false, .. } => ("sgd", &[Decay], 6),
            Rule::Sgd { momentum: true, .. } => ("sgd", &[Decay, Moment, Number, Number], 6),
            Rule::Adam { .. } => {
                ("adam", &[Moment, Moment, Number, Number, Number, Step, Decay], 24)
            }
            Rule::Adagrad => ("adagrad", &[Moment, Number, Decay], 16),
            Rule::Lion => ("lion", &[Moment, Number, Number, Decay], 10),
            Rule::Rmsprop => ("rmsprop", &[Moment, Number, Number, Decay], 16),
        }
    }
}

impl Catalog for Update {
    fn names() -> Vec<&'static str> {
        let mut names: Vec<_> = Rule::all().iter().map(|rule| rule.row().0).collect();
        names.dedup();
        names
    }
}

impl Update {
    /// What it reads, in order.
    pub fn inputs(&self) -> impl Iterator<Item = Input> {
        let more = self.rule.row().1.iter().copied();
        let first = [Input::Parameter, Input::Gradient, Input::Number];
        let is_read = |input: &Input| self.weight_decay || *input != Input::Decay;
        first.into_iter().chain(more).filter(is_read)
    }

    /// The numbers of the inputs of a kind.
    pub fn numbers(&self, kind: Input) -> impl Iterator<Item = usize> {
        (0..).zip(self.inputs()).filter(move |(_, input)| *input == kind).map(|(i, _)| i)
    }

    fn check_places(&self, meta: &Meta, what: &str) -> Result<()> {
        let (got, want) = (|| format!("an expanded {what}"), "each element in a place of its own");
        crate::ensure!(!view::repeats(meta), Error::value(self.name(), got(), want));
        Ok(())
    }

    fn check_one(&self, i: usize, meta: &Meta, fits: bool, dtypes: &str) -> Result<()> {
        let want = || format!("input {i} of dtype {dtypes}");
        crate::ensure!(fits, Error::dtype(self.name(), [meta.dtype], want()));
        let want = || format!("input {i} of shape (1,)");
        crate::ensure!(*meta.shape == [1], Error::shape(self.name(), [&meta.shape], want()));
        Ok(())
    }

    fn check(&self, i: usize, input: Input, param: &Meta, meta: &Meta) -> Result<()> {
        let is_float = meta.dtype.is_wide_float();
        match input {
            Input::Parameter => {
                check_float(self.name(), param)?;
                self.check_places(param, "parameter")
            }
            Input::Gradient => {
                check_meta(self.name(), "a gradient", meta, param.dtype, &param.shape)
            }
            Input::Moment => {
                check_meta(self.name(), "a moment", meta, param.dtype.wide(), &param.shape)?;
                self.check_places(meta, "moment")
            }
            Input::Step => self.check_one(i, meta, meta.dtype == DType::Int32, "int32"),
            Input::Number | Input::Decay => self.check_one(i, meta, is_float, "float32 or float64"),
        }
    }
}

impl Family for Update {
    fn name(&self) -> &'static str {
        self.rule.row().0
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let (got, want) = (inputs.len(), self.inputs().count());
        let refusal = || Error::arity(self.name(), got, want);
        crate::ensure!(got == want, refusal());
        for ((i, kind), meta) in self.inputs().enumerate().zip(inputs) {
            self.check(i, kind, inputs[0], meta)?;
        }
        let updated = self.numbers(Input::Moment).map(|i| inputs[i].clone());
        Ok(std::iter::once(inputs[0].clone()).chain(updated).collect())
    }

    fn effects(&self) -> Effects {
        let mut moments = self.numbers(Input::Moment);
        Effects::updates(match (moments.next(), moments.next()) {
            (None, _) => &[(0, 0)],
            (Some(3), None) => &[(0, 0), (3, 1)],
            (Some(4), None) => &[(0, 0), (4, 1)],
            (Some(3), Some(4)) => &[(0, 0), (3, 1), (4, 2)],
            _ => unreachable!("no row has other moments"),
        })
    }

    fn checked(&self) -> &'static [usize] {
        match self.numbers(Input::Step).next() {
            None => &[],
            Some(8) => &[8],
            _ => unreachable!("no row counts elsewhere"),
        }
    }

    fn locality(&self) -> Locality {
        Locality::Element
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, self.rule.row().2)
    }
}

//! Recurrences of every kind, with their gradients.

use serde_json::json;

use super::Sketch;
use crate::ops::Kind;
use crate::ops::recurrent::{Form, Part, Recurrent, RecurrentGrad, Sizes};

const SIZES: Sizes = Sizes { steps: 3, rows: 2, units: 3, state: 3 };

/// All steps of a layer, and the gradient of some of its results.
pub(super) fn recurrence(s: &mut Sketch) -> Option<()> {
    let form = form(s);
    let sizes = Sizes { state: if form.projection { 2 } else { 3 }, ..SIZES };
    let op = Recurrent { form };
    let given: Vec<usize> =
        op.inputs().into_iter().map(|part| input(s, &form, part, &sizes)).collect::<Option<_>>()?;
    let first = s.op(attributes(op.clone().into()), &given)?;
    let made = |part: Part| op.outputs().iter().position(|one| *one == part).map(|o| first + o);
    let gradients = usize::from(form.has_cell()) + 2;
    let mut from = Vec::new();
    let grad = RecurrentGrad { form };
    for (i, part) in grad.inputs().into_iter().enumerate() {
        let own = op.inputs().iter().position(|one| *one == part).map(|input| given[input]);
        let of_forward = match part {
            Part::Gates | Part::States | Part::Cells => made(part),
            _ => own,
        };
        from.push(match of_forward {
            Some(tensor) if i >= gradients => tensor,
            _ => input(s, &form, part, &sizes)?,
        });
    }
    let back = s.op(attributes(grad.into()), &from)?;
    s.op(json!({"op": "unary", "f": "relu"}), &[back])?;
    s.op(json!({"op": "unary", "f": "relu"}), &[first]).map(drop)
}

fn attributes(kind: Kind) -> serde_json::Value {
    serde_json::to_value(kind).expect("attributes")
}

fn form(s: &mut Sketch) -> Form {
    let cell = s.random.pick(&["tanh", "relu", "lstm", "lstm", "gru", "linear_gru"]);
    let is_lstm = cell == "lstm";
    let form = json!({"cell": cell, "reverse": s.is(), "peepholes": is_lstm && s.is(),
                      "projection": is_lstm && s.is(), "lengths": s.is()});
    serde_json::from_value(form).expect("a form")
}

/// A tensor that fits a part.
fn input(s: &mut Sketch, form: &Form, part: Part, sizes: &Sizes) -> Option<usize> {
    let meta = form.meta(part, sizes, crate::dtype::DType::Float32);
    match part {
        Part::Lengths => {
            s.op(json!({"op": "arange", "start": 1, "step": 2, "count": 2, "dtype": "int64"}), &[])
        }
        _ => s.numbers(&meta.shape),
    }
}

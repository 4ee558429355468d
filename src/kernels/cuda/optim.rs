//! Updates of parameters and their moments, in place.

use super::check::Check;
use super::program::Program;
use super::source::Source;
use super::types::computed;
use super::walk::Walk;
use crate::error::Error;
use crate::ops::optim::{Input, Rule, Update};
use crate::ops::{Family, Meta};

const TEMPLATES: &str = include_str!("c/optim.cu");

/// The program of an update; `io` are its inputs, then the parameter and the moments.
pub fn program(op: &Update, io: &[&Meta]) -> Program {
    let kinds: Vec<Input> = op.inputs().collect();
    let (inputs, outputs) = io.split_at(kinds.len());
    let dtypes = |metas: &[&Meta]| metas.iter().map(|meta| meta.dtype).collect::<Vec<_>>();
    let mut source = Source::new(op.name(), &dtypes(inputs), &dtypes(outputs)).with(TEMPLATES);
    declare_numbers(&mut source, &kinds);
    if matches!(op.rule, Rule::Adam { .. }) {
        source = source.waiting();
        source.line("const Corrections by = corrections(n0, n1, n2, step);");
    }
    // The gradient, then what is updated.
    let walked: Vec<&Meta> = std::iter::once(io[1]).chain(outputs.iter().copied()).collect();
    let places = source.each(&Walk::new(&io[0].shape, &walked));
    let wide = computed(io[0].dtype.wide());
    source.line(format!("    {wide} grad = load(g.in1[{}]);", places[0]));
    for (o, name) in ["p", "m", "v"].iter().enumerate().take(outputs.len()) {
        source.line(format!("    {wide} {name} = load(g.out{o}[{}]);", places[1 + o]));
    }
    source.line(format!("    {}", step(op, wide)));
    for (o, name) in ["p", "m", "v"].iter().enumerate().take(outputs.len()) {
        source.line(format!("    store(g.out{o}[{}], {name});", places[1 + o]));
    }
    source.end();
    checked(op, io, Program::one(source, inputs.len(), outputs.len()))
}

/// Reads the hyperparameters: `n0`, `n1` and so on, `decay` and `step`.
fn declare_numbers(source: &mut Source, kinds: &[Input]) {
    let mut count = 0;
    for (i, kind) in kinds.iter().enumerate() {
        match kind {
            Input::Number => {
                source.line(format!("const double n{count} = *g.in{i};"));
                count += 1;
            }
            Input::Decay => source.line(format!("const double decay = *g.in{i};")),
            Input::Step => source.line(format!("const int32 step = *g.in{i};")),
            Input::Parameter | Input::Gradient | Input::Moment => {}
        }
    }
    if !kinds.contains(&Input::Decay) {
        source.line("const double decay = 0;");
    }
}

/// Updates `p`, `m` and `v` from `grad`. Unless the rule says otherwise, the decay is added to it.
fn step(op: &Update, wide: &str) -> String {
    let own = matches!(op.rule, Rule::Lion | Rule::Adam { decoupled: true });
    let grad = match op.weight_decay && !own {
        true => format!("grad + {wide}(decay) * p"),
        false => "grad".to_string(),
    };
    let lr = format!("{wide}(n0)");
    match op.rule {
        Rule::Adagrad => format!("adagrad(p, {grad}, m, {lr}, {wide}(n1));"),
        Rule::Rmsprop => format!("rmsprop(p, {grad}, m, {lr}, n1, n2);"),
        Rule::Lion => format!("lion(p, {grad}, m, {lr}, n1, n2, {wide}(decay));"),
        Rule::Sgd { momentum: false, .. } => format!("sgd(p, {grad}, {lr});"),
        Rule::Sgd { nesterov, .. } => format!("sgd(p, {grad}, m, {lr}, n1, n2, {nesterov});"),
        Rule::Adam { decoupled } => {
            let decay = if decoupled { "decay" } else { "0.0" };
            format!("adam(p, {grad}, m, v, n0, n1, n2, n3, by, {decay});")
        }
    }
}

/// Steps are counted from 0.
fn checked(op: &Update, io: &[&Meta], program: Program) -> Program {
    let (name, Some(step)) = (op.name(), op.numbers(Input::Step).next()) else { return program };
    let want = "a step counted from 0";
    let refusal = move |found: super::check::Found| {
        Error::value(name, format!("step {}", found.integer), want)
    };
    program.checked(Check::new(step, io[step], |_| "x < 0".into(), refusal), io[step])
}

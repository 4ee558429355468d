//! Scaled dot-product attention and its gradient.

use super::check::{Check, Found};
use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::types::{computed, stored};
use super::walk::Walk;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::attention::{Attention, AttentionGrad, Extra, Rule, Sizes, wide};
use crate::ops::{Family, Meta};
use crate::shape::Shape;

const RANDOM: &str = include_str!("c/random.cu");
const TEMPLATES: &str = include_str!("c/attention.cu");

/// The step of a tensor along an axis counted from the end of a shape that it broadcasts to.
fn step(meta: &Meta, from_end: usize) -> isize {
    let own = meta.shape.rank().checked_sub(from_end);
    own.filter(|&d| meta.shape[d] != 1).map_or(0, |d| meta.strides[d])
}

/// A tensor's leading axes, repeated to the shape of the batch; behind them are `rest` others.
fn leading(meta: &Meta, batch: &Shape, rest: usize) -> Meta {
    let strides = (0..batch.rank()).map(|d| step(meta, batch.rank() + rest - d)).collect();
    Meta { dtype: meta.dtype, shape: batch.clone(), strides }
}

/// The steps from head to head, from row to row and along a row; `trailing` axes are there.
fn side(source: &mut Source, meta: Option<&Meta>, trailing: usize) -> String {
    let behind = 3 - trailing;
    let of = |axis: usize| match (meta, axis > behind) {
        (Some(meta), true) => step(meta, axis - behind) as i64,
        _ => 0,
    };
    source.record("Side", [of(3), of(2), of(1)])
}

/// One operation's inputs on their way into the arguments.
struct Setup<'a> {
    name: &'static str,
    rule: &'a Rule,
    sizes: Sizes,
    /// The optional inputs, with their numbers.
    extra: Extra<(usize, &'a Meta)>,
    q: &'a Meta,
}

/// What all kernels of an operation are given at the end.
struct Common {
    mask: String,
    limits: String,
    drops: String,
    scale: String,
}

impl<'a> Setup<'a> {
    fn new(
        name: &'static str,
        rule: &'a Rule,
        qkv: [&'a Meta; 3],
        first: usize,
        inputs: &[&'a Meta],
    ) -> Result<Setup<'a>> {
        let numbered = inputs.iter().copied().enumerate().skip(first);
        let sizes = Sizes::new(name, qkv)?;
        Ok(Setup { name, rule, sizes, extra: rule.extra(numbered), q: qkv[0] })
    }

    fn source(&self, inputs: &[&Meta], outputs: &[DType]) -> Source {
        let dtypes: Vec<DType> = inputs.iter().map(|meta| meta.dtype).collect();
        let mut source = Source::new(self.name, &dtypes, outputs);
        source.threads = THREADS / 2;
        source.with(RANDOM).with(TEMPLATES).waiting()
    }

    /// The batch: tensors with `axes` behind it, then the optional inputs, then others.
    fn batch(
        &self,
        source: &mut Source,
        first: &[(&Meta, usize)],
        rest: &[(&Meta, usize)],
    ) -> String {
        let Extra { mask, lengths, start, .. } = &self.extra;
        let nothing =
            Meta { dtype: DType::Bool, shape: [].into(), strides: [].into_iter().collect() };
        let or_nothing = |one: &Option<(usize, &'a Meta)>| {
            one.map_or_else(|| nothing.clone(), |(_, meta)| meta.clone())
        };
        let mut all: Vec<Meta> =
            first.iter().map(|(meta, behind)| leading(meta, &self.sizes.batch, *behind)).collect();
        all.push(leading(&or_nothing(mask), &self.sizes.batch, 3));
        all.extend([lengths, start].map(|one| leading(&or_nothing(one), &self.sizes.batch, 0)));
        all.extend(rest.iter().map(|(meta, behind)| leading(meta, &self.sizes.batch, *behind)));
        let axes: Vec<usize> = (0..self.sizes.batch.rank()).collect();
        let name = source.walk(&Walk::along(&axes, &all.iter().collect::<Vec<_>>()));
        let count = source.size(self.sizes.batch.numel());
        format!("{name}, {count}, {}", self.extents(source))
    }

    fn extents(&self, source: &mut Source) -> String {
        let Sizes { heads, lengths, widths, .. } = &self.sizes;
        let all = [heads, lengths, widths].into_iter().flatten();
        source.record("Extents", all.map(|&extent| extent as i64))
    }

    fn common(&self, source: &mut Source, offset: u64) -> Common {
        let Extra { mask, lengths, start, state } = &self.extra;
        let masked = |(input, meta): (usize, &Meta)| {
            let [row, element] = [2, 1].map(|axis| source.integer(step(meta, axis) as i64));
            format!("Mask<{}>{{g.in{input}, {row}, {element}}}", stored(meta.dtype))
        };
        let mask = mask.map_or_else(|| "NoMask{}".into(), masked);
        let named = |one: &Option<(usize, &Meta)>| {
            one.map_or_else(|| "nullptr".to_string(), |(input, _)| format!("g.in{input}"))
        };
        let causal = i32::from(self.rule.causal);
        let limits = format!("Limits{{{}, {}, {causal}}}", named(lengths), named(start));
        let rest = 1.0 - self.rule.dropout.0;
        let drops = match state {
            Some((input, _)) => {
                let bound = source.integer((rest * 2f64.powi(32)).round() as i64);
                let (offset, kept) = (source.integer(offset as i64), source.number(1.0 / rest));
                let keys = source.size(self.sizes.lengths[1]);
                let numbers = format!("(uint64){offset}, (uint64){bound}, {kept}, {keys}");
                format!("Drops{{g.in{input}, {numbers}}}")
            }
            None => "Keeps{}".into(),
        };
        Common { mask, limits, drops, scale: source.number(self.rule.scale.0) }
    }

    /// Numbers of keys, and positions, are in range.
    fn checked(&self, program: Program) -> Program {
        let (name, keys) = (self.name, self.sizes.lengths[1]);
        let lengths = move |found: Found| {
            Error::value(name, found.integer, format!("a number of keys from 0 to {keys}"))
        };
        let start = move |found: Found| Error::value(name, found.integer, "a start from 0 on");
        let Extra { lengths: counts, start: positions, .. } = &self.extra;
        let program = counts.iter().fold(program, |program, &(input, meta)| {
            let bad = |source: &mut Source| format!("x < 0 || x > {}", source.size(keys));
            program.checked(Check::new(input, meta, bad, lengths), meta)
        });
        positions.iter().fold(program, |program, &(input, meta)| {
            program.checked(Check::new(input, meta, |_| "x < 0".into(), start), meta)
        })
    }

    /// The number of blocks with one task each, of a head's rows.
    fn tasks(&self, heads: usize, rows: usize) -> usize {
        self.sizes.batch.numel() * heads * rows
    }
}

/// The program of (q, k, v, ...) -> (y, lse, perhaps the generator's state).
///
/// # Errors
/// Those of shapes that do not fit.
pub fn attention(op: &Attention, io: &[&Meta]) -> Result<Program> {
    let outputs = if op.rule.drops() { 3 } else { 2 };
    let (inputs, made) = io.split_at(io.len() - outputs);
    let [q, k, v, y, lse] = [inputs[0], inputs[1], inputs[2], made[0], made[1]];
    let setup = Setup::new(op.name(), &op.rule, [q, k, v], 3, inputs)?;
    let outputs: Vec<DType> = made.iter().map(|meta| meta.dtype).collect();
    let mut source = setup.source(inputs, &outputs);
    let batch = setup.batch(&mut source, &[(q, 3), (k, 3), (v, 3), (y, 3), (lse, 2)], &[]);
    let mask = setup.extra.mask.map(|(_, meta)| meta);
    let sides = [(Some(q), 3), (Some(k), 3), (Some(v), 3), (Some(y), 3), (Some(lse), 2), (mask, 3)]
        .map(|(meta, trailing)| side(&mut source, meta, trailing))
        .join(", ");
    let Common { mask, limits, drops, scale } = setup.common(&mut source, op.offset);
    source.line(format!(
        "attention<{}>(g.in0, g.in1, g.in2, g.out0, g.out1, {batch}, {sides}, {mask}, {limits}, \
         {drops}, {scale});",
        computed(wide(q.dtype))
    ));
    if let Some((state, _)) = setup.extra.state {
        let offset = source.integer(op.offset as i64);
        source.line(format!("keep_state(g.in{state}, g.out2, {offset});"));
    }
    let tasks = setup.tasks(setup.sizes.heads[0], setup.sizes.lengths[0]);
    let program = Program::one(source.blocks(tasks), inputs.len(), made.len());
    Ok(setup.checked(program))
}

/// The program of (dy, q, k, v, y, lse, ...) -> (dq, dk, dv, perhaps dscores).
///
/// # Errors
/// Those of shapes that do not fit.
pub fn attention_grad(op: &AttentionGrad, io: &[&Meta]) -> Result<Program> {
    let (inputs, made) = io.split_at(io.len() - if op.scores { 4 } else { 3 });
    let [dy, q, k, v, y, lse] = [0, 1, 2, 3, 4, 5].map(|i| inputs[i]);
    let setup = Setup::new(op.name(), &op.rule, [q, k, v], 6, inputs)?;
    let dtype = setup.q.dtype;
    let begun = |outputs: &[DType]| {
        let mut source = setup.source(inputs, outputs);
        let first = [(q, 3), (k, 3), (v, 3), (dy, 3), (lse, 2)];
        let rest = [(y, 3), (made[0], 3), (made[1], 3), (made[2], 3)];
        let batch = setup.batch(&mut source, &first, &rest);
        let mask = setup.extra.mask.map(|(_, meta)| meta);
        let [dq, dk, dv] = [0, 1, 2].map(|o| made[o]);
        let sides = [dy, q, k, v, y].map(|meta| side(&mut source, Some(meta), 3)).join(", ");
        let between = [side(&mut source, Some(lse), 2), side(&mut source, mask, 3)].join(", ");
        let results = [dq, dk, dv].map(|meta| side(&mut source, Some(meta), 3)).join(", ");
        let Common { mask, limits, drops, scale } = setup.common(&mut source, 0);
        let rest = format!(
            "{batch}, Sides{{{sides}, {between}, {results}}}, {mask}, {limits}, {drops}, {scale}"
        );
        (source, rest)
    };
    let given = "g.in0, g.in1, g.in2, g.in3, g.in4, g.in5";
    let wide = computed(wide(dtype));
    let places = |outputs: &[usize]| -> Vec<Place> {
        let to = outputs.iter().map(|&o| Place::Output(o, 0));
        (0..inputs.len()).map(Place::Input).chain(to).collect()
    };
    let with_scores: &[usize] = if op.scores { &[0, 3] } else { &[0] };
    let dtypes: Vec<DType> = with_scores.iter().map(|&o| made[o].dtype).collect();
    let (mut queries, rest) = begun(&dtypes);
    let scores = match op.scores {
        true => "g.out1".to_string(),
        false => format!("({} *)nullptr", stored(lse.dtype)),
    };
    queries.line(format!("attention_grad_queries<{wide}>({given}, g.out0, {scores}, {rest});"));
    let [heads, shared] = setup.sizes.heads;
    let [rows, columns] = setup.sizes.lengths;
    let queries = queries.blocks(setup.tasks(heads, rows));
    let (mut keys, rest) = begun(&[dtype, dtype]);
    keys.line(format!("attention_grad_keys<{wide}>({given}, g.out0, g.out1, {rest});"));
    let keys = keys.blocks(setup.tasks(shared, columns));
    let program = Program::default().then(queries, &places(with_scores));
    Ok(setup.checked(program.then(keys, &places(&[1, 2]))))
}

//! Scaled dot-product attention and its gradient: products of matrices, and kernels between them.
//! The scores of some heads, or of some rows of one, are in memory at a time.

mod parts;

use super::check::{Check, Found};
use super::copy::copy;
use super::program::{Place, Program, Step};
use super::source::{Source, THREADS};
use super::types::stored;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::attention::{Attention, AttentionGrad, Extra, Rule, Sizes};
use crate::ops::{Family, Meta};
use parts::Axes::{self, Keys, Queries, Rows};
use parts::{Part, Parts, Tensor};

const RANDOM: &str = include_str!("c/random.cu");
const TEMPLATES: &str = include_str!("c/attention.cu");

/// An attention or its gradient, on the way into a program.
struct Setup<'a> {
    name: &'static str,
    rule: &'a Rule,
    keys: usize,
    /// The type of elements, and that of scores.
    dtypes: [DType; 2],
    /// The optional inputs.
    extra: Extra<(usize, &'a Meta)>,
    parts: Parts,
    /// The numbers of mask, lengths and start among the tensors of the parts.
    limiting: [Option<usize>; 3],
    /// The first block of random numbers.
    offset: u64,
}

/// What calls of both kernels have in common.
struct Common {
    /// The part, as an argument.
    part: String,
    /// Mask, limits, what is dropped, scale.
    rule: String,
    /// Where the optional inputs are.
    places: Vec<Place>,
}

impl<'a> Setup<'a> {
    /// `tensors` are those of matrices and rows; optional inputs follow the `first` ones. Parts may
    /// add to the tensor `summed`.
    fn new(
        (name, rule): (&'static str, &'a Rule),
        sizes: Sizes,
        mut tensors: Vec<Tensor>,
        (inputs, first): (&[&'a Meta], usize),
        summed: Option<usize>,
    ) -> Setup<'a> {
        let dtype = tensors[0].meta.dtype;
        let extra = rule.extra(inputs.iter().copied().enumerate().skip(first));
        let mut take = |one: Option<(usize, &Meta)>, axes: Axes| {
            let (input, meta) = one?;
            tensors.push(Tensor { meta: meta.clone(), place: Place::Input(input), axes });
            Some(tensors.len() - 1)
        };
        let limiting = [
            take(extra.mask, Axes::Queries),
            take(extra.lengths, Axes::Batch),
            take(extra.start, Axes::Batch),
        ];
        let (keys, skips) = (sizes.lengths[1], rule.causal && !rule.start);
        let parts = Parts::new(tensors, sizes, summed, skips);
        Setup { name, rule, keys, dtypes: [dtype, dtype.wide()], extra, parts, limiting, offset: 0 }
    }

    /// A kernel of one block for each row of a part, with the optional inputs behind `inputs`.
    fn rows(&self, part: &Part, inputs: &[DType], outputs: &[DType]) -> (Source, Common) {
        let Extra { mask, lengths, start, state } = &self.extra;
        let given = [mask, lengths, start, state].into_iter().flatten().map(|(_, meta)| meta.dtype);
        let dtypes: Vec<DType> = inputs.iter().copied().chain(given).collect();
        let source = Source::new(self.name, &dtypes, outputs).with(RANDOM).with(TEMPLATES);
        let mut source = source.sharing(part.keys.min(THREADS as usize / 2));
        let mut next = inputs.len();
        let mut name = |is_given: bool| {
            next += usize::from(is_given);
            is_given.then(|| format!("g.in{}", next - 1))
        };
        let [mask, lengths, start, state] =
            [mask, lengths, start, state].map(|one| name(one.is_some()));
        let all = source.record("Part", self.parts.words(part));
        let mask = mask.map_or_else(|| "NoMask{}".into(), |name| self.mask(&mut source, &name));
        let limits = self.limits(&mut source, [lengths, start]);
        let drops = state.map_or_else(|| "Keeps{}".into(), |name| self.drops(&mut source, &name));
        let scale = source.number(self.rule.scale.0);
        let limiting = self.limiting.into_iter().flatten().map(|t| self.parts.place(t, part));
        let state = self.extra.state.map(|(input, _)| Place::Input(input));
        let rule = format!("{mask}, {limits}, {drops}, {scale}");
        let common = Common { part: all, rule, places: limiting.chain(state).collect() };
        (source.blocks(part.count * part.rows.len()), common)
    }

    fn mask(&self, source: &mut Source, name: &str) -> String {
        let t = self.limiting[0].expect("a mask");
        let steps = self.parts.steps(t).map(|step| source.integer(step as i64)).join(", ");
        format!("Mask<{}>{{{name}, {steps}}}", stored(self.parts.tensors[t].meta.dtype))
    }

    fn limits(&self, source: &mut Source, names: [Option<String>; 2]) -> String {
        let steps = [1, 2].map(|i| self.limiting[i].map_or(0, |t| self.parts.steps(t)[0]));
        let steps = steps.map(|step| source.integer(step as i64)).join(", ");
        let names = names.map(|name| name.unwrap_or_else(|| "nullptr".into())).join(", ");
        format!("Limits{{{names}, {steps}, {}}}", i32::from(self.rule.causal))
    }

    fn drops(&self, source: &mut Source, name: &str) -> String {
        let rest = 1.0 - self.rule.dropout.0;
        let bound = source.integer((rest * 2f64.powi(32)).round() as i64);
        let (offset, kept) = (source.integer(self.offset as i64), source.number(1.0 / rest));
        let numbers = format!("(uint64){offset}, (uint64){bound}, {kept}");
        format!("Drops{{{name}, {numbers}, {}}}", source.size(self.keys))
    }

    /// Tensors' steps as arguments.
    fn sides(&self, source: &mut Source, tensors: &[usize]) -> String {
        let side = |&t: &usize| {
            let steps = self.parts.steps(t).map(|step| step as i64);
            source.record("Side", steps)
        };
        tensors.iter().map(side).collect::<Vec<_>>().join(", ")
    }

    /// Scratch memory for the scores of the largest part, or for what takes their place.
    fn room(&self, program: &mut Program, parts: &[Part], dtype: DType) -> Place {
        let most = parts.iter().map(Part::numel).max().unwrap_or(0);
        program.take(most * dtype.size())
    }

    /// Numbers of keys, and positions, are in range.
    fn checked(&self, program: Program) -> Program {
        let (name, keys) = (self.name, self.keys);
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
}

fn kernel(source: Source, places: Vec<Place>) -> Step {
    Step { source, places, library: None }
}

fn tensors(of: &[(&Meta, Place, Axes)]) -> Vec<Tensor> {
    of.iter().map(|&(meta, place, axes)| Tensor { meta: meta.clone(), place, axes }).collect()
}

/// The number of lse among the tensors of an attention, behind q, k, v and y.
const OF_ROWS: usize = 4;

/// The program of (q, k, v, ...) -> (y, lse, perhaps the generator's state).
///
/// # Errors
/// Those of shapes that do not fit.
pub fn attention(op: &Attention, io: &[&Meta]) -> Result<Program> {
    let (inputs, made) = io.split_at(io.len() - if op.rule.drops() { 3 } else { 2 });
    let sizes = Sizes::new(op.name(), [inputs[0], inputs[1], inputs[2]])?;
    let all = tensors(&[
        (inputs[0], Place::Input(0), Queries),
        (inputs[1], Place::Input(1), Keys),
        (inputs[2], Place::Input(2), Keys),
        (made[0], Place::Output(0, 0), Queries),
        (made[1], Place::Output(1, 0), Rows),
    ]);
    let setup = Setup::new((op.name(), &op.rule), sizes, all, (inputs, 3), None);
    let setup = Setup { offset: op.offset, ..setup };
    let (parts, [dtype, sums]) = (setup.parts.all(), setup.dtypes);
    let mut program = Program::default();
    let scores = setup.room(&mut program, &parts, sums);
    let weights = if dtype == sums { scores } else { setup.room(&mut program, &parts, dtype) };
    for part in &parts {
        let [q, k, v, y] = [0, 1, 2, 3].map(|t| setup.parts.matrix(t, part));
        program.steps.extend([
            q.times(&k.transposed(), &part.scores(sums, scores), false),
            setup.weights(part, made[1].dtype, [scores, weights]),
            part.scores(dtype, weights).times(&v, &y, false),
        ]);
    }
    if let Some((state, _)) = setup.extra.state {
        let places = vec![Place::Input(state), Place::Output(2, 0)];
        program.steps.push(kernel(keep_state(op.name(), op.offset), places));
    }
    Ok(setup.checked(program))
}

/// The kernel that keeps the state that weights were drawn from.
fn keep_state(name: &'static str, offset: u64) -> Source {
    let source = Source::new(name, &[DType::Int64], &[DType::Int64]);
    let mut source = source.with(RANDOM).with(TEMPLATES);
    let offset = source.integer(offset as i64);
    source.line(format!("keep_state(g.in0, g.out0, {offset});"));
    source
}

impl Setup<'_> {
    /// The kernel of (scores, ...) -> (weights, lse).
    fn weights(&self, part: &Part, lse: DType, [scores, weights]: [Place; 2]) -> Step {
        let [dtype, sums] = self.dtypes;
        let (mut source, common) = self.rows(part, &[sums], &[dtype, lse]);
        let sides = self.sides(&mut source, &[OF_ROWS]);
        let Common { part: of, rule, places } = common;
        source.line(format!("attention_weights(g.in0, g.out0, g.out1, {of}, {sides}, {rule});"));
        let to = [weights, self.parts.place(OF_ROWS, part)];
        kernel(source, [&[scores], &places[..], &to].concat())
    }

    /// The kernel of (scores, ups, dy, y, lse, ...) -> (weights, slopes, perhaps dscores).
    fn slopes(&self, part: &Part, between: [Place; 4], dscores: Option<DType>) -> Step {
        let [dtype, sums] = self.dtypes;
        let [scores, ups, weights, steep] = between;
        let lse = self.parts.tensors[LSE].meta.dtype;
        let outputs: Vec<DType> = [dtype, dtype].into_iter().chain(dscores).collect();
        let (mut source, common) = self.rows(part, &[sums, sums, dtype, dtype, lse], &outputs);
        let Common { part: of, rule, places } = common;
        let sides = self.sides(&mut source, &[DY, Y, LSE]);
        let values = self.parts.tensors[Y].meta.shape.iter().last().copied().unwrap_or(0);
        let [values, keys] = [values, self.keys].map(|size| source.size(size));
        let whole =
            dscores.map_or_else(|| format!("({} *)nullptr", stored(lse)), |_| "g.out2".into());
        source.line(format!(
            "attention_slopes(g.in0, g.in1, g.in2, g.in3, g.in4, g.out0, g.out1, {whole}, {of}, \
             {sides}, {values}, {keys}, {rule});"
        ));
        let [dy, y, lse] = [DY, Y, LSE].map(|t| self.parts.place(t, part));
        let to = dscores.map(|_| Place::Output(3, 0));
        let first = [scores, ups, dy, y, lse].into_iter().chain(places);
        kernel(source, first.chain([weights, steep]).chain(to).collect())
    }
}

/// The numbers of a gradient's tensors: dy, q, k, v, y, lse, dq, dk, dv.
const DY: usize = 0;
const Y: usize = 4;
const LSE: usize = 5;
const DK: usize = 7;
const MATRICES: [usize; 7] = [DY, 1, 2, 3, 6, DK, 8];

/// The program of (dy, q, k, v, y, lse, ...) -> (dq, dk, dv, perhaps dscores).
///
/// # Errors
/// Those of shapes that do not fit.
pub fn attention_grad(op: &AttentionGrad, io: &[&Meta]) -> Result<Program> {
    let (inputs, made) = io.split_at(io.len() - if op.scores { 4 } else { 3 });
    let sizes = Sizes::new(op.name(), [inputs[1], inputs[2], inputs[3]])?;
    let axes = [Queries, Queries, Keys, Keys, Queries, Rows];
    let begun = |[dk, dv]: [(&Meta, Place); 2]| {
        let given = (0..6).map(|i| (inputs[i], Place::Input(i), axes[i]));
        let dq = (made[0], Place::Output(0, 0), Queries);
        let all = given.chain([dq, (dk.0, dk.1, Keys), (dv.0, dv.1, Keys)]).collect::<Vec<_>>();
        let of = (op.name(), &op.rule);
        Setup::new(of, sizes.clone(), tensors(&all), (inputs, 6), Some(DK))
    };
    let mut setup = begun([1, 2].map(|o| (made[o], Place::Output(o, 0))));
    let (parts, [dtype, sums]) = (setup.parts.all(), setup.dtypes);
    let mut program = Program::default();
    let mut late = Vec::new();
    if dtype != sums && parts.iter().any(|part| !part.is_first) {
        // Sums of several parts are rounded once, at the end.
        let wide = [1, 2].map(|o| Meta::new(sums, made[o].shape.clone()));
        let rooms = wide.each_ref().map(|meta| program.take(meta.bytes()));
        setup = begun([(&wide[0], rooms[0]), (&wide[1], rooms[1])]);
        late.extend([1, 2].map(|o| {
            let source = copy(op.name(), &wide[o - 1], made[o]);
            kernel(source, vec![rooms[o - 1], Place::Output(o, 0)])
        }));
    }
    let [scores, ups] = [0; 2].map(|_| setup.room(&mut program, &parts, sums));
    let [weights, steep] = match dtype == sums {
        true => [scores, ups],
        false => [0; 2].map(|_| setup.room(&mut program, &parts, dtype)),
    };
    for part in &parts {
        let [dy, q, k, v, dq, dk, dv] = MATRICES.map(|t| setup.parts.matrix(t, part));
        let (weighed, slopes) = (part.scores(dtype, weights), part.scores(dtype, steep));
        let dscores = op.scores.then(|| made[3].dtype);
        program.steps.extend([
            q.times(&k.transposed(), &part.scores(sums, scores), false),
            dy.times(&v.transposed(), &part.scores(sums, ups), false),
            setup.slopes(part, [scores, ups, weights, steep], dscores),
            slopes.times(&k, &dq, false),
            slopes.transposed().times(&q, &dk, !part.is_first),
            weighed.transposed().times(&dy, &dv, !part.is_first),
        ]);
    }
    program.steps.extend(late);
    Ok(setup.checked(program))
}

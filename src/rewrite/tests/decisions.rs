//! The same recording is always rewritten alike, on every machine. Programs are generated in which
//! patterns of the rules, and near misses of them, are frequent. Each number is a fingerprint of
//! all that a rule leaves of them: if one changes, decisions have changed, which must be intended.

use super::products::{ADD, Net};
use super::*;
use crate::graph::testing::{Empty, fingerprint, told};
use crate::kernels::Fusing;
use crate::kernels::testing::Random;
use crate::ops::Real;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::ops::norm::{BatchNorm, BatchNormGrad, BatchNormInference};
use crate::ops::optim::{self, Update};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::unary::UnaryGrad;
use crate::rewrite as rules;
use crate::view::SliceRange;

/// The seeds of the programs that each fingerprint covers.
const SEEDS: std::ops::Range<u64> = 0..1500;
const EPS: Real = Real(1e-5);

/// Generates a program on square matrices, and rows that fit them.
struct Draw {
    net: Net,
    random: Random,
    dtype: DType,
    side: usize,
    matrices: Vec<View>,
    rows: Vec<View>,
    /// The last operation, to be recorded again.
    last: Option<(Kind, Vec<View>)>,
}

impl Draw {
    fn program(seed: u64) -> Recorder {
        let mut random = Random::new(seed);
        let side = [4, 4, 40, 72, 128, 300][random.below(6)];
        let dtypes =
            [DType::Float32, DType::Float32, DType::Float32, DType::Float64, DType::Float16];
        let dtype = dtypes[random.below(5)];
        let (matrices, rows) = (Vec::new(), Vec::new());
        let mut draw = Draw { net: Net::new(), random, dtype, side, matrices, rows, last: None };
        draw.matrices = (0..3).map(|_| draw.given(&[side, side])).collect();
        let shapes = [vec![side], vec![1, side]];
        draw.rows = (0..4).map(|n| draw.given(&shapes[n / 3])).collect();
        (0..3 + draw.random.below(6)).for_each(|_| draw.motif());
        draw.net.recorder
    }

    fn given(&mut self, shape: &[usize]) -> View {
        let view = View::new(cpu::device(), Meta::new(self.dtype, shape));
        let role = if self.chance(2) { Role::Captured } else { Role::Argument };
        self.net.recorder.number(&view, role);
        view
    }

    fn chance(&mut self, one_of: usize) -> bool {
        self.random.below(one_of) == 0
    }

    fn any(&mut self) -> View {
        let back = 1 + self.random.below(self.matrices.len().min(5));
        self.matrices[self.matrices.len() - back].clone()
    }

    fn row(&mut self) -> View {
        self.rows[self.random.below(self.rows.len())].clone()
    }

    /// What a rule looks for, or rarely something else.
    fn or_other(&mut self, wanted: &View) -> View {
        if self.chance(14) { self.any() } else { wanted.clone() }
    }

    /// Records an operation; returns its first result.
    fn push(&mut self, kind: impl Into<Kind>, inputs: &[&View]) -> View {
        self.push_all(kind.into(), inputs).swap_remove(0)
    }

    fn push_all(&mut self, kind: Kind, inputs: &[&View]) -> Vec<View> {
        let inputs: Vec<View> = inputs.iter().map(|&view| view.clone()).collect();
        let metas: Vec<&Meta> = inputs.iter().map(|view| &*view.meta).collect();
        let metas = kind.family().infer(&metas).unwrap();
        let outputs: Vec<View> =
            metas.into_iter().map(|meta| View::new(cpu::device(), meta)).collect();
        for view in &outputs {
            let role = if self.chance(7) { Role::Slot } else { Role::Temporary };
            self.net.recorder.number(view, role);
        }
        self.net.recorder.push(kind.clone(), &inputs, &outputs);
        self.last = Some((kind, inputs));
        let is_matrix = outputs[0].meta.shape[..] == [self.side; 2];
        self.matrices.extend(is_matrix.then(|| outputs[0].clone()));
        outputs
    }

    fn motif(&mut self) {
        let is_half = self.dtype == DType::Float16; // some motifs mix it with float32
        match self.random.below(10) {
            4 | 5 | 8 if is_half => self.chain(),
            0 | 1 => self.small(),
            2 => self.chain(),
            9 => self.wide(),
            3 => self.log_softmax(),
            4 => self.normalised(),
            5 => self.normalised_by_given(),
            6 => self.collected(),
            7 => self.dense(),
            _ => self.updated(),
        }
    }

    /// Sometimes inserts an unrelated operation.
    fn pause(&mut self) {
        if self.chance(4) {
            self.small();
        }
    }

    /// A single operation on random operands.
    fn small(&mut self) {
        let (a, b, row) = (self.any(), self.any(), self.row());
        match self.random.below(13) {
            0 => drop(self.push(Unary { f: UnaryFn::Neg }, &[&a])),
            1 => drop(self.push(Binary { f: BinaryFn::Mul }, &[&a, &b])),
            2 => drop(self.push(ADD, &[&a, &row])),
            3 => self.net.recorder.negate(&a, &a),
            4 => self.net.recorder.add(&a, &b, &a),
            5 => self.net.recorder.add(&a, &row, &b),
            6 => drop(self.push(Softmax { axis: -1, log: false }, &[&a])),
            7 => drop(self.push(Unary { f: UnaryFn::Neg }, &[&row])),
            8 => self.part(&a),
            11 => self.net.recorder.negate(&row, &row),
            12 => drop(self.push(ADD, &[&a.permute(&[1, 0]).unwrap(), &a])),
            9 => self.again(),
            _ => self.on_host(&a, &b),
        }
    }

    /// Reads a part of a matrix, or its transpose.
    fn part(&mut self, a: &View) {
        let half = SliceRange { start: 0, count: self.side / 2, step: 1 };
        let whole = SliceRange { count: self.side, ..half };
        let part = match self.chance(2) {
            true => a.slice(&[half, whole]).unwrap(),
            false => a.permute(&[1, 0]).unwrap(),
        };
        let f = [UnaryFn::Neg, UnaryFn::Relu][self.random.below(2)].clone();
        self.push(Unary { f }, &[&part]);
    }

    fn again(&mut self) {
        if let Some((kind, inputs)) = self.last.clone() {
            self.push_all(kind, &inputs.iter().collect::<Vec<_>>());
        }
    }

    fn on_host(&mut self, a: &View, b: &View) {
        let kind = Unary { f: UnaryFn::Neg }.into();
        let empty = Empty { kind, updates: false, host: self.chance(2), scratch: 0 };
        let (inputs, outputs) = (std::slice::from_ref(a), std::slice::from_ref(b));
        self.net.recorder.push_empty(&empty, inputs, outputs);
    }

    /// A sequence of elementwise operations.
    fn chain(&mut self) {
        let mut x = self.any();
        for _ in 0..2 + self.random.below(4) {
            let other = if self.chance(3) { self.row() } else { self.any() };
            x = self.or_other(&x);
            x = match self.random.below(4) {
                0 => self.push(Unary { f: UnaryFn::Exp }, &[&x]),
                1 => self.push(Unary { f: UnaryFn::Relu }, &[&x]),
                2 => self.push(ADD, &[&other, &x]),
                _ => self.push(Binary { f: BinaryFn::Mul }, &[&x, &other]),
            };
            self.pause();
        }
    }

    /// A sum of about as many tensors, with about as many operations, as one pass may have.
    fn wide(&mut self) {
        let given: Vec<View> = (0..6).map(|_| self.given(&[self.side; 2])).collect();
        let mut x = self.any();
        for n in 0..5 + self.random.below(13) {
            let other = if n < 6 { given[n].clone() } else { self.or_other(&given[n % 6]) };
            x = self.push(ADD, &[&x, &other]);
        }
    }

    fn log_softmax(&mut self) {
        let (x, axis) = (self.any(), -(self.random.below(2) as i64));
        let p = self.push(Softmax { axis, log: false }, &[&x]);
        self.pause();
        let of = self.or_other(&p);
        self.push(Unary { f: UnaryFn::Log }, &[&of]);
        for _ in 0..self.random.below(3) {
            self.pause();
            let (dl, of) = (self.any(), self.or_other(&p));
            let f = if self.chance(8) { UnaryFn::Relu } else { UnaryFn::Log };
            let dp = self.push(UnaryGrad { f }, &[&dl, &of]);
            self.pause();
            let (dp, of) = (self.or_other(&dp), self.or_other(&p));
            self.push(SoftmaxGrad { axis, log: false }, &[&dp, &of]);
        }
    }

    /// A batch normalisation followed by a ReLU, and their gradients.
    fn normalised(&mut self) {
        let (x, scale, bias, dy) =
            (self.any(), self.rows[0].clone(), self.rows[1].clone(), self.any());
        let made = self.push_all(BatchNorm { eps: EPS }.into(), &[&x, &scale, &bias]);
        self.pause();
        let mut z = self.or_other(&made[0]);
        if self.chance(2) {
            let other = self.any();
            z = self.push(ADD, &[&z, &other]);
            self.pause();
        }
        let y = self.push(Unary { f: UnaryFn::Relu }, &[&z]);
        self.pause();
        let of = self.or_other(&y);
        let dz = self.push(UnaryGrad { f: UnaryFn::Relu }, &[&dy, &of]);
        self.pause();
        let (dz, x) = (self.or_other(&dz), self.or_other(&x));
        let eps = if self.chance(9) { Real(1e-3) } else { EPS };
        self.push(BatchNormGrad { eps }, &[&dz, &x, &scale, &made[1], &made[2]]);
    }

    /// A normalisation by given statistics of a product, with or without a bias.
    fn normalised_by_given(&mut self) {
        let (x, w) = (self.any(), self.matrices[0].clone());
        let mut z = self.multiplied(&x, &w);
        self.pause();
        if !self.chance(4) {
            let bias = if self.chance(6) { self.any() } else { self.row() };
            z = self.or_other(&z);
            let f = if self.chance(6) { BinaryFn::Mul } else { BinaryFn::Add };
            z = self.push(Binary { f }, &[&z, &bias]);
            self.pause();
        }
        let z = self.or_other(&z);
        let [a, b, c, d] = [0, 1, 2, 1].map(|n| self.rows[n].clone());
        let y = self.push(BatchNormInference { eps: EPS }, &[&z, &a, &b, &c, &d]);
        self.push(Unary { f: UnaryFn::Relu }, &[&y]);
    }

    fn multiplied(&mut self, a: &View, b: &View) -> View {
        match self.dtype {
            DType::Float16 => self.push(Binary { f: BinaryFn::Mul }, &[a, b]),
            _ => self.push(Matmul, &[a, b]),
        }
    }

    /// A sum of products.
    fn collected(&mut self) {
        let (a, b, c) = (self.any(), self.any(), self.any());
        let first = self.multiplied(&a, &b);
        self.pause();
        let second = if self.chance(3) { self.any() } else { self.multiplied(&b, &c) };
        self.pause();
        if self.chance(2) {
            self.net.recorder.add(&first, &second, &first);
        } else {
            self.push(ADD, &[&first, &second]);
        }
    }

    /// A product, a bias, and what follows.
    fn dense(&mut self) {
        let (x, w) = (self.any(), self.any());
        let z = self.multiplied(&x, &w);
        self.pause();
        let (z, bias) = (self.or_other(&z), self.row());
        let y = self.push(ADD, &[&z, &bias]);
        self.pause();
        let y = self.or_other(&y);
        self.push(Unary { f: UnaryFn::Tanh }, &[&y]);
    }

    /// A product that computes a gradient, and the update of a weight with it.
    fn updated(&mut self) {
        let (x, dy, w) = (self.any(), self.any(), self.matrices[1].clone());
        let transposed = x.permute(&[1, 0]).unwrap();
        let g = self.multiplied(&transposed, &dy);
        self.pause();
        let lr = View::new(cpu::device(), Meta::new(DType::Float32, [1]));
        self.net.recorder.number(&lr, Role::Captured);
        let g = self.or_other(&g);
        let sgd = Update {
            rule: optim::Rule::Sgd { momentum: false, nesterov: false },
            weight_decay: false,
        };
        self.net.recorder.push(sgd, &[w.clone(), g, lr], &[w]);
    }
}

/// A fingerprint of what a rule leaves of all programs.
fn left(rule: Rule) -> u64 {
    fingerprint(SEEDS.map(|seed| {
        let recorder = Draw::program(seed);
        let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
        rule(&mut draft).unwrap();
        let (queue, roles) = draft.finish();
        queue.ops().iter().map(told).collect::<String>() + &format!("{roles:?}")
    }))
}

/// Thresholds, some of which equal the sizes of the matrices in bytes.
const SOME: Fusing = Fusing { short: 40 * 40 * 4, large_rows: 128 * 128 * 4, ..Fusing::NONE };
const UNKEPT: Allowed = Allowed { rounds: true, keeps: false, limits: Limits::NONE };

#[test]
fn rules_one_by_one() {
    let rules: [Rule; 12] = [
        |draft| rules::functionalize::apply(draft),
        |draft| {
            rules::cse::apply(draft);
            Ok(())
        },
        |draft| {
            rules::dce::apply(draft);
            Ok(())
        },
        |draft| rules::log_softmax::apply(draft),
        |draft| rules::fold_batch_norm::apply(draft),
        |draft| rules::batch_norm::apply(draft),
        |draft| rules::fusion::update::apply(draft),
        |draft| rules::fusion::sum::apply(draft, SOME),
        |draft| rules::fusion::links::apply(draft, SOME),
        |draft| rules::fusion::links::apply(draft, Fusing::NONE),
        |draft| rules::fusion::producer::apply(draft, SOME),
        |draft| rules::fusion::producer::apply(draft, Fusing::NONE),
    ];
    assert_eq!(
        rules.map(left),
        [
            11_960_860_099_152_360_877,
            2_588_139_702_919_979_632,
            856_823_053_307_370_076,
            16_085_339_163_308_157_832,
            9_102_166_807_496_077_973,
            856_157_361_263_583_910,
            1_204_992_855_193_910_942,
            5_863_153_499_308_140_292,
            1_552_304_150_909_333_123,
            10_039_695_757_443_162_639,
            14_484_354_745_550_322_736,
            15_099_771_377_061_289_107
        ]
    );
}

#[test]
fn all_rules() {
    let rules: [Rule; 3] = [
        |draft| rewrite(draft, UNKEPT).map(drop),
        |draft| rewrite(draft, Allowed { rounds: false, ..UNKEPT }).map(drop),
        |draft| {
            let limits = Limits { chains: Some(SOME), ..Limits::DEFAULT };
            rewrite(draft, Allowed { limits, ..UNKEPT }).map(drop)
        },
    ];
    assert_eq!(
        rules.map(left),
        [2_266_008_722_604_664_221, 5_731_223_641_007_951_953, 11_517_105_028_240_706_751]
    );
}

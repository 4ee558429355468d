//! Generating random programs: steps are tried one by one, and valid ones are kept.

use serde_json::{Value, json};

use super::motifs::Sketch;
use super::play::{Look, Player, Step};
use super::*;
use crate::view::SliceRange;

/// The fewest and most steps that are drawn for a program.
pub const STEPS: [usize; 2] = [20, 40];

/// splitmix64 (Steele, Lea and Flood, 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.below(4001) as f32 / 1000.0 - 2.0).collect()
    }
}

/// A training step, as data.
#[derive(Debug)]
pub struct Program {
    pub seed: u64,
    arguments: Vec<Vec<usize>>,
    is_moved: bool,
    is_twice: bool,
    parameters: Vec<Vec<usize>>,
    pub steps: Vec<Step>,
    pub results: Vec<usize>,
    pub kept: Vec<usize>,
    /// Whether the caller holds on to the results of all runs.
    pub holds_results: bool,
    pub features: Features,
}

impl Program {
    pub fn draw(seed: u64) -> Program {
        Program::draw_for(seed, engine(1 << 22), true)
    }

    /// A program of what an engine runs, with or without sequences of steps that belong together.
    pub fn draw_for(seed: u64, engine: Engine, has_motifs: bool) -> Program {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let shapes = [vec![3, 4], vec![4], vec![2, 3, 4], vec![3, 1], vec![]];
        let mut draw = |least| (0..least + random.below(2)).map(|_| random.pick(&shapes)).collect();
        let (arguments, mut parameters): (_, Vec<Vec<usize>>) = (draw(1), draw(2));
        parameters.push(vec![1]); // the learning rate
        let [is_moved, is_twice, holds_results] = [2, 8, 2].map(|n| random.below(n) == 0);
        let mut program = Program {
            seed,
            arguments,
            is_moved,
            is_twice,
            parameters,
            steps: Vec::new(),
            results: Vec::new(),
            kept: Vec::new(),
            holds_results,
            features: Features::default(),
        };
        program.fill(&mut random, engine, has_motifs);
        program
    }

    /// Draws steps and tries them on a separate engine.
    fn fill(&mut self, random: &mut Random, engine: Engine, has_motifs: bool) {
        let arguments = self.arguments(&engine, &mut Random(1));
        let given = [arguments, self.parameters(&engine, &mut Random(2))].concat();
        let fixed = given.len();
        let mut player = Player::new(&engine, given);
        let count = STEPS[0] + random.below(STEPS[1] - STEPS[0]);
        while self.steps.len() < count {
            if has_motifs && random.below(12) == 0 {
                let mut sketch =
                    Sketch { random: &mut *random, player: &mut player, fixed, steps: Vec::new() };
                sketch.motif();
                for step in sketch.steps {
                    self.note(&step, &player);
                    self.steps.push(step);
                }
            }
            let step = self.propose(random, &player, fixed);
            if player.step(&step).is_ok() {
                self.note(&step, &player);
                self.steps.push(step);
            }
        }
        let live: Vec<usize> =
            (0..player.tensors.len()).filter(|&i| player.tensors[i].is_some()).collect();
        // What no result depends on is eliminated, so more results keep more of the program.
        let results = random.pick(&[1, 2, live.len() / 4, live.len()]).max(1);
        self.results = (0..results).map(|_| random.pick(&live)).collect();
        let given = player.take(&(0..fixed).collect::<Vec<_>>());
        let is_made = |&i: &usize| {
            let block = player.get(i).block;
            given.iter().all(|view| !std::sync::Arc::ptr_eq(&view.block, &block))
        };
        let made: Vec<usize> = live.into_iter().filter(is_made).collect();
        if !made.is_empty() {
            self.kept = (0..random.below(3)).map(|_| random.pick(&made)).collect();
        }
        self.features.kept += u64::from(!self.kept.is_empty());
        self.features.steps += count as u64;
        self.features.moved_arguments += u64::from(self.is_moved);
        self.features.one_argument_twice += u64::from(self.is_twice);
    }

    fn propose(&self, random: &mut Random, player: &Player, fixed: usize) -> Step {
        let live: Vec<usize> =
            (0..player.tensors.len()).filter(|&i| player.tensors[i].is_some()).collect();
        let [a, b, c] = [(); 3].map(|()| random.pick(&live));
        let rate = fixed - 1;
        let parameter = rate - 1 - random.below(self.parameters.len() - 1);
        let kind = |value: Value| serde_json::from_value::<Kind>(value).expect("an operation");
        let op = |value, from: &[usize]| Step::Op(kind(value), from.to_vec());
        match random.below(20) {
            0 | 1 => {
                let f = random.pick(&["neg", "relu", "tanh", "square", "sigmoid", "abs"]);
                op(json!({"op": "unary", "f": f}), &[a])
            }
            2 | 3 => {
                let f = random.pick(&["add", "mul", "sub", "maximum"]);
                op(json!({"op": "binary", "f": f}), &[a, b])
            }
            4 => {
                let scalar = random.below(5) as i64 - 2;
                let f = random.pick(&["add", "mul"]);
                let attributes =
                    json!({"op": "binary_scalar", "f": f, "scalar": scalar, "reverse": false});
                op(attributes, &[a])
            }
            5 => op(json!({"op": "matmul"}), &[a, b]),
            6 => {
                let f = random.pick(&["sum", "mean", "max"]);
                let (axes, keepdims) = (vec![0; random.below(2)], random.below(2) == 0);
                op(json!({"op": "reduce", "f": f, "axes": axes, "keepdims": keepdims}), &[a])
            }
            7 => op(json!({"op": "softmax", "axis": -1, "log": random.below(2) == 0}), &[a]),
            8 => op(json!({"op": "dropout", "ratio": 0.5}), &[a]),
            9 => {
                let dist = json!({"normal": {"mean": 0, "std": 1}});
                op(json!({"op": "random", "dist": dist, "shape": [3, 4], "dtype": "float32"}), &[])
            }
            10 => {
                let flags = json!({"op": "update", "f": "sgd", "momentum": false, "nesterov": false,
                                   "weight_decay": false});
                op(flags, &[parameter, a, rate])
            }
            11 => op(
                json!({"op": "running_average", "momentum": 0.5, "factor": 1.0}),
                &[parameter, a],
            ),
            12 => Step::Into(kind(json!({"op": "copy"})), vec![a], vec![b]),
            13 => Step::Into(kind(json!({"op": "binary", "f": "add"})), vec![a, b], vec![c]),
            14 => {
                let shape = player.get(a).meta.shape.to_vec();
                let fill = json!({"op": "fill", "value": 3, "shape": shape, "dtype": "float32"});
                Step::Into(kind(fill), vec![], vec![a])
            }
            15 => Step::New(Meta::new(DType::Float32, random.pick(&[[3, 4], [2, 6]]))),
            16 => op(json!({"op": "concat", "axis": 0}), &[a, b]),
            17 if a >= fixed && random.below(3) > 0 => Step::Drop(a),
            _ => Step::View(a, look(random, &player.get(a))),
        }
    }

    fn note(&mut self, step: &Step, player: &Player) {
        let features = &mut self.features;
        match step {
            Step::Into(_, _, to) => {
                features.in_place += 1;
                let written = player.get(to[0]);
                let others = player.tensors.iter().enumerate().filter(|(i, _)| *i != to[0]);
                let seen = others.filter_map(|(_, view)| view.as_ref());
                let overlaps = |view: &View| view.overlaps(&written) && !view.is_same(&written);
                features.overlapping += u64::from(seen.into_iter().any(overlaps));
            }
            Step::Op(kind, _) => {
                features.names.insert(kind.family().name());
                let effects = kind.family().effects();
                features.updates += u64::from(!effects.state.is_empty());
                features.random += u64::from(effects.generator.is_some());
            }
            Step::New(_) => features.unwritten += 1,
            Step::Drop(_) => features.dropped += 1,
            Step::View(..) => {}
        }
    }

    /// Arguments of the program's shapes, in new memory. As the program demands, they are at
    /// varying offsets of a larger block, or the first one is passed twice.
    pub fn arguments(&self, engine: &Engine, random: &mut Random) -> Vec<View> {
        let mut made: Vec<View> = Vec::new();
        for shape in &self.arguments {
            let n: usize = shape.iter().product();
            let lead = if self.is_moved { random.below(4) } else { 0 };
            let base = tensor(engine, &[n + lead], &random.floats(n + lead));
            let rest = base.slice(&[SliceRange { start: lead, count: n, step: 1 }]).unwrap();
            made.push(rest.reshape(&shape[..].into()).unwrap().expect("row-major"));
        }
        if self.is_twice {
            made.push(made[0].clone());
        }
        made
    }

    pub fn parameters(&self, engine: &Engine, random: &mut Random) -> Vec<View> {
        let values = |shape: &Vec<usize>| {
            let n = shape.iter().product();
            tensor(engine, shape, &random.floats(n))
        };
        self.parameters.iter().map(values).collect()
    }
}

fn look(random: &mut Random, view: &View) -> Look {
    let shape = view.meta.shape.to_vec();
    match random.below(4) {
        0 | 1 => Look::Slice(shape.iter().map(|&extent| range(random, extent)).collect()),
        2 => {
            let mut axes: Vec<i64> = (0..shape.len() as i64).collect();
            axes.rotate_left(random.below(shape.len()));
            Look::Permute(axes)
        }
        _ if random.below(2) == 0 => Look::Expand([vec![2], shape].concat()),
        _ => Look::Reshape(vec![view.meta.numel()]),
    }
}

fn range(random: &mut Random, extent: usize) -> SliceRange {
    let start = random.below(extent);
    let step = random.pick(&[1, 1, 2, -1]);
    let most = if step < 0 { start + 1 } else { (extent - start).div_ceil(step as usize) };
    SliceRange { start, count: random.below(most + 1), step }
}

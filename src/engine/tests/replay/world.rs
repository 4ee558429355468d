//! Runs programs, and captures what their runs leave behind.

use half::{bf16, f16};

use super::generate::{Program, Random};
use super::play::Player;
use super::*;
use crate::engine::record;
use crate::ops::unary::{Unary, UnaryFn};

/// The bits of a tensor's elements, row-major; all NaNs are equal.
fn bits(view: &View) -> Vec<u8> {
    let mut view = view.clone();
    if let Some(block) = view.block.current() {
        view.block = block;
    }
    let size = view.meta.dtype.size();
    let known =
        |bytes: &[u8]| if is_nan(view.meta.dtype, bytes) { vec![0xff; size] } else { bytes.into() };
    let element = |block: &[u8], place: usize| known(&block[place * size..][..size]);
    let read = |block: &[u8]| places(&view).into_iter().flat_map(|p| element(block, p)).collect();
    view.block.read(read).unwrap()
}

fn is_nan(dtype: DType, bytes: &[u8]) -> bool {
    let half = || u16::from_ne_bytes(bytes.try_into().unwrap());
    match dtype {
        DType::Float16 => f16::from_bits(half()).is_nan(),
        DType::BFloat16 => bf16::from_bits(half()).is_nan(),
        DType::Float32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::Float64 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    }
}

pub fn all_bits(views: &[View]) -> Bits {
    views.iter().map(bits).collect()
}

/// The bits of some tensors' elements.
pub type Bits = Vec<Vec<u8>>;

/// What a run leaves behind.
#[derive(PartialEq)]
pub struct Left {
    pub results: Bits,
    pub kept: Bits,
    pub arguments: Bits,
    /// The parameters, and the state of the random number generator.
    pub state: Bits,
}

impl Left {
    /// Names the part that differs.
    pub fn difference(&self, other: &Left) -> &'static str {
        let parts = |left: &Left| [&left.results, &left.kept, &left.arguments].map(Clone::clone);
        let names = ["results", "what is kept", "arguments"];
        let pairs = parts(self).into_iter().zip(parts(other)).zip(names);
        let mut different = pairs.filter(|((ours, theirs), _)| ours != theirs);
        different.next().map_or("parameters", |(_, name)| name)
    }
}

/// An engine with the parameters of a program.
pub struct World {
    pub engine: Engine,
    parameters: Vec<View>,
}

impl World {
    pub fn new(program: &Program, engine: Engine) -> Self {
        engine.seed(&mut engine.turn(), program.seed >> 1).unwrap();
        let mut random = Random(program.seed);
        let parameters = program.parameters(&engine, &mut random);
        World { engine, parameters }
    }

    /// What a run leaves behind besides its results.
    pub fn state(&self) -> Bits {
        let stream = self.engine.rng().state(&self.engine.turn(), Stream::Step).unwrap().clone();
        self.parameters.iter().chain([&stream]).map(bits).collect()
    }

    /// Writes every parameter, as a user may between two runs.
    pub fn write(&self) {
        let negate = Kind::from(Unary { f: UnaryFn::Neg });
        for parameter in &self.parameters {
            let inputs = std::iter::once(parameter.clone()).collect();
            let outputs = std::slice::from_ref(parameter);
            self.engine.submit_into(self.engine.turn(), &negate, inputs, outputs).unwrap();
        }
    }

    pub fn player(&self, program: &Program, arguments: &[View]) -> Player<'_> {
        let mut player = Player::new(&self.engine, [arguments, &self.parameters].concat());
        program.steps.iter().for_each(|step| player.step(step).unwrap());
        player
    }

    pub fn record(&self, program: &Program, arguments: &[View]) -> (Recording, Vec<View>) {
        record::begin(Recording::new(self.engine.device(), arguments)).unwrap();
        let player = self.player(program, arguments);
        let results = player.take(&program.results);
        let mut recording = crate::engine::end_recording(&results).unwrap();
        drop(results);
        let kept = player.take(&program.kept);
        drop(player);
        recording.seal();
        (recording, kept)
    }
}

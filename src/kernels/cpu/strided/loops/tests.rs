//! Loops on tensors of any layout, compared with one element at a time.

use proptest::prelude::*;

use super::*;
use crate::dtype::DType;
use crate::kernels::cpu::simd::isa::{Every, Level};
use crate::kernels::testing::{Random, Tensor, run};
use crate::ops::Meta;

/// 2 a - b: not symmetric in its operands, and exact for small integers.
#[derive(Clone, Copy)]
struct TwiceLess;

impl Map<(f32, f32), f32> for TwiceLess {
    type Reach = Every;
    #[inline(always)]
    fn at<L: Level>(&self, (a, b): (f32, f32)) -> f32 {
        2.0 * a - b
    }
}

const EXTENTS: [usize; 10] = [0, 1, 2, 3, 5, 8, 31, 127, 200, 700];

fn shape(random: &mut Random) -> Vec<usize> {
    loop {
        let rank = random.below(5);
        let shape: Vec<usize> = (0..rank).map(|_| EXTENTS[1 + random.below(9)]).collect();
        if shape.iter().product::<usize>() <= 30_000 {
            let empty = random.below(30) == 0;
            return shape.into_iter().map(|n| if empty && n == 2 { 0 } else { n }).collect();
        }
    }
}

/// A tensor of small integers that broadcasts to the shape.
fn operand(random: &mut Random, dtype: DType, shape: &[usize]) -> Tensor {
    let mut shape = shape.to_vec();
    let mut meta = match random.below(3) {
        0 => {
            let drop = random.below(shape.len() + 1);
            shape.drain(..drop);
            shape.iter_mut().for_each(|n| *n = if random.below(3) == 0 { 1 } else { *n });
            random.layout(dtype, &shape)
        }
        1 => Meta::new(dtype, &*shape),
        _ => random.layout(dtype, &shape),
    };
    if random.below(4) == 0 {
        meta.strides.iter_mut().for_each(|s| *s = if random.below(2) == 0 { 0 } else { *s });
    }
    let values: Vec<f64> = (0..meta.numel()).map(|_| random.below(60) as f64).collect();
    Tensor::new(meta, &values)
}

/// The values broadcast to the shape, row-major.
fn broadcast(tensor: &Tensor, shape: &[usize]) -> Vec<f64> {
    let (values, own) = (tensor.values(), &tensor.meta.shape);
    let added = shape.len() - own.rank();
    let place = |mut at: usize| {
        let (mut place, mut step) = (0, 1);
        for d in (0..shape.len()).rev() {
            if d >= added {
                place += if own[d - added] == 1 { 0 } else { at % shape[d] * step };
                step *= own[d - added];
            }
            at /= shape[d];
        }
        values[place]
    };
    (0..shape.iter().product()).map(place).collect()
}

fn expected(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| 2.0 * a - b).collect()
}

const FLOATS: [DType; 3] = [DType::Float32, DType::Float16, DType::BFloat16];

fn prepared(a: &Meta, b: &Meta, c: &Meta, width: usize) -> Loop<3> {
    let operands = [a, b, c].map(Operand::widened);
    Loop::new(map::<(f32, f32), f32, 3, _>(TwiceLess), operands, Width(width))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_layouts_give_the_same(seed in any::<u32>(), width in 1usize..4) {
        let mut random = Random::new(seed as u64);
        let shape = shape(&mut random);
        let [x, y, z] = [0; 3].map(|_| FLOATS[random.below(3)]);
        let (a, b) = (operand(&mut random, x, &shape), operand(&mut random, y, &shape));
        let output = random.layout(z, &shape);
        let kernel = prepared(&a.meta, &b.meta, &output, width);
        let want = expected(&broadcast(&a, &shape), &broadcast(&b, &shape));
        let made = run(&kernel, &[&a, &b], &[output]).unwrap();
        prop_assert_eq!(made[0].values(), want);
    }

    #[test]
    fn updates_in_place(seed in any::<u32>(), width in 1usize..4, second: bool) {
        let mut random = Random::new(seed as u64);
        let shape = shape(&mut random);
        let dtype = FLOATS[random.below(3)];
        let other = operand(&mut random, dtype, &shape);
        let meta = random.layout(dtype, &shape);
        let values: Vec<f64> = (0..meta.numel()).map(|_| random.below(60) as f64).collect();
        let mut updated = Tensor::new(meta.clone(), &values);
        let repeated = broadcast(&other, &shape);
        let at = updated.address();
        let mut fixed = other.clone();
        let fixed = fixed.address();
        let (kernel, at, want) = match second {
            false => (prepared(&meta, &other.meta, &meta, width), [at, fixed, at],
                      expected(&values, &repeated)),
            true => (prepared(&other.meta, &meta, &meta, width), [fixed, at, at],
                     expected(&repeated, &values)),
        };
        // SAFETY: the tensors have the metas that the loop was prepared with.
        unsafe { kernel.run_at(at).unwrap() };
        prop_assert_eq!(updated.values(), want);
    }

    #[test]
    fn copies_of_any_size(seed in any::<u32>(), width in 1usize..4) {
        let mut random = Random::new(seed as u64);
        let shape = shape(&mut random);
        let dtype = DType::ALL[random.below(DType::ALL.len())];
        let from = operand(&mut random, dtype, &shape);
        let to = random.layout(dtype, &shape);
        let operands = [Operand::plain(&from.meta), Operand::plain(&to)];
        let kernel = Loop::new(identity(dtype.size()), operands, Width(width));
        let made = run(&kernel, &[&from], &[to]).unwrap();
        prop_assert_eq!(made[0].values(), broadcast(&from, &shape));
    }
}

#[test]
fn constants_stand_for_any_operand() {
    let meta = Meta::new(DType::Float32, [7, 300]);
    let a = Tensor::new(meta.clone(), &[3.0; 2100]);
    let constant = || Operand::constant_of(10f32);
    let tile = || map::<(f32, f32), f32, 3, _>(TwiceLess);
    let [x, y] = [Operand::plain(&meta), Operand::plain(&meta)];
    let first = Loop::new(tile(), [constant(), x.clone(), y.clone()], Width(2));
    assert_eq!(run(&first, &[&a], std::slice::from_ref(&meta)).unwrap()[0].values(), [17.0; 2100]);
    let second = Loop::new(tile(), [x, constant(), y], Width(1));
    assert_eq!(run(&second, &[&a], std::slice::from_ref(&meta)).unwrap()[0].values(), [-4.0; 2100]);
}

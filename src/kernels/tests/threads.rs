//! Products and convolutions that a library computes in pieces have the same bits on any number of
//! threads.

use super::conv::{kinds, larger, rounds, seed, usual};
use super::*;
use crate::ops::gemm::Matmul;

/// Checks that an operation has the same bits on any number of threads.
fn check(kind: &Kind, inputs: &[&Tensor]) {
    let want = apply(kind, inputs, 1).unwrap();
    for threads in [2, 3, 4, 8, 16] {
        crate::device::team::set_size(threads);
        let got = apply(kind, inputs, threads).unwrap();
        let metas: Vec<&Meta> = inputs.iter().map(|t| &t.meta).collect();
        assert!(got == want, "{kind:?} of {metas:?} on {threads} threads");
    }
}

#[test]
fn products_have_the_same_bits() {
    let mut random = Random::new(seed());
    let sides = [1, 7, 16, 33, 64, 128, 200, 256, 513];
    for round in 0..rounds(60) {
        let mut side = || sides[random.below(sides.len())];
        let [m, n, k] = [side(), side(), 4 * side()];
        let batch = [0, 0, 1, 5][random.below(4)];
        let dtype = [DType::Float32, DType::Float32, DType::BFloat16, DType::Float64][round % 4];
        let mut factor = |[rows, columns]: [usize; 2]| {
            let leading = [batch].into_iter().filter(|&batch| batch > 0);
            let shape: Vec<usize> = leading.chain([rows, columns]).collect();
            let is_turned = random.below(3) == 0;
            let mut meta = Meta::new(dtype, &shape[..]);
            if is_turned {
                let rank = shape.len();
                meta.strides[rank - 2] = 1;
                meta.strides[rank - 1] = rows as isize;
            }
            random.tensor(meta)
        };
        let (a, b) = (factor([m, k]), factor([k, n]));
        check(&Matmul.into(), &[&a, &b]);
    }
}

#[test]
fn convolutions_and_their_gradients_have_the_same_bits() {
    let mut random = Random::new(seed());
    for round in 0..rounds(30) {
        let case = larger(&mut random);
        let dtype = [DType::Float32, DType::Float32, DType::BFloat16][round % 3];
        let [x, w, dy] = case.shapes().map(|shape| random.tensor(usual(dtype, &shape)));
        let inputs = [[&x, &w], [&dy, &w], [&dy, &x]];
        kinds(&case).iter().zip(inputs).for_each(|(kind, inputs)| check(kind, &inputs));
    }
}

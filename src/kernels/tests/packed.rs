use super::*;
use crate::device::onednn;
use crate::kernels::cpu::conv::conv_case::Case;
use crate::ops::conv::Conv;
use crate::ops::gemm::Matmul;
use crate::ops::packed::*;

const TYPES: [DType; 3] = [DType::Float32, DType::BFloat16, DType::Float16];

/// Checks that a packed operation is bit-identical to the plain one; returns whether it packs.
pub fn check(of: impl Into<Kind>, inputs: &[&Tensor], threads: usize) -> bool {
    let of = of.into();
    let metas: Vec<&Meta> = inputs.iter().map(|t| &t.meta).collect();
    let want = apply(&of, inputs, threads).unwrap();
    let io: Vec<&Meta> = metas.iter().copied().chain(want.iter().map(|t| &t.meta)).collect();
    let Some(packing) = cpu::Cpu.packing(&of, &io, Width(threads)).unwrap() else {
        return false;
    };
    let (input, bytes) = (packing.input, packing.bytes);
    let pack = Pack {
        of: Box::new(of.clone()),
        io: io.iter().map(|&meta| meta.clone()).collect(),
        width: threads,
        input,
        bytes,
    };
    let packed = apply(&pack, &inputs[input..=input], 1).unwrap().remove(0);
    let kind = Packed { of: Box::new(of), input, meta: metas[input].clone() };
    let mut inputs = inputs.to_vec();
    inputs[input] = &packed;
    let got = apply(&kind, &inputs, threads).unwrap();
    assert!(got == want, "{kind:?} of {metas:?} on {threads} threads");
    true
}

#[test]
fn convolutions_of_packed_weights_give_the_same_bits() {
    let mut random = Random::new(5);
    let mut count = 0;
    for round in 0..90 {
        let case = Case::random(&mut random);
        let dtype = TYPES[round % 3];
        let [x, w, _] = case.shapes().map(|shape| random.tensor(Meta::new(dtype, &shape[..])));
        let bias = random.tensor(Meta::new(dtype, [case.channels[1]]));
        let inputs: Vec<&Tensor> =
            [&x, &w].into_iter().chain((round % 2 == 0).then_some(&bias)).collect();
        let kind = Conv { geometry: case.geometry.clone() };
        count += usize::from(check(kind, &inputs, 1 + round % 2));
    }
    assert!(count > 45 || !onednn::is_available(), "{count} of 90 pack");
}

#[test]
fn products_with_packed_matrices_give_the_same_bits() {
    let mut random = Random::new(6);
    let sizes = [[784, 256], [256, 256], [512, 1000], [4096, 64], [511, 129], [2048, 48]];
    let small = [[127, 127], [64, 64], [100, 33], [40, 200], [17, 300]];
    let rows = [1, 8, 17, 127, 300];
    for (m, [k, n]) in
        rows.into_iter().flat_map(|m| sizes.into_iter().chain(small).map(move |s| (m, s)))
    {
        for (round, dtype) in TYPES.into_iter().enumerate() {
            let a = random.tensor(Meta::new(dtype, [m, k]));
            let b = Meta::new(dtype, [k, n]);
            let turned = Meta { strides: smallvec::smallvec![1, k as isize], ..b.clone() };
            for b in [b, turned].map(|b| random.tensor(b)) {
                check(Matmul, &[&a, &b], 1 + (m + k + round) % 2);
            }
        }
    }
}

#[test]
fn what_does_not_pack_is_refused() {
    let w = Meta::new(DType::Float64, [2, 2]);
    let of = || Box::new(Kind::from(Matmul));
    let io = vec![w.clone(), w.clone(), w.clone()];
    let pack = |input| Pack { of: of(), io: io.clone(), width: 1, input, bytes: 32 };
    assert!(matches!(pack(5).infer(&[&w]), Err(Error::Shape { .. })));
    let made = pack(1).infer(&[&w]).unwrap();
    assert!(matches!(
        cpu::Cpu.prepare(&pack(1).into(), &[&w, &made[0]], Width(1)),
        Err(Error::Value { .. })
    ));
    let packed = Packed { of: of(), input: 1, meta: w.clone() };
    assert!(matches!(packed.infer(&[&w, &w]), Err(Error::Shape { .. })));
    assert_eq!(packed.infer(&[&w, &made[0]]).unwrap()[0], w);
}

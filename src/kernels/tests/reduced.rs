//! Reductions of what links compute hold the bits of the operations run in turn.

use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::region::{Link, Region};

/// x * y + x and, reduced, the result; `kept` are the links whose results are outputs, too.
fn region(f: ReduceFn, axes: &[i64], kept: &[usize]) -> Region {
    let link =
        |f, operands: &[usize]| Link { kind: Kind::from(Binary { f }), operands: operands.into() };
    let links = vec![link(BinaryFn::Mul, &[0, 1]), link(BinaryFn::Add, &[2, 0])];
    let reduce = Reduce { f, axes: axes.into(), keepdims: false };
    let consumer = Link { kind: reduce.into(), operands: [3].as_slice().into() };
    let outputs = std::iter::once(2).chain(kept.iter().copied()).collect();
    let consumer = Some(Box::new(consumer));
    Region { consumer, ..Region::of_links(2, links, outputs) }
}

/// The results of the operations run one at a time.
fn apart(region: &Region, inputs: &[Tensor; 2]) -> Vec<Tensor> {
    let mut values = inputs.to_vec();
    for link in region.operations() {
        let operands: Vec<&Tensor> = link.operands.iter().map(|&v| &values[v]).collect();
        let metas: Vec<&Meta> = operands.iter().map(|tensor| &tensor.meta).collect();
        let results = link.kind.family().infer(&metas).unwrap();
        let io: Vec<&Meta> = metas.into_iter().chain(&results).collect();
        let kernel = cpu::Cpu.prepare(&link.kind, &io, Width::ONE).unwrap();
        values.push(run(&*kernel, &operands, &results).unwrap().remove(0));
    }
    region.outputs.iter().map(|o| values[region.inputs + o].clone()).collect()
}

/// Holds a region's results against those of its operations, with any results kept; returns whether
/// it runs piece by piece.
fn check(f: ReduceFn, axes: &[i64], inputs: [Meta; 2]) -> bool {
    let mut random = Random::new(11);
    let tensors = inputs.clone().map(|meta| random.tensor(meta));
    let is_cut = |kept: &[usize]| {
        let region = region(f, axes, kept);
        let got = apply_any_width(&region, &tensors).unwrap();
        assert!(got == apart(&region, &tensors), "{f:?} {axes:?} {inputs:?} {kept:?}");
        let values = region.values(&inputs.each_ref()).unwrap();
        crate::kernels::cpu::region::is_blocked(&region, &values)
    };
    let all = [&[][..], &[1], &[0], &[1, 0]].map(is_cut);
    all[0]
}

fn of(dtype: DType, shape: &[usize]) -> Meta {
    Meta::new(dtype, shape)
}

#[test]
fn every_reduction_of_every_dtype() {
    let dtypes = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];
    for dtype in dtypes.into_iter().chain([DType::Int32, DType::Int64, DType::UInt8]) {
        let functions = ReduceFn::ALL.into_iter();
        for f in functions.filter(|&f| f != ReduceFn::Mean || dtype.is_float()) {
            for axes in
                [&[][..], &[0], &[1]].iter().filter(|axes| !axes.is_empty() || !f.is_place())
            {
                assert!(check(f, axes, [of(dtype, &[520, 1300]), of(dtype, &[520, 1300])]));
            }
        }
    }
}

#[test]
fn sizes_around_those_of_pieces() {
    let shapes: [&[usize]; 14] = [
        &[1, 1],
        &[5, 3],
        &[1, 8192],
        &[1, 8193],
        &[9, 20000],
        &[65537, 1],
        &[70000, 2],
        &[4097, 33],
        &[300, 1024],
        &[700, 1025],
        &[130, 5000],
        &[40, 40000],
        &[2, 2, 70000],
        &[513, 7, 31],
    ];
    for shape in shapes {
        let rank = shape.len() as i64;
        for axes in [vec![], vec![0], vec![rank - 1], (0..rank - 1).collect(), (1..rank).collect()]
        {
            for f in [ReduceFn::Sum, ReduceFn::Max] {
                check(f, &axes, [of(DType::Float32, shape), of(DType::Float32, shape)]);
            }
        }
    }
}

#[test]
fn broadcast_operands() {
    let mut cut = Vec::new();
    for width in [10, 64, 100, 1000] {
        let whole = of(DType::Float32, &[6000, width]);
        for other in [&[width][..], &[6000, 1], &[1]] {
            for axes in [&[][..], &[0], &[1]] {
                cut.push(check(ReduceFn::Mean, axes, [whole.clone(), of(DType::Float32, other)]));
            }
        }
    }
    assert!(cut.iter().filter(|&&is_cut| is_cut).count() > 25, "{cut:?}");
}

#[test]
fn images_that_lie_channels_last() {
    let images = [8, 48, 40, 40];
    let strides = Shape::from(images).dense_like(&[4, 1, 3, 2]);
    let x = Meta { strides, ..of(DType::Float32, &images) };
    for axes in [&[][..], &[0, 2, 3], &[1]] {
        assert!(check(ReduceFn::Sum, axes, [x.clone(), x.clone()]));
    }
    // Elements of one output do not lie side by side here.
    assert!(!check(ReduceFn::Sum, &[0, 2], [x.clone(), x.clone()]));
    let bias = of(DType::Float32, &[48, 1, 1]);
    assert!(check(ReduceFn::Sum, &[0, 2, 3], [x, bias]));
}

#[test]
fn no_elements() {
    for shape in [[0, 4], [4, 0]] {
        for axes in [&[][..], &[0], &[1]] {
            let meta = of(DType::Float32, &shape);
            assert!(!check(ReduceFn::Sum, axes, [meta.clone(), meta]));
        }
    }
}

#[test]
fn nothing_but_the_last_result_is_reduced() {
    let square = of(DType::Float32, &[64, 64]);
    let mut wrong = region(ReduceFn::Sum, &[], &[]);
    wrong.consumer.as_mut().unwrap().operands = [2].as_slice().into();
    let message = wrong.infer(&[&square, &square]).unwrap_err().to_string();
    assert!(message.contains("the last of the links"), "{message}");
    let twice = region(ReduceFn::Sum, &[], &[1, 1]).infer(&[&square, &square]);
    assert!(twice.unwrap_err().to_string().contains("each once"));
    let mut bare = region(ReduceFn::Sum, &[], &[]);
    (bare.links, bare.outputs) = (Vec::new(), vec![0]);
    bare.consumer.as_mut().unwrap().operands = [1].as_slice().into();
    assert!(bare.infer(&[&square, &square]).is_err());
}

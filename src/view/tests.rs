use super::*;
use crate::dtype::DType;
use proptest::prelude::*;

fn view(shape: &[usize]) -> View {
    View::new(crate::device::cpu::device(), Meta::new(DType::Float32, shape))
}

/// The places of all elements in row-major order of the view.
fn places(v: &View) -> Vec<isize> {
    let mut found = vec![v.offset as isize];
    for (&extent, &stride) in v.meta.shape.iter().zip(&v.meta.strides) {
        let steps = || (0..extent as isize).map(|i| i * stride);
        found = found.iter().flat_map(|&base| steps().map(move |s| base + s)).collect();
    }
    found
}

proptest! {
    #[test]
    fn a_reshaped_view_names_the_same_elements(
        a in 1usize..4, b in 1usize..4, c in 1usize..4, which in 0usize..6, swap: bool,
    ) {
        let base = view(&[a, b, c]);
        let base = if swap { base.permute(&[1, 0, 2]).unwrap() } else { base };
        let e = base.meta.shape.clone();
        let shapes: [Shape; 6] = [
            [a * b * c].into(), [e[0], b * c * a / e[0]].into(), [e[0] * e[1], c].into(),
            [e[0], 1, e[1], c].into(), [1, e[0], e[1], c, 1].into(), [c, a, b].into(),
        ];
        if let Some(other) = base.reshape(&shapes[which]).unwrap() {
            prop_assert_eq!(places(&other), places(&base));
        }
    }
}

#[test]
fn slices_stay_inside() {
    let v = view(&[5]);
    let back = v.slice(&[SliceRange { start: 4, count: 3, step: -2 }]).unwrap();
    assert_eq!(places(&back), [4, 2, 0]);
    assert_eq!(back.byte_range(), 0..20);
    assert!(v.slice(&[SliceRange { start: 4, count: 2, step: 1 }]).is_err());
    assert!(v.slice(&[SliceRange { start: 0, count: 2, step: 0 }]).is_err());
    assert!(v.slice(&[SliceRange { start: 0, count: usize::MAX, step: -1 }]).is_err());
    assert!(v.slice(&[SliceRange { start: usize::MAX, count: 1, step: 1 }]).is_err());
    let one = v.slice(&[SliceRange { start: 4, count: 1, step: isize::MAX }]).unwrap();
    assert_eq!(one.byte_range(), 16..20);
}

#[test]
fn expanding_repeats_without_memory() {
    let v = view(&[3, 1]).expand(&[2, 3, 4].into()).unwrap();
    assert_eq!(v.meta.strides.as_slice(), &[0, 1, 0]);
    assert!(view(&[3]).expand(&[4].into()).is_err());
    assert!(view(&[1]).expand(&[1 << 31, 1 << 31].into()).is_err());
}

#[test]
fn metas_that_overflow_are_told() {
    let fits = |shape: &[usize], strides: &[isize]| {
        Meta { dtype: DType::Float64, shape: shape.into(), strides: strides.into() }.fits_memory()
    };
    assert!(fits(&[3, 1], &[-8, isize::MAX]) && fits(&[0], &[1]));
    assert!(!fits(&[2], &[isize::MIN]) && !fits(&[3], &[isize::MAX / 2]));
    assert!(!fits(&[usize::MAX], &[0]) && !fits(&[2, 2], &[1 << 59, 1 << 59]));
}

#[test]
fn tensors_whose_elements_share_places_are_told() {
    let shared = |shape: &[usize], strides: &[isize]| {
        repeats(&Meta { strides: strides.into(), ..Meta::new(DType::Float32, shape) })
    };
    assert!(shared(&[2, 3], &[0, 1]) && shared(&[3, 3], &[1, 1]) && shared(&[2, 4], &[-3, 1]));
    assert!(!shared(&[2, 3], &[-6, 2]) && !shared(&[3, 1], &[1, 0]) && !shared(&[0, 2], &[0, 0]));
}

#[test]
fn permuting_needs_every_axis_once() {
    assert!(view(&[2, 3]).permute(&[0, 0]).is_err());
    assert_eq!(view(&[2, 3]).permute(&[-1, 0]).unwrap().meta.shape, Shape::from([3, 2]));
}

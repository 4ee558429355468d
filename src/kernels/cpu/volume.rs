//! Images as three spatial axes: those that an operation lacks come first, with extent 1.

use crate::ops::Meta;
use crate::ops::geometry::{MOST_AXES, spatial};

/// A number for each of the three axes, `missing` for those that are not there.
pub fn volume(values: &[usize], missing: usize) -> [usize; MOST_AXES] {
    let mut all = [missing; MOST_AXES];
    all[MOST_AXES - values.len()..].copy_from_slice(values);
    all
}

/// The spatial extents of a tensor (N, C, spatial...).
pub fn extents(meta: &Meta) -> [usize; MOST_AXES] {
    volume(spatial(&meta.shape), 1)
}

/// The strides of a tensor (N, C, spatial...).
pub fn strides(meta: &Meta) -> [isize; 2 + MOST_AXES] {
    let mut all = [0; 2 + MOST_AXES];
    all[..2].copy_from_slice(&meta.strides[..2]);
    all[4 + MOST_AXES - meta.shape.rank()..].copy_from_slice(&meta.strides[2..]);
    all
}

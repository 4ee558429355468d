//! Shapes, strides, and the broadcasting rules of NumPy.

use smallvec::SmallVec;

use crate::error::{Error, OpName, Result};

/// Up to four dimensions are stored inline; more go to the heap.
const INLINE: usize = 4;

/// This many elements of the widest type are more bytes than can be addressed.
const MAX_NUMEL: usize = 1 << 60;

/// Extents of each dimension, outermost first.
#[derive(PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Shape(SmallVec<[usize; INLINE]>);

/// Steps in elements (not bytes) between neighbours along each dimension; may be 0 or negative.
pub type Strides = SmallVec<[isize; INLINE]>;

/// The dimensions in the order of memory, outermost first; those with equal strides keep the
/// row-major order.
pub fn memory_order(strides: impl IntoIterator<Item = isize>) -> SmallVec<[usize; INLINE]> {
    let steps: SmallVec<[usize; INLINE]> = strides.into_iter().map(isize::unsigned_abs).collect();
    let mut order: SmallVec<[usize; INLINE]> = (0..steps.len()).collect();
    order.sort_unstable_by_key(|&d| (std::cmp::Reverse(steps[d]), d));
    order
}

impl Shape {
    /// The number of elements: 1 for a scalar, 0 if any extent is 0.
    pub fn numel(&self) -> usize {
        self.0.iter().product()
    }

    /// The number of elements. Every shape that a user can choose is checked here once, so that
    /// later computations of sizes and strides cannot overflow.
    ///
    /// # Errors
    /// [`Error::Shape`] if it is 2^60 or more. Extents of 0 count as 1, as in NumPy, because the
    /// strides of an empty tensor are products of its other extents.
    pub fn checked_numel(&self, op: impl Into<OpName>) -> Result<usize> {
        let product = self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
        let small = product.is_some_and(|n| n < MAX_NUMEL);
        crate::ensure!(small, Error::shape(op, [self], "fewer than 2^60 elements"));
        Ok(self.numel())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Row-major strides.
    pub fn contiguous(&self) -> Strides {
        let mut strides: Strides = smallvec::smallvec![0; self.rank()];
        let mut step = 1isize;
        for (stride, &extent) in strides.iter_mut().zip(&self.0).rev() {
            *stride = step;
            step *= extent.max(1) as isize;
        }
        strides
    }

    /// Dense strides that nest the dimensions in the order of `like`'s strides, so that an
    /// elementwise operation keeps the memory order (say, channels-last) of its input.
    pub fn dense_like(&self, like: &[isize]) -> Strides {
        let order = memory_order(like.iter().copied());
        let mut strides: Strides = smallvec::smallvec![0; self.rank()];
        let mut step = 1isize;
        for &d in order.iter().rev() {
            strides[d] = step;
            step *= self.0[d].max(1) as isize;
        }
        strides
    }

    /// The same dimensions with `axis` set to `extent`.
    pub fn with(&self, axis: usize, extent: usize) -> Shape {
        let mut shape = self.clone();
        shape.0[axis] = extent;
        shape
    }

    /// The shape of two operands broadcast together under NumPy's rules.
    ///
    /// # Errors
    /// [`Error::Shape`] if two extents differ and neither is 1; the errors of
    /// [`Shape::checked_numel`].
    pub fn broadcast(op: impl Into<OpName>, a: &Shape, b: &Shape) -> Result<Shape> {
        let op = op.into();
        let rank = a.rank().max(b.rank());
        let extent = |s: &Shape, d: usize| {
            if d + s.rank() >= rank { s.0[d + s.rank() - rank] } else { 1 }
        };
        let mut out = SmallVec::with_capacity(rank);
        for d in 0..rank {
            match (extent(a, d), extent(b, d)) {
                (x, y) if x == y => out.push(x),
                (1, y) => out.push(y),
                (x, 1) => out.push(x),
                _ => return Err(Error::shape(op, [a, b], "shapes that broadcast together")),
            }
        }
        let shape = Shape(out);
        shape.checked_numel(op)?;
        Ok(shape)
    }

    /// `axis` as an index from the front; negative axes count from the back.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such axis.
    pub fn axis(&self, op: impl Into<OpName>, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        let index = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&index) {
            Ok(index as usize)
        } else {
            Err(Error::value(op, format!("axis {axis}"), format!("an axis of shape {self}")))
        }
    }

    /// Distinct axes as indices from the front, ascending; an empty list means all axes.
    ///
    /// # Errors
    /// [`Error::Value`] for an axis that does not exist or that is named twice.
    pub fn axes(&self, op: impl Into<OpName>, axes: &[i64]) -> Result<SmallVec<[usize; INLINE]>> {
        let op = op.into();
        if axes.is_empty() {
            return Ok((0..self.rank()).collect());
        }
        let mut found = SmallVec::new();
        for &a in axes {
            found.push(self.axis(op.clone(), a)?);
        }
        found.sort_unstable();
        if found.windows(2).any(|w| w[0] == w[1]) {
            return Err(Error::value(op, format!("axes {axes:?}"), "each axis once"));
        }
        Ok(found)
    }
}

impl Clone for Shape {
    fn clone(&self) -> Self {
        // One memory copy instead of the derived element loop: shapes are cloned for every
        // operation.
        Shape(SmallVec::from_slice(&self.0))
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl std::ops::DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(extents: I) -> Self {
        Shape(extents.into_iter().collect())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(extents: [usize; N]) -> Self {
        extents.into_iter().collect()
    }
}

impl From<&[usize]> for Shape {
    fn from(extents: &[usize]) -> Self {
        extents.iter().copied().collect()
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let extents: Vec<_> = self.0.iter().map(usize::to_string).collect();
        match extents.as_slice() {
            [one] => write!(f, "({one},)"),
            many => write!(f, "({})", many.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let shape = Shape::broadcast("add", &[3, 1].into(), &[2, 1, 6].into()).unwrap();
        assert_eq!(shape, Shape::from([2, 3, 6]));
        assert!(Shape::broadcast("add", &[2].into(), &[3].into()).is_err());
        assert!(Shape::broadcast("add", &[1 << 40, 1].into(), &[1 << 40].into()).is_err());
        assert_eq!(Shape::broadcast("add", &[0].into(), &[1].into()).unwrap(), Shape::from([0]));
    }

    #[test]
    fn dense_like_keeps_channels_last() {
        let shape = Shape::from([2, 3, 4, 5]);
        let nhwc = [60, 1, 15, 3];
        assert_eq!(shape.dense_like(&nhwc).as_slice(), &nhwc);
        assert_eq!(shape.dense_like(&shape.contiguous()), shape.contiguous());
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let numel = |extents: &[usize]| Shape::from(extents).checked_numel("zeros");
        assert_eq!(numel(&[1 << 30, (1 << 30) - 1]).unwrap(), (1 << 60) - (1 << 30));
        assert_eq!(numel(&[0, 1 << 59]).unwrap(), 0);
        for extents in
            [&[1 << 60][..], &[1 << 32, 1 << 32], &[usize::MAX, usize::MAX], &[0, 1 << 60]]
        {
            assert!(matches!(numel(extents), Err(Error::Shape { .. })), "{extents:?}");
        }
    }

    #[test]
    fn axes_are_normalised_and_checked() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape.axes("sum", &[-1, 0]).unwrap().as_slice(), &[0, 2]);
        assert!(shape.axes("sum", &[0, -3]).is_err());
        assert!(shape.axis("sum", 3).is_err());
    }
}

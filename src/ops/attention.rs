//! Scaled dot-product attention and its gradient, in blocks that store no scores.

use serde::{Deserialize, Serialize};

use super::random::{check_state, is_zero};
use super::{Cost, Effects, Family, Kind, Meta, Metas, Real, check_dtypes, check_meta, product};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// (q, k, v[, mask][, lengths][, start][, state]) -> (y, lse[, drawn]):
/// `y = softmax(scale * q k' + mask) v` (Vaswani et al. 2017; ONNX `Attention`), computed in blocks
/// with running maxima and sums (Dao et al. 2022). Sums are float32 for float16 and bfloat16.
///
/// q is (..., H, L, E), k (..., G, S, E) and v (..., G, S, F) with the same leading axes, where G
/// divides H: each head of keys serves H / G successive heads of queries; matrices are one head. y
/// is (..., H, L, F), in the memory order of q. A query that may attend to no key gets zeros.
///
/// lse is (..., H, L), the logarithm of the sum of the exponentials of each row, infinite where
/// there is no key; it is float32, or float64 for float64. drawn, there if weights are dropped, is
/// the generator's state that the pattern was drawn from, for the gradient.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Attention {
    /// What it attends to, and how.
    #[serde(flatten)]
    pub rule: Rule,
    /// The first 128-bit block of random numbers used, counted from the generator's position.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
}

/// (dy, q, k, v, y, lse[, mask][, lengths][, start][, drawn]) -> (dq, dk, dv[, dscores]): the
/// gradient of [`Attention`], each in the memory order of its input. The weights are computed, and
/// the dropped ones drawn, a second time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AttentionGrad {
    /// That of the forward operation.
    #[serde(flatten)]
    pub rule: Rule,
    /// Whether the gradient of the mask is wanted: dscores, row-major, of the shape of all scores.
    pub scores: bool,
}

/// What queries attend to, and how.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// What scores are multiplied by.
    pub scale: Real,
    /// Whether query i attends to keys 0 to start + i only.
    pub causal: bool,
    /// The share of weights that are dropped; the others are divided by the rest.
    pub dropout: Real,
    /// Whether there is a mask that broadcasts to (..., H, L, S): bools, true where a query may
    /// attend to a key, or numbers that are added to the scores, -inf for never; in the type of q
    /// or that of lse.
    pub mask: bool,
    /// Whether there are numbers of keys that broadcast to the leading axes: int64, 0 to S.
    pub lengths: bool,
    /// Whether there are positions of the first query that broadcast to the leading axes, for
    /// causal attention: int64, not negative; 0 where there are none.
    pub start: bool,
}

catalog!(Attention => "attention", AttentionGrad => "attention_grad");

/// The optional inputs of an operation, of those given.
pub struct Extra<T> {
    /// What scores are masked by.
    pub mask: Option<T>,
    /// The numbers of keys.
    pub lengths: Option<T>,
    /// The positions of the first queries.
    pub start: Option<T>,
    /// A generator's state.
    pub state: Option<T>,
}

/// The sizes of an attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The extents of the leading axes.
    pub batch: Shape,
    /// The heads of queries, and those of keys.
    pub heads: [usize; 2],
    /// The numbers of queries and keys.
    pub lengths: [usize; 2],
    /// The widths of keys and values.
    pub widths: [usize; 2],
}

impl Rule {
    /// Whether weights are dropped.
    pub fn drops(&self) -> bool {
        self.dropout.0 > 0.0
    }

    /// Takes the optional inputs in their order.
    pub fn extra<T>(&self, mut rest: impl Iterator<Item = T>) -> Extra<T> {
        let mut next = |is_given: bool| if is_given { rest.next() } else { None };
        Extra {
            mask: next(self.mask),
            lengths: next(self.lengths),
            start: next(self.start),
            state: next(self.drops()),
        }
    }

    fn extras(&self) -> usize {
        [self.mask, self.lengths, self.start, self.drops()].map(usize::from).iter().sum()
    }

    /// Of the inputs that the data may make invalid, the numbers, if the first extra is `first`.
    fn checked(&self, first: usize) -> &'static [usize] {
        const ONE: [[usize; 1]; 8] = [[0], [1], [2], [3], [4], [5], [6], [7]];
        const TWO: [[usize; 2]; 8] =
            [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8]];
        let at = first + usize::from(self.mask);
        match (self.lengths, self.start) {
            (true, true) => &TWO[at],
            (true, false) | (false, true) => &ONE[at],
            (false, false) => &[],
        }
    }

    /// Checks attributes and inputs; `rest` are the optional ones.
    fn check(&self, op: &'static str, qkv: [&Meta; 3], rest: &[&Meta]) -> Result<Sizes> {
        let (Real(scale), Real(dropout)) = (self.scale, self.dropout);
        let finite = || Error::value(op, format!("scale {scale}"), "a finite number");
        crate::ensure!(scale.is_finite(), finite());
        let share = || Error::value(op, format!("dropout {dropout}"), "a share from 0 to below 1");
        crate::ensure!((0.0..1.0).contains(&dropout), share());
        let sizes = Sizes::new(op, qkv)?;
        sizes.scores().checked_numel(op)?;
        let extra = self.extra(rest.iter().copied());
        if let Some(mask) = extra.mask {
            check_mask(op, mask, qkv[0].dtype, &sizes)?;
        }
        for counts in [extra.lengths, extra.start].into_iter().flatten() {
            let want = "int64 numbers of keys and positions";
            let bad = || Error::dtype(op, [counts.dtype], want);
            crate::ensure!(counts.dtype == DType::Int64, bad());
            sizes.check_spread(op, counts, &sizes.batch)?;
        }
        extra.state.map_or(Ok(()), |state| check_state(op, state))?;
        Ok(sizes)
    }
}

fn check_mask(op: &'static str, mask: &Meta, dtype: DType, sizes: &Sizes) -> Result<()> {
    let fits = [DType::Bool, dtype, dtype.wide()].contains(&mask.dtype);
    let want = || format!("a mask of bool, {dtype} or {}", dtype.wide());
    crate::ensure!(fits, Error::dtype(op, [mask.dtype], want()));
    sizes.check_spread(op, mask, &sizes.scores())
}

impl Sizes {
    /// Those of q, k and v.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::DType`] where they do not fit together.
    pub fn new(op: &'static str, qkv: [&Meta; 3]) -> Result<Self> {
        check_dtypes(op, &qkv, DType::is_float, "one float dtype")?;
        let [q, k, v] = qkv.map(|meta| &meta.shape);
        let bad = |want: &str| Error::shape(op, [q, k, v], want);
        let rank = q.rank();
        let ranks = rank >= 2 && k.rank() == rank && v.rank() == rank;
        crate::ensure!(ranks, bad("(..., heads, length, width) each"));
        let axes = rank.saturating_sub(3);
        let heads = |shape: &Shape| if rank > 2 { shape[axes] } else { 1 };
        let fits = k[..rank - 1] == v[..rank - 1] && q[..axes] == k[..axes];
        crate::ensure!(
            fits && q[rank - 1] == k[rank - 1],
            bad("as many values as keys, and keys as wide as queries")
        );
        let [all, shared] = [heads(q), heads(k)];
        let divides = all == shared || shared > 0 && all.is_multiple_of(shared);
        crate::ensure!(divides, bad("a multiple of the heads of keys as heads of queries"));
        Ok(Sizes {
            batch: q[..axes].into(),
            heads: [all, shared],
            lengths: [q[rank - 2], k[rank - 2]],
            widths: [q[rank - 1], v[rank - 1]],
        })
    }

    /// The shape of all scores, also for matrices.
    pub fn scores(&self) -> Shape {
        let [queries, keys] = self.lengths;
        self.batch.iter().copied().chain([self.heads[0], queries, keys]).collect()
    }

    /// The number of rows of all scores.
    pub fn rows(&self) -> usize {
        self.batch.numel() * self.heads[0] * self.lengths[0]
    }

    fn check_spread(&self, op: &'static str, meta: &Meta, to: &Shape) -> Result<()> {
        let fits = Shape::broadcast(op, &meta.shape, to).is_ok_and(|shape| shape == *to);
        let want = || format!("a shape that broadcasts to {to}");
        crate::ensure!(fits, Error::shape(op, [&meta.shape], want()));
        Ok(())
    }

    /// Exponentials, and two operations of each of `products` for each element of a key.
    fn cost(&self, io: &[&Meta], products: u64) -> Cost {
        let each = 24 + products * (self.widths[0] + self.widths[1]) as u64;
        Cost::of(io, product(&self.scores()).saturating_mul(each))
    }
}

/// A tensor like `q` but for its last extent, dense in the same order of memory.
fn like(q: &Meta, width: usize) -> Meta {
    let shape = q.shape.with(q.shape.rank() - 1, width);
    let strides = shape.dense_like(&q.strides);
    Meta { dtype: q.dtype, shape, strides }
}

/// The first inputs as an array, and the others, as many as the rule says.
fn split<'a, 'b, const N: usize>(
    op: &'static str,
    inputs: &'b [&'a Meta],
    rule: &Rule,
) -> Result<([&'a Meta; N], &'b [&'a Meta])> {
    let want = N + rule.extras();
    crate::ensure!(inputs.len() == want, Error::arity(op, inputs.len(), want));
    let (first, rest) = inputs.split_at(N);
    Ok((<[&Meta; N]>::try_from(first).expect("as many"), rest))
}

impl Family for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let (qkv, rest) = split::<3>(self.name(), inputs, &self.rule)?;
        let sizes = self.rule.check(self.name(), qkv, rest)?;
        let q = qkv[0];
        let rows: Shape = q.shape[..q.shape.rank() - 1].into();
        let lse = Meta::new(q.dtype.wide(), rows);
        let mut made: Metas = smallvec::smallvec![like(q, sizes.widths[1]), lse];
        if self.rule.drops() {
            made.push(Meta::new(DType::Int64, [2]));
        }
        Ok(made)
    }

    fn effects(&self) -> Effects {
        match self.rule.drops() {
            true => Effects::draws_from(2 + self.rule.extras()),
            false => Effects::PURE,
        }
    }

    fn draws(&self, inputs: &[&Meta]) -> u64 {
        match Sizes::new(self.name(), [inputs[0], inputs[1], inputs[2]]) {
            Ok(sizes) if self.rule.drops() => blocks_drawn(&sizes),
            _ => 0,
        }
    }

    fn drawing_from(&self, offset: u64) -> Option<Kind> {
        self.rule.drops().then(|| Attention { offset, ..self.clone() }.into())
    }

    fn checked(&self) -> &'static [usize] {
        self.rule.checked(3)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let sizes = Sizes::new(self.name(), [io[0], io[1], io[2]]);
        sizes.map_or(Cost::default(), |sizes| sizes.cost(io, 2))
    }
}

/// The keys whose weights are drawn together: the rows of patterns are padded to a multiple.
pub const DRAWN_TOGETHER: usize = 64;

/// The blocks of four numbers that the pattern of all weights takes.
fn blocks_drawn(sizes: &Sizes) -> u64 {
    product(&[sizes.rows(), sizes.lengths[1].next_multiple_of(DRAWN_TOGETHER)]) / 4
}

impl Family for AttentionGrad {
    fn name(&self) -> &'static str {
        "attention_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let (six, rest) = split::<6>(self.name(), inputs, &self.rule)?;
        let [dy, q, k, v, y, lse] = six;
        let sizes = self.rule.check(self.name(), [q, k, v], rest)?;
        let result = q.shape.with(q.shape.rank() - 1, sizes.widths[1]);
        let rows: Shape = q.shape[..q.shape.rank() - 1].into();
        check_meta(self.name(), "dy", dy, q.dtype, &result)?;
        check_meta(self.name(), "y", y, q.dtype, &result)?;
        check_meta(self.name(), "lse", lse, q.dtype.wide(), &rows)?;
        let mut made: Metas = [q, k, v].map(|meta| meta.like(meta.dtype)).into_iter().collect();
        if self.scores {
            made.push(Meta::new(q.dtype.wide(), sizes.scores()));
        }
        Ok(made)
    }

    fn checked(&self) -> &'static [usize] {
        self.rule.checked(6)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let sizes = Sizes::new(self.name(), [io[1], io[2], io[3]]);
        sizes.map_or(Cost::default(), |sizes| sizes.cost(io, 5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule([mask, lengths, start, drops]: [bool; 4]) -> Rule {
        let dropout = Real(if drops { 0.5 } else { 0.0 });
        Rule { scale: Real(1.0), causal: start, dropout, mask, lengths, start }
    }

    #[test]
    fn numbers_of_keys_and_positions_are_checked_wherever_they_stand() {
        for bits in 0..16 {
            let rule = rule([1, 2, 4, 8].map(|bit| bits & bit != 0));
            let forward = Attention { rule: rule.clone(), offset: 0 };
            let gradient = AttentionGrad { rule: rule.clone(), scores: false };
            for (family, first) in [(&forward as &dyn Family, 3), (&gradient, 6)] {
                let Extra { lengths, start, .. } = rule.extra(first..first + 4);
                let want: Vec<usize> = lengths.into_iter().chain(start).collect();
                assert_eq!(family.checked(), want, "{rule:?}");
            }
        }
    }

    #[test]
    fn scores_have_a_number() {
        let meta = |length| Meta::new(DType::Float32, [1, 1, length, 1]);
        let infer = |length| {
            let (qkv, state) = (meta(length), Meta::new(DType::Int64, [2]));
            let op = Attention { rule: rule([false, false, false, true]), offset: 0 };
            op.infer(&[&qkv, &qkv, &qkv, &state])
        };
        assert!(infer(1 << 20).is_ok());
        assert!(matches!(infer(1 << 30), Err(Error::Shape { .. })));
    }
}

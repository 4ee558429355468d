//! How an attention is cut into parts, so that the matrices of each lie one step apart, and there
//! are not too many scores.

use std::ops::Range;

use crate::dtype::DType;
use crate::kernels::cuda::matmul::Matrix;
use crate::kernels::cuda::program::Place;
use crate::kernels::cuda::walk::Walk;
use crate::ops::Meta;
use crate::ops::attention::Sizes;
use crate::shape::Shape;

/// The most scores of a part; a matrix unit's share of them stays in a GPU's cache.
const MOST: usize = 8 << 20;

/// The axes that a tensor has behind those of the batch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Axes {
    /// The heads of queries, rows, elements.
    Queries,
    /// The heads of keys, keys, elements.
    Keys,
    /// The heads of queries, rows.
    Rows,
    /// None.
    Batch,
}

/// A tensor of an attention.
pub struct Tensor {
    pub meta: Meta,
    pub place: Place,
    pub axes: Axes,
}

impl Tensor {
    fn behind(&self) -> usize {
        match self.axes {
            Axes::Queries | Axes::Keys => 3,
            Axes::Rows => 2,
            Axes::Batch => 0,
        }
    }

    /// The step along an axis counted from the end; 0 along one that is not there, or is repeated.
    fn step(&self, from_end: usize) -> isize {
        let own = self.meta.shape.rank().checked_sub(from_end);
        own.filter(|&d| self.meta.shape[d] != 1).map_or(0, |d| self.meta.strides[d])
    }

    /// The step along an axis that is the first, second or third behind the batch.
    fn behind_batch(&self, axis: usize) -> isize {
        self.behind().checked_sub(axis).filter(|&from_end| from_end > 0).map_or(0, |e| self.step(e))
    }

    /// Its leading axes repeated to those of the batch, then the heads of keys, then those of the
    /// queries that share one of these.
    fn heads(&self, sizes: &Sizes) -> Meta {
        let (rank, [all, shared]) = (sizes.batch.rank(), sizes.heads);
        let (served, head) = (all.checked_div(shared).unwrap_or(1), self.behind_batch(0));
        let of_heads = match self.axes {
            Axes::Keys => [head, 0],
            _ => [head * served as isize, head],
        };
        let of_batch = (0..rank).map(|d| self.step(rank - d + self.behind()));
        let strides = of_batch.chain(of_heads).collect();
        Meta { dtype: self.meta.dtype, shape: heads(sizes), strides }
    }
}

/// The batch, the heads of keys, and how many heads of queries share each.
fn heads(sizes: &Sizes) -> Shape {
    let [all, shared] = sizes.heads;
    sizes.batch.iter().copied().chain([shared, all.checked_div(shared).unwrap_or(1)]).collect()
}

/// Some heads whose matrices lie one step apart, or some rows of one.
pub struct Part {
    /// Where each tensor's first head is, in elements, and the number of that head.
    offsets: Vec<isize>,
    /// The number of heads.
    pub count: usize,
    /// The rows of each.
    pub rows: Range<usize>,
    /// The keys that any of them sees are among so many.
    pub keys: usize,
    /// Whether it is the first one that adds to what is summed over parts.
    pub is_first: bool,
}

impl Part {
    /// The number of scores.
    pub fn numel(&self) -> usize {
        self.count * self.rows.len() * self.keys
    }

    /// Its scores, or what takes their place.
    pub fn scores(&self, dtype: DType, place: Place) -> Matrix {
        Matrix { meta: Meta::new(dtype, [self.count, self.rows.len(), self.keys]), place }
    }
}

/// What parts are cut from.
pub struct Parts {
    pub tensors: Vec<Tensor>,
    sizes: Sizes,
    /// The heads of a part, and each tensor's steps; the number of the head is the last one.
    inner: (usize, Vec<isize>),
    outer: Vec<(usize, Vec<isize>)>,
    /// The tensor to which heads may add that share keys.
    summed: Option<usize>,
    /// Whether rows see no key behind their own place.
    skips: bool,
}

impl Parts {
    /// The heads of a part are those along the longest axis, along which `summed` has a step.
    pub fn new(tensors: Vec<Tensor>, sizes: Sizes, summed: Option<usize>, skips: bool) -> Parts {
        let mut metas: Vec<Meta> = tensors.iter().map(|tensor| tensor.heads(&sizes)).collect();
        metas.push(Meta::new(DType::Int64, heads(&sizes)));
        let axes: Vec<usize> = (0..sizes.batch.rank() + 2).collect();
        let walk = Walk::along(&axes, &metas.iter().collect::<Vec<_>>());
        let mut outer: Vec<(usize, Vec<isize>)> =
            walk.dims().map(|(extent, steps)| (extent, steps.to_vec())).collect();
        let may_be_inner = |d: &usize| summed.is_none_or(|t| outer[*d].1[t] != 0);
        let longest = (0..outer.len()).filter(may_be_inner).max_by_key(|&d| outer[d].0);
        let inner = longest.map_or_else(|| (1, vec![0; metas.len()]), |d| outer.remove(d));
        Parts { tensors, sizes, inner, outer, summed, skips }
    }

    /// All parts, in an order in which the first one that adds to a sum comes first.
    pub fn all(&self) -> Vec<Part> {
        let [rows, keys] = self.sizes.lengths;
        let at_once = pieces(self.inner.0, MOST / (rows * keys).max(1));
        // Without rows there are sums of nothing: one part has none.
        let mut blocks = pieces(rows.max(1), MOST / keys.max(1));
        blocks.iter_mut().for_each(|block| block.end = block.end.min(rows));
        // The last rows see the most keys: what they leave is added to by the others.
        blocks.reverse();
        let mut parts = Vec::new();
        for outer in self.outer_indices() {
            for heads in &at_once {
                for (i, rows) in blocks.iter().enumerate() {
                    parts.push(self.part(&outer, heads, rows, i == 0));
                }
            }
        }
        parts
    }

    fn part(
        &self,
        outer: &[usize],
        heads: &Range<usize>,
        rows: &Range<usize>,
        is_last: bool,
    ) -> Part {
        let offset = |t: usize| {
            let along = self.outer.iter().zip(outer).map(|((_, steps), &i)| i as isize * steps[t]);
            along.sum::<isize>() + heads.start as isize * self.inner.1[t]
        };
        let keys = self.sizes.lengths[1];
        let adds =
            |t: usize| self.outer.iter().zip(outer).any(|((_, steps), &i)| steps[t] == 0 && i > 0);
        Part {
            offsets: (0..=self.tensors.len()).map(offset).collect(),
            count: heads.len(),
            rows: rows.clone(),
            keys: if self.skips && !is_last { keys.min(rows.end) } else { keys },
            is_first: is_last && !self.summed.is_some_and(adds),
        }
    }

    /// All indices along the outer axes.
    fn outer_indices(&self) -> Vec<Vec<usize>> {
        let longer = |all: Vec<Vec<usize>>, &(extent, _): &(usize, Vec<isize>)| {
            let with = |at: &Vec<usize>| {
                let at = at.clone();
                (0..extent).map(move |i| [&at[..], &[i]].concat())
            };
            all.iter().flat_map(with).collect()
        };
        self.outer.iter().fold(vec![Vec::new()], longer)
    }

    /// The steps of a tensor from head to head, from row to row and along a row.
    pub fn steps(&self, t: usize) -> [isize; 3] {
        let tensor = &self.tensors[t];
        [self.inner.1[t], tensor.behind_batch(1), tensor.behind_batch(2)]
    }

    /// Where the first of a part's heads is.
    pub fn place(&self, t: usize, part: &Part) -> Place {
        let Tensor { meta, place, .. } = &self.tensors[t];
        place.moved(part.offsets[t] * meta.dtype.size() as isize)
    }

    /// A part's matrices of queries, or of keys.
    pub fn matrix(&self, t: usize, part: &Part) -> Matrix {
        let (Tensor { meta, axes, .. }, [head, row, element]) = (&self.tensors[t], self.steps(t));
        let rows = if *axes == Axes::Keys { 0..part.keys } else { part.rows.clone() };
        let width = meta.shape[meta.shape.rank() - 1];
        let shape = [part.count, rows.len(), width].into_iter().collect();
        let strides = [head, row, element].into_iter().collect();
        let start = rows.start as isize * row * meta.dtype.size() as isize;
        let meta = Meta { dtype: meta.dtype, shape, strides };
        Matrix { meta, place: self.place(t, part).moved(start) }
    }

    /// The fields of a part as kernels take it (`c/attention.cu`).
    pub fn words(&self, part: &Part) -> [i64; 7] {
        let (number, step) = (part.offsets[self.tensors.len()], self.inner.1[self.tensors.len()]);
        let [rows, first] = [part.rows.len(), part.rows.start];
        let sizes = [part.count, rows, first, part.keys, self.sizes.lengths[0]].map(|n| n as i64);
        let [heads, rows, first, keys, queries] = sizes;
        [heads, rows, first, keys, queries, number as i64, step as i64]
    }
}

/// Ranges of equal lengths, but for the last one, of at most so many.
fn pieces(count: usize, most: usize) -> Vec<Range<usize>> {
    let length = count.div_ceil(count.div_ceil(most.max(1)).max(1)).max(1);
    (0..count).step_by(length).map(|start| start..(start + length).min(count)).collect()
}

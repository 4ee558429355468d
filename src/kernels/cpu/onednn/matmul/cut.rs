//! A product as a oneDNN primitive, and how it is cut into pieces.

use super::Adds;
use crate::device::onednn::{self, Addend, Choice, Descriptor, Library};
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::onednn::layout::describe;
use crate::kernels::cpu::onednn::pieces::{self, Collected, Part, Parts, Pieces};
use crate::ops::Meta;

/// The usual number of pieces: each copies its factors into the kernel's order again.
const MOST: usize = 8;
/// The fewest rows of a piece.
const FEWEST_ROWS: usize = 32;
/// The fewest columns of a piece: library kernels compute 64 at a time, and read as many rows again.
const FEWEST_COLUMNS: usize = 128;
/// The columns of a piece are a multiple of this, which is a block of packed factors.
const COLUMNS: usize = 64;
/// Copying an element of a factor into the kernel's order takes as long as reading this many.
const COPY: usize = 3;

/// A product whose operands have the layouts that are passed to oneDNN.
#[derive(Clone)]
pub(super) struct Product {
    pub library: &'static Library,
    /// Of a, b and y, with equal numbers of batch axes, of extent 1 where an operand is broadcast.
    pub metas: [Meta; 3],
    pub row: Option<Meta>,
    pub adds: Adds,
}

/// Numbers for the outermost batch axis, the rows and the columns.
type Block = [usize; 3];

impl Product {
    /// oneDNN's choice for the product; b has its own layout unless another is given.
    pub fn choice(&self, b: Option<Descriptor>) -> Result<Option<Choice<'static>>> {
        let [a, own, y] = &self.metas;
        let b = match b {
            None => describe(self.library, own)?,
            given => given,
        };
        let (a, y) = (describe(self.library, a)?, describe(self.library, y)?);
        let (Some(a), Some(b), Some(y)) = (a, b, y) else { return Ok(None) };
        let addend = match (&self.row, self.adds) {
            (Some(row), _) => describe(self.library, row)?.map(Addend::Row),
            (None, Adds::Result) => Some(Addend::Result),
            (None, _) => Some(Addend::Nothing),
        };
        let Some(addend) = addend else { return Ok(None) };
        onednn::matmul(self.library, [a, b, y], addend)
    }

    /// The product in pieces for the team, or as a whole for the calling thread. `packed` is the
    /// layout of b if it is not its own.
    pub fn pieces(
        &self,
        whole: Choice,
        packed: Option<&Descriptor>,
        width: Option<Width>,
    ) -> Result<Pieces> {
        let block = self.block(packed.is_some());
        let cut = match width {
            Some(width) if block != self.extents() => self.cut(block, packed, width)?,
            _ => None,
        };
        cut.map_or_else(|| whole.build().map(Pieces::whole), Ok)
    }

    fn axes(&self) -> usize {
        self.metas[2].shape.rank() - 2
    }

    /// The outermost axis of the batch along which anything extends.
    fn batch(&self) -> Option<usize> {
        (0..self.axes()).find(|&d| self.metas[2].shape[d] > 1)
    }

    fn extents(&self) -> Block {
        let (y, axes) = (&self.metas[2].shape, self.axes());
        [self.batch().map_or(1, |d| y[d]), y[axes], y[axes + 1]]
    }

    /// The extents of a piece, which depend on the metas alone.
    fn block(&self, is_packed: bool) -> Block {
        let ([batch, m, n], k) = (self.extents(), self.metas[0].shape[self.axes() + 1]);
        let flops = 2 * self.metas[2].numel() as u64 * k as u64;
        let bytes: usize = self.metas.iter().map(Meta::bytes).sum();
        // Pieces copy a factor that is not packed, each again.
        let wanted = pieces::count(flops, if is_packed { bytes } else { 0 }, MOST);
        let matrices = batch.div_ceil(wanted.min(batch));
        let wanted = wanted.div_ceil(batch);
        let is_transposed = self.metas[0].strides[self.axes()] == 1 && m > 1;
        let [left, right] = [is_transposed, !is_packed].map(|copies| 1 + COPY * copies as usize);
        let reads = |parts: [usize; 2]| parts[0] * k * n * right + parts[1] * k * m * left;
        let fits = |&[rows, columns]: &[usize; 2]| {
            let is_even = !is_packed || n.is_multiple_of(columns * COLUMNS);
            rows * columns <= wanted
                && (rows == 1 || m >= rows * FEWEST_ROWS)
                && (columns == 1 || n >= columns * FEWEST_COLUMNS && is_even)
        };
        let powers = || (0..).map(|p| 1 << p).take_while(|&parts: &usize| parts <= wanted);
        let all = powers().flat_map(|rows| powers().map(move |columns| [rows, columns]));
        let best = all.filter(fits).max_by_key(|&parts| (parts[0] * parts[1], !reads(parts)));
        let [rows, columns] = best.unwrap_or([1, 1]);
        let columns = if columns == 1 { n } else { n.div_ceil(columns).next_multiple_of(COLUMNS) };
        [matrices, m.div_ceil(rows), columns]
    }

    /// The product in pieces of these extents; `None` if oneDNN has no fast implementation for one.
    fn cut(
        &self,
        block: Block,
        packed: Option<&Descriptor>,
        width: Width,
    ) -> Result<Option<Pieces>> {
        let (mut pieces, extents) = (Collected::new(width.0), self.extents());
        let dims = [0, 1].map(|d| self.metas[1].shape[d] as i64);
        let count = extents[2].div_ceil(block[2]);
        let columns = packed.map(|packed| packed.part(self.library, &dims, 1, count));
        if let Some(None) = columns {
            return Ok(None);
        }
        let (b, apart) = columns.flatten().unzip();
        for start in starts(extents, block) {
            let size = [0, 1, 2].map(|i| block[i].min(extents[i] - start[i]));
            let at = apart.map(|apart| apart * (start[2] / block[2]));
            if !pieces.add(size, || self.piece(size, b.as_ref()), self.parts(start, at))? {
                return Ok(None);
            }
        }
        Ok(Some(pieces.done()))
    }

    /// oneDNN's choice for a piece of these extents; b has its own layout unless another is given.
    fn piece(&self, size: Block, b: Option<&Descriptor>) -> Result<Option<Choice<'static>>> {
        let (mut piece, columns) = (self.clone(), self.axes() + 1);
        for i in 0..3 {
            let extents = self.dims(i, size).filter(|&(d, _)| self.metas[i].shape[d] > 1);
            extents.for_each(|(d, extent)| piece.metas[i].shape[d] = extent);
        }
        piece.row.iter_mut().for_each(|row| row.shape[columns] = size[2]);
        piece.choice(b.map(|layout| layout.copy(self.library)).transpose()?)
    }

    /// The dimensions of an operand that a block concerns, each with its number in the block.
    fn dims(&self, operand: usize, block: Block) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (down, across) = (self.axes(), self.axes() + 1);
        let sides = [[Some(down), None], [None, Some(across)], [Some(down), Some(across)]];
        let [rows, columns] = sides[operand];
        let all = [self.batch(), rows, columns].into_iter().zip(block);
        all.filter_map(|(d, number)| Some((d?, number)))
    }

    /// The parts of the operands at which a piece starts; `packed` is where in b if b is packed.
    fn parts(&self, start: Block, packed: Option<usize>) -> Parts {
        let part = |i: usize| {
            let meta = &self.metas[i];
            let moves = self.dims(i, start).filter(|&(d, _)| meta.shape[d] > 1);
            let elements: usize = moves.map(|(d, at)| meta.strides[d] as usize * at).sum();
            Part::at(elements * meta.dtype.size())
        };
        let size = self.metas[1].dtype.size();
        let right = packed.map_or_else(|| part(1), |elements| Part::at(elements * size));
        let row = self.row.as_ref().map(|row| Part::at(start[2] * row.dtype.size()));
        [part(0), right].into_iter().chain(row).chain([part(2)]).collect()
    }
}

/// Where pieces of these extents start.
fn starts(extents: Block, block: Block) -> impl Iterator<Item = Block> {
    let along = move |i: usize| (0..extents[i]).step_by(block[i]);
    along(0).flat_map(move |b| along(1).flat_map(move |r| along(2).map(move |c| [b, r, c])))
}

//! Reorders between layouts, cut into pieces along one dimension, from place to place or in place.

use smallvec::SmallVec;

use super::pieces::{Columns, Part, Parts, Pieces};
use crate::device::onednn::{self, Descriptor, Library};
use crate::error::Result;
use crate::kernels::Width;
use crate::ops::Meta;

/// Bytes that make a piece worthwhile: some 20 microseconds of a thread.
const WORTHWHILE: usize = 128 << 10;
/// The most pieces.
const MOST: usize = 16;
/// The most pieces of a reorder in place, which have to be small: each is copied first.
const MOST_IN_PLACE: usize = 64;

/// oneDNN's reorder of a tensor of this shape and type from one layout to the other. `None` if it
/// has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn reorder(
    library: &Library,
    [from, to]: [Descriptor; 2],
    meta: &Meta,
    width: Width,
) -> Result<Option<Pieces>> {
    let cut = if width == Width::ONE { None } else { Cut::best(library, [&from, &to], meta) };
    if let Some(cut) = cut {
        let pieces = Vec::from_iter(cut.pieces(meta.dtype.size()));
        if let Some(primitive) = onednn::reorder(library, cut.layouts)? {
            return Ok(Some(Pieces::equal(primitive, pieces, width.0)));
        }
    }
    Ok(onednn::reorder(library, [from, to])?.map(Pieces::whole))
}

/// oneDNN's reorder of a tensor in its own memory. `None` unless both layouts are without gaps and the
/// outermost dimension is cut into pieces of the same bytes, or if oneDNN has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn reorder_in_place(
    library: &Library,
    [from, to]: [Descriptor; 2],
    meta: &Meta,
    width: Width,
) -> Result<Option<Pieces>> {
    let size = meta.dtype.size();
    let Some(cut) = Cut::along(0, library, [&from, &to], meta, MOST_IN_PLACE) else {
        return Ok(None);
    };
    let bytes = meta.numel() / cut.count * size;
    if !cut.takes(bytes, library, size) {
        return Ok(None);
    }
    let copied = Some(Columns { rows: 1, bytes, pitch: bytes, width: bytes });
    let part = |n: usize| [Part { start: n * bytes, columns: copied }, Part::at(n * bytes)];
    let pieces = Vec::from_iter((0..cut.count).map(|n| part(n).into_iter().collect()));
    let primitive = onednn::reorder(library, cut.layouts)?;
    Ok(primitive.map(|primitive| Pieces::equal(primitive, pieces, width.0)))
}

/// How tensors are cut along a dimension.
struct Cut {
    /// Of a part of each.
    layouts: [Descriptor; 2],
    /// Elements from part to part.
    apart: [usize; 2],
    count: usize,
}

impl Cut {
    /// The most parts, up to `most`, that both layouts can be cut into along a dimension.
    fn along(
        d: usize,
        library: &Library,
        ends: [&Descriptor; 2],
        meta: &Meta,
        most: usize,
    ) -> Option<Cut> {
        let dims: SmallVec<[i64; 6]> = meta.shape.iter().map(|&extent| extent as i64).collect();
        let most = (meta.numel() * meta.dtype.size() / WORTHWHILE).min(most);
        (2..=most).rev().filter(|&count| meta.shape[d].is_multiple_of(count)).find_map(|count| {
            let [from, to] = ends.map(|end| end.part(library, &dims, d, count));
            let ((from, source), (to, target)) = (from?, to?);
            Some(Cut { layouts: [from, to], apart: [source, target], count })
        })
    }

    /// Along the dimension that is the outermost in both layouts, as far as there is one, so that
    /// threads hardly write to the same cache lines.
    fn best(library: &Library, ends: [&Descriptor; 2], meta: &Meta) -> Option<Cut> {
        let axes = 0..meta.shape.rank();
        let cuts = axes.filter_map(|d| Cut::along(d, library, ends, meta, MOST));
        cuts.max_by_key(|cut| cut.count * cut.apart[0].min(cut.apart[1]))
    }

    /// Whether each part takes so many bytes, up to the next one, in both layouts.
    fn takes(&self, bytes: usize, library: &Library, size: usize) -> bool {
        let is_that = |end: usize| self.layouts[end].bytes(library) == bytes;
        (0..2).all(|end| is_that(end) && self.apart[end] * size == bytes)
    }

    fn pieces(&self, size: usize) -> impl Iterator<Item = Parts> {
        let part = move |n: usize| self.apart.map(|apart| Part::at(n * apart * size));
        (0..self.count).map(move |n| part(n).into_iter().collect())
    }
}

"""Taking tensors apart into sections, and making them of diagonals, of products of vectors and of
what is left."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError
from ..refusals import is_integral, strict_flag
from ..tensor import Tensor
from ..tensor.numbers import as_array, whole, wholes
from . import ops
from .arrange import diagonal, meshgrid
from .casting import promoted
from .index import gather, getitem, where
from .reduce import as_axes
from .repeat import pad
from .shape import cat, clone, plain_reshape, split, stack, transpose
from .table import public

Sections = int | Sequence[int]


def _sections(op: str, x: Tensor, axis: int, sections: Any) -> tuple[Tensor, ...]:
    """Views of parts: equal ones, of which the first may have one element more, or those that end
    before the indices given."""
    (along,) = as_axes(whole(axis, f"{op}: axis"), x.rank, op)
    extent = x.shape[along]
    if isinstance(sections, Tensor):
        sections = sections.to_numpy()
    if is_integral(sections) or np.ndim(sections) == 0:
        count = whole(sections, f"{op}: sections")
        if count < 1:
            raise ValueError(f"{op}: got {count} sections, want at least 1")
        size, more = divmod(extent, count)
        ends = list(itertools.accumulate([size + 1] * more + [size] * (count - more)))
        starts = [0, *ends[:-1]]
    else:
        cuts = [slice(None, n).indices(extent)[1] for n in wholes(sections, f"{op}: indices")]
        starts, ends = [0, *cuts], [*cuts, extent]
    sizes = [max(b - a, 0) for a, b in zip(starts, ends, strict=True)]
    if sum(sizes) == extent and starts[1:] == ends[:-1]:
        return split(x, along, sizes)
    before = (slice(None),) * along
    pairs = zip(starts, sizes, strict=True)
    return tuple(getitem(x, (*before, slice(a, a + n))) for a, n in pairs)


@public(methods="tensor_split")
def tensor_split(x: Tensor, sections: Sections, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along an axis, which need not be equal (NumPy array_split, PyTorch
    tensor_split).

    Args:
        x: any shape but ().
        sections: how many parts, the first of which have one element more if they cannot be equal;
            or the indices before which a part ends.
        axis: the axis.

    Raises:
        ValueError: fewer than one part; an axis that `x` does not have.
    """
    return _sections("tensor_split", x, axis, sections)


@public()
def array_split(x: Tensor, sections: Sections, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along an axis (NumPy array_split); as `tensor_split`."""
    return _sections("array_split", x, axis, sections)


def _equal(op: str, x: Tensor, axis: int, least: int, sections: Any) -> tuple[Tensor, ...]:
    if x.rank < least:
        raise ShapeError(f"{op}: got shape {x.shape}, want {least} dimensions at least")
    if is_integral(sections) and sections > 0 and x.shape[axis] % sections:
        got = f"{sections} parts of an axis of {x.shape[axis]}"
        raise ShapeError(f"{op}: got {got}, want equal ones")
    return _sections(op, x, axis, sections)


@public(methods="hsplit")
def hsplit(x: Tensor, sections: Sections) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those before indices, along the second axis, of a vector the
    first (NumPy hsplit).

    Raises:
        ShapeError: no dimension; parts that are not equal.
        ValueError: fewer than one part.
    """
    return _equal("hsplit", x, 0 if x.rank == 1 else 1, 1, sections)


@public(methods="vsplit")
def vsplit(x: Tensor, sections: Sections) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those before indices, along the first axis of two or more (NumPy
    vsplit). Errors are as in `hsplit`."""
    return _equal("vsplit", x, 0, 2, sections)


@public(methods="dsplit")
def dsplit(x: Tensor, sections: Sections) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those before indices, along the third axis (NumPy dsplit). Errors
    are as in `hsplit`."""
    return _equal("dsplit", x, 2, 3, sections)


@public(methods="select")
def select(x: Tensor, axis: int, index: int) -> Tensor:
    """A view of one slice along an axis, without it (PyTorch select).

    Raises:
        ValueError: an axis or a slice that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "select: axis"), x.rank, "select")
    at, extent = whole(index, "select: index"), x.shape[along]
    if not -extent <= at < extent:
        raise ValueError(f"select: got index {at} for an axis of {extent}, want one in it")
    return getitem(x, (*(slice(None),) * along, at))


# ---- diagonals -----------------------------------------------------------------------------------


@public(methods="diag_embed")
def diag_embed(x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Matrices with the last axis of `x` as a diagonal, zeros elsewhere (PyTorch diag_embed).

    Args:
        x: any shape but (), any dtype.
        offset: above the main diagonal if positive, else below.
        axis1, axis2: where the rows and the columns are among the axes of the result.

    Raises:
        ShapeError: no dimension.
        ValueError: axes that the result does not have, or that are the same.
    """
    if not x.rank:
        raise ShapeError("diag_embed: got shape (), want a dimension")
    k, rank, n = whole(offset, "diag_embed: offset"), x.rank + 1, x.shape[-1]
    pair = as_axes(tuple(whole(a, "diag_embed: axis") for a in (axis1, axis2)), rank, "diag_embed")
    made = where(_ones(n, x), x.unsqueeze(-1), ops.full((), 0, x))
    if k:
        outside = [0] * (x.rank - 1)
        below, above = max(-k, 0), max(k, 0)
        pads = [*outside, below, above, *outside, above, below]
        made = pad(made, "constant", pads)
    order = list(range(rank - 2))
    for place, axis in sorted(zip(pair, (rank - 2, rank - 1), strict=True)):
        order.insert(place, axis)
    return made if order == list(range(rank)) else transpose(made, order)


def _ones(n: int, like: Tensor) -> Tensor:
    """Whether an element of a square matrix is on its diagonal, on the device of `like`."""
    along = ops.arange(n, like)
    made = ops.op("binary", f="eq")(along, ops.reshape(along, (n, 1)))
    made.requires_grad = False
    return made


@public(methods="diag")
def diag(x: Tensor, k: int = 0) -> Tensor:
    """A matrix with a vector on diagonal `k`, zeros elsewhere; of a matrix that diagonal, as a copy
    (NumPy diag, PyTorch diag). `diagonal` is a view of it.

    Raises:
        ShapeError: another number of dimensions.
    """
    if x.rank not in (1, 2):
        raise ShapeError(f"diag: got shape {x.shape}, want a vector or a matrix")
    offset = whole(k, "diag: k")
    return diag_embed(x, offset) if x.rank == 1 else clone(diagonal(x, offset))


@public(methods="diagflat")
def diagflat(x: Tensor, k: int = 0) -> Tensor:
    """A matrix with all elements of `x` on diagonal `k`, zeros elsewhere (NumPy diagflat)."""
    return diag_embed(plain_reshape(x, (x.numel,)), whole(k, "diagflat: k"))


# ---- combinations --------------------------------------------------------------------------------


@public()
def cartesian_prod(*xs: Tensor) -> Tensor:
    """All tuples of one element of each vector, (product of their extents, number of vectors); of
    one vector itself (PyTorch cartesian_prod).

    Raises:
        ShapeError: no vectors; more than one dimension.
    """
    given = promoted(xs, counts=False)
    if not given or any(x.rank != 1 for x in given):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"cartesian_prod: got shapes {shapes}, want vectors")
    if len(given) == 1:
        return given[0]
    grid = meshgrid(*given, indexing="ij")
    return stack([plain_reshape(one, (one.numel,)) for one in grid], 1)


@public(methods="combinations")
def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector in their order, (choices, r) (PyTorch combinations).

    Raises:
        ShapeError: another number of dimensions.
        ValueError: a negative `r`.
    """
    again = strict_flag(with_replacement, "combinations: with_replacement")
    count = whole(r, "combinations: r")
    if x.rank != 1:
        raise ShapeError(f"combinations: got shape {x.shape}, want a vector")
    if count < 0:
        raise ValueError(f"combinations: got r {count}, want at least 0")
    choose = itertools.combinations_with_replacement if again else itertools.combinations
    places = np.array(list(choose(range(x.numel), count)), np.int64).reshape(-1, count)
    return gather(x, 0, places)


@public()
def append(x: Tensor, values: Any, axis: int | None = None) -> Tensor:
    """`x` with values behind it along an axis, both flattened by default (NumPy append).

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an axis that `x` does not have.
    """
    both = promoted((x, values), counts=False)
    if axis is None:
        return cat([plain_reshape(one, (one.numel,)) for one in both], 0)
    (along,) = as_axes(whole(axis, "append: axis"), x.rank, "append")
    return cat(both, along)


@public()
def delete(x: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    """`x` without the slices at indices along an axis, of the flattened tensor by default (NumPy
    delete).

    Args:
        x: any shape.
        indices: numbers, a slice, or bools, one for each slice; no tensor, as the size of the
            result depends on them.
        axis: the axis.

    Raises:
        TypeError: a tensor of indices.
        ValueError: an index out of range; an axis that `x` does not have.
    """
    if isinstance(indices, Tensor):
        raise TypeError("delete: got a Tensor of indices, want numbers, on which the size depends")
    if axis is None:
        x, axis = plain_reshape(x, (x.numel,)), 0
    (along,) = as_axes(whole(axis, "delete: axis"), x.rank, "delete")
    given = indices if isinstance(indices, slice) else as_array(indices, "delete: indices")
    if not isinstance(given, slice) and given.dtype.kind == "f" and given.size == 0:
        given = given.astype(np.int64)
    try:
        left = np.delete(np.arange(x.shape[along]), given)
    except IndexError as error:
        raise ValueError(f"delete: {error}") from None
    return gather(x, along, left)

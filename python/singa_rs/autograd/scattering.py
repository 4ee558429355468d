"""Gathering and scattering by tuples of indices, by elements and by whole slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import number, whole
from . import ops
from .casting import convert
from .index import as_indices, checked, gather, getitem, joined, where
from .reduce import as_axes
from .segments import check_reduction, combined, counts
from .shape import plain_reshape
from .table import public

Extents = tuple[int, ...]


def _places(of: str, indices: Tensor, sizes: Sequence[int], first: Tensor | None = None) -> Tensor:
    """Tuples of indices, the last axis, as indices into the flattened axes of `sizes`, behind
    `first`."""
    front = indices.shape[:-1]
    whole_ = [(0, n, 1) for n in front]
    parts = (indices.view_slice((*whole_, (i, 1, 1))) for i in range(len(sizes)))
    made = joined(of, (ops.reshape(part, front) for part in parts), sizes)
    if first is not None:
        made = ops.add(first, made)
        made.requires_grad = False
    return made


def _tuples(op: str, x: Tensor, indices: Any, batch_dims: int = 0) -> tuple[Tensor, Extents]:
    """Indices as a tensor, and the extents that each tuple refers to."""
    made = as_indices(indices, op, x.device)
    count = made.shape[-1] if made.rank else 0
    fits = made.rank > batch_dims and 1 <= count <= x.rank - batch_dims
    if not fits or made.shape[:batch_dims] != x.shape[:batch_dims]:
        want = "tuples of 1 index at least and of no more than there are axes"
        want += f", beside {batch_dims} equal axes" if batch_dims else ""
        raise ShapeError(f"{op}: got indices of shape {made.shape} for {x.shape}, want {want}")
    return made, x.shape[batch_dims : batch_dims + count]


@public()
def gather_nd(x: Tensor, indices: Any, batch_dims: int = 0) -> Tensor:
    """The elements or slices at tuples of indices (ONNX GatherND).

    Args:
        x: any shape but ().
        indices: integers, of an int or float dtype, (..., k): each tuple refers to the first k axes
            after the batch. Negative ones count from the end.
        batch_dims: how many of the first axes `x` and the indices share.

    Returns:
        The shape of the indices without the last axis, then that of a slice.

    Raises:
        ShapeError: indices of a shape that does not fit.
        ValueError: an index out of range or with a fraction.
    """
    batch = whole(batch_dims, "gather_nd: batch_dims")
    if not 0 <= batch < max(x.rank, 1):
        raise ValueError(f"gather_nd: got batch_dims {batch} for shape {x.shape}, want less axes")
    tuples, sizes = _tuples("gather_nd", x, indices, batch)
    outer, area, first = math.prod(x.shape[:batch]), math.prod(sizes), None
    if batch:
        first = ops.arange(outer, x, step=area)
        first = ops.reshape(first, (*x.shape[:batch], *(1,) * (tuples.rank - 1 - batch)))
    rows = plain_reshape(x, (outer * area, *x.shape[batch + len(sizes) :]))
    return gather(rows, 0, _places("gather_nd", tuples, sizes, first))


def _updates(op: str, updates: Any, x: Tensor, want: Extents) -> Tensor:
    made = convert(as_tensor(updates, x.device, x.dtype), x.dtype)
    if made.shape != want:
        raise ShapeError(f"{op}: got updates of shape {made.shape} for {x.shape}, want {want}")
    return made


@public()
def scatter_nd(x: Tensor, indices: Any, updates: Any, reduction: str = "none") -> Tensor:
    """A copy of `x` in which the elements or slices at tuples of indices are replaced by `updates`,
    or joined with them (ONNX ScatterND). Both get gradients.

    Where a tuple occurs several times, the last update is what stands there, and it alone gets the
    gradient; additions are in the order of the updates.

    Args:
        x: any shape but (), any dtype.
        indices: as in `gather_nd`.
        updates: the shape that `gather_nd` would give.
        reduction: "none", "add", "mul", "max" or "min".

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction; another reduction.
        DTypeError: an update that the dtype of `x` cannot hold; sums or products of bools.
    """
    check_reduction("scatter_nd", x, reduction)
    tuples, sizes = _tuples("scatter_nd", x, indices)
    rest = x.shape[len(sizes) :]
    given = _updates("scatter_nd", updates, x, (*tuples.shape[:-1], *rest))
    places = _places("scatter_nd", tuples, sizes)
    rows = plain_reshape(x, (math.prod(sizes), *rest))
    places = ops.reshape(places, (places.numel,))
    made = combined(rows, places, plain_reshape(given, (places.numel, *rest)), reduction)
    return plain_reshape(made, x.shape)


def scattered(op: str, x: Tensor, along: int, indices: Any, updates: Any, how: str) -> Tensor:
    """A copy of `x` with the elements at indices along an axis joined with updates."""
    check_reduction(op, x, how)
    made, have = as_indices(indices, op, x.device), x.shape
    fits = made.rank == x.rank and all(
        n <= m or i == along for i, (n, m) in enumerate(zip(made.shape, have, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"{op}: got indices of shape {made.shape} for axis {along} of {have}, want as many "
            "axes, none larger except that one"
        )
    given = _updates(op, _first(updates, x, made.shape), x, made.shape)
    places = checked(op, made, have[along])
    places.requires_grad = False
    return combined(x, places, given, how, along)


def _first(updates: Any, x: Tensor, shape: Extents) -> Tensor:
    """The first updates along each axis, as many as there are indices."""
    made = as_tensor(updates, x.device, x.dtype)
    is_larger = made.rank == len(shape) and made.shape != shape
    if is_larger and all(n >= m for n, m in zip(made.shape, shape, strict=True)):
        return getitem(made, tuple(slice(n) for n in shape))
    return made


@public(methods="scatter_add")
def scatter_add(x: Tensor, axis: int, indices: Any, updates: Any) -> Tensor:
    """A copy of `x` with `updates` added at indices along an axis, also where an index repeats
    (PyTorch scatter_add, ONNX ScatterElements with reduction "add"). Both get gradients.

    Args:
        x: any shape but (), of numbers.
        axis: the axis that the indices refer to.
        indices: as many axes as `x`; along `axis` any extent, along the others at most that of
            `x`. Nothing broadcasts.
        updates: the shape of the indices, or a larger one, of which the first are used.

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have.
        DTypeError: an update that the dtype of `x` cannot hold.
    """
    (along,) = as_axes(whole(axis, "scatter_add: axis"), x.rank, "scatter_add")
    return scattered("scatter_add", x, along, indices, updates, "add")


def _slices(op: str, x: Tensor, axis: int, indices: Any) -> tuple[int, Tensor]:
    """The axis, and places along it."""
    (along,) = as_axes(whole(axis, f"{op}: axis"), x.rank, op)
    made = as_indices(indices, op, x.device)
    if made.rank != 1:
        raise ShapeError(f"{op}: got indices of shape {made.shape}, want one dimension")
    places = checked(op, made, x.shape[along])
    places.requires_grad = False
    return along, places


def _by_slices(op: str, x: Tensor, axis: int, indices: Any, updates: Any, how: str) -> Tensor:
    check_reduction(op, x, how)
    along, places = _slices(op, x, axis, indices)
    want = (*x.shape[:along], places.numel, *x.shape[along + 1 :])
    given = _updates(op, updates, x, want)
    return combined(x, places, given, how, along)


@public(methods="index_add")
def index_add(x: Tensor, axis: int, indices: Any, updates: Any, alpha: float = 1) -> Tensor:
    """A copy of `x` with `alpha` times the slices of `updates` added at indices along an axis, also
    where an index repeats (PyTorch index_add). Both get gradients.

    Args:
        x: any shape but (), of numbers.
        axis: the axis that the indices refer to.
        indices: integers, of one dimension; negative ones count from the end.
        updates: the shape of `x`, with a slice for each index.
        alpha: a number.

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have.
        DTypeError: an update that the dtype of `x` cannot hold.
    """
    factor = number(alpha, "index_add: alpha")
    given = as_tensor(updates, x.device, x.dtype)
    given = given if factor == 1 else given * factor
    return _by_slices("index_add", x, axis, indices, given, "add")


@public(methods="index_copy")
def index_copy(x: Tensor, axis: int, indices: Any, updates: Any) -> Tensor:
    """A copy of `x` in which the slices at indices along an axis are those of `updates`, the last
    one where an index repeats (PyTorch index_copy). Arguments and errors are as in `index_add`;
    any dtype."""
    return _by_slices("index_copy", x, axis, indices, updates, "none")


@public(methods="index_fill")
def index_fill(x: Tensor, axis: int, indices: Any, value: Any) -> Tensor:
    """A copy of `x` with `value`, a number or a tensor of one element, in the slices at indices
    along an axis (PyTorch index_fill). Indices and errors are as in `index_add`; any dtype."""
    along, places = _slices("index_fill", x, axis, indices)
    made = convert(as_tensor(value, x.device, x.dtype), x.dtype)
    if made.numel != 1:
        raise ShapeError(f"index_fill: got a value of shape {made.shape}, want one element")
    if not x.shape[along]:  # nowhere, which leaves the value a gradient of zero
        return where(x != x, plain_reshape(made, ()), x)
    hit = ops.scalar_op("gt", 0)(counts(places, x.shape[along]))
    hit.requires_grad = False
    hit = ops.reshape(hit, (x.shape[along], *(1,) * (x.rank - along - 1)))
    return where(hit, plain_reshape(made, ()), x)

"""Elements at positions: taken, written, found and sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor, bool_
from ...tensor.numbers import wholes
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .arranging import axis_of
from .integers import extreme, in_int64, ordered

# ---- taken ---------------------------------------------------------------------------------------


@reads("Gather")
def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """The slices at indices along an axis."""
    return autograd.gather(x, axis, indices)


@reads("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """The elements at indices along an axis; along the others as many as there are indices."""
    along = axis_of(axis, x.rank, "GatherElements")
    have, want = x.shape, indices.shape
    fits = len(have) == len(want) and all(
        n <= m for i, (n, m) in enumerate(zip(want, have, strict=True)) if i != along
    )
    if not fits:
        raise ShapeError(f"GatherElements: got indices of shape {want} for axis {axis} of {have}")
    ends = [have[i] if i == along else n for i, n in enumerate(want)]
    part = x if tuple(ends) == have else autograd.slice(x, [0] * x.rank, ends)
    return autograd.take_along_axis(part, indices, along)


@reads("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The slices at tuples of indices."""
    return autograd.gather_nd(x, indices, batch_dims)


@reads("Compress", host="condition")
def compress(x: Tensor, condition: Any, *, axis: int | None = None) -> Tensor:
    """The slices along an axis where a condition holds, of the flattened tensor by default."""
    places = np.flatnonzero(condition)
    flat = x.reshape((x.numel,)) if axis is None else x
    return autograd.gather(flat, axis or 0, places)


# ---- written -------------------------------------------------------------------------------------

#: ONNX's reductions but for "none", as `scatter_reduce` calls them.
_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
#: Sums and products of bools: whether any, or whether all.
_OF_BOOLS = {"add": "max", "mul": "min"}


@reads("Scatter")
@reads("ScatterElements")
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """A copy with updates at indices along an axis, or joined with what is there."""
    reduction = _reduction(x, reduction)
    if reduction == "none":
        return autograd.scatter(x, axis, indices, updates)
    if reduction not in _REDUCTIONS:
        want = ", ".join(("none", *_REDUCTIONS))
        raise ValueError(f"ScatterElements: got reduction {reduction!r}, want one of {want}")

    def join(a: Tensor, u: Tensor) -> Tensor:
        return autograd.scatter_reduce(a, axis, indices, u, _REDUCTIONS[reduction])

    return _joined(join, x, updates, reduction)


@reads("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """A copy with updates at tuples of indices, or joined with what is there."""
    reduction = _reduction(x, reduction)

    def join(a: Tensor, u: Tensor) -> Tensor:
        return autograd.scatter_nd(a, indices, u, reduction)

    return join(x, updates) if reduction == "none" else _joined(join, x, updates, reduction)


def _reduction(x: Tensor, name: str) -> str:
    return _OF_BOOLS.get(name, name) if x.dtype == bool_ else name


def _joined(
    join: Callable[[Tensor, Tensor], Tensor], x: Tensor, updates: Tensor, reduction: str
) -> Tensor:
    """Values joined in a dtype that is computed with, by their order for extremes."""
    return (extreme if reduction in ("max", "min") else in_int64)(join, x, updates)


@reads("TensorScatter")
def tensor_scatter(
    past: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
    frame: Frame,
) -> Tensor:
    """A cache with an update from a position of each row on, which goes round if "circular"."""
    along = axis_of(axis, past.rank, "TensorScatter")
    if along == 0 or mode not in ("linear", "circular"):
        got = f"axis {axis}, mode {mode!r}"
        raise ValueError(
            f"TensorScatter: got {got}, want 'linear' or 'circular', not the first axis"
        )
    column = (-1, *(1,) * (past.rank - along - 1))
    places = to_tensor(np.arange(update.shape[along]).reshape(column), frame.device)
    if write_indices is not None:
        starts = autograd.cast(write_indices, "int64")
        places = places + starts.reshape((-1, *(1,) * (past.rank - 1)))
    if mode == "circular":
        places = autograd.remainder(places, past.shape[along])
    return autograd.scatter(past, along, autograd.expand(places, update.shape), update)


# ---- found ---------------------------------------------------------------------------------------


@reads("OneHot", host="depth")
def one_hot(indices: Tensor, depth: Any, values: Tensor, *, axis: int = -1) -> Tensor:
    """The second of two values at each index along a new axis, the first elsewhere."""
    (classes,) = wholes(np.ravel(depth), "OneHot: depth")
    hit = autograd.onehot(axis, autograd.cast(indices, "int64"), classes, (False, True))
    off, on = autograd.split(values, 0, [1, 1])
    return autograd.where(hit, on, off)


@reads("NonZero")
def non_zero(x: Tensor, *, frame: Frame) -> Tensor:
    """The positions of the elements that are not zero, (rank, count)."""
    frame.note_read()
    if x.rank:
        return autograd.transpose(autograd.argwhere(x), (1, 0))
    return autograd.transpose(autograd.argwhere(x.reshape((1,))), (1, 0))[:0]


@reads("Unique")
def unique(
    x: Tensor, *, axis: int | None = None, sorted: int = 1, frame: Frame
) -> tuple[Tensor, ...]:
    """The distinct elements or slices, where each stood first, which one each is, how often."""
    frame.note_read()
    values, first, inverse, counts = autograd.unique(x, True, True, True, axis)
    inverse = inverse.reshape((inverse.numel,))
    if sorted:
        return values, first, inverse, counts
    order = autograd.argsort(first)
    found = (autograd.gather(y, at, order) for y, at in ((values, axis or 0), (first, 0)))
    back = autograd.gather(autograd.argsort(order), 0, inverse)
    return *found, back, autograd.gather(counts, 0, order)


@reads("TopK", host="k")
def top_k(
    x: Tensor, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    """The `k` greatest or least elements along an axis, in order also where any would do, and where
    each stood; `k` is an attribute below opset 10."""
    (count,) = wholes(k, "TopK: k")
    if not x.dtype.is_storage:
        return autograd.topk(x, count, axis, bool(largest))
    places = autograd.topk(ordered(x), count, axis, bool(largest))[1]
    return autograd.take_along_axis(x, places, axis), places

"""Sums, means and maxima of rows of a table, in bags."""

from __future__ import annotations

import math
from typing import Any

from .._core import ShapeError, float64
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import whole
from . import ops
from .casting import cast
from .index import Where, as_indices, embedding
from .reduce import reduce_max, reduce_sum
from .segments import Total, combined, counts, hits
from .table import public

MODES = ("mean", "sum", "max")


def _factors(x: Tensor, w: Tensor, weights: Any, mode: str) -> Tensor | None:
    if weights is None:
        return None
    made = cast(as_tensor(weights, w.device, w.dtype), w.dtype)
    if mode != "sum":
        raise ValueError(f"embedding_bag: got weights and mode {mode!r}, want 'sum'")
    if made.shape != x.shape:
        got = f"weights of shape {made.shape} for {x.shape}"
        raise ShapeError(f"embedding_bag: got {got}, want equal shapes")
    return made


def _known(x: Tensor, w: Tensor, padding_idx: Any) -> Tensor | None:
    """Which indices count; None if all do."""
    if padding_idx is None:
        return None
    row, size = whole(padding_idx, "embedding_bag: padding_idx"), w.shape[0]
    if not -size <= row < size:
        raise ValueError(f"embedding_bag: got padding_idx {row} for {size} rows")
    places = ops.op("places", of="embedding_bag", size=size)(x)
    made = ops.scalar_op("ne", row % size)(places)
    made.requires_grad = False
    return made


def _bags(offsets: Any, count: int, device: Any) -> tuple[Tensor, int]:
    """The bag of each of `count` indices, and how many bags there are."""
    if offsets is None:
        raise ShapeError("embedding_bag: got indices of one axis, want offsets")
    starts = as_indices(offsets, "embedding_bag: offsets", device)
    if starts.rank != 1 or not starts.numel:
        got = f"offsets of shape {starts.shape}"
        raise ShapeError(f"embedding_bag: got {got}, want one dimension with elements")
    starts = ops.op("places", of="embedding_bag", size=count + 1, wraps=False)(starts)
    running = ops.op("scan", f="sum", axis=0, exclusive=False, reverse=False)
    begun = ops.part(running(hits(starts, (count + 1,), 0)), 0, 0, count)
    last = ops.scalar_op("sub", 1)(begun)
    found = ops.op("places", of="embedding_bag", size=starts.numel, wraps=False)(last)
    found.requires_grad = False
    return found, starts.numel


@public()
def embedding_bag(
    x: Any,
    w: Tensor,
    offsets: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    padding_idx: int | None = None,
) -> Tensor:
    """The means, sums or maxima of the rows of `w` at the indices of each bag (PyTorch
    embedding_bag); zeros of an empty bag.

    Args:
        x: integers, of an int or float dtype: (N, L), N bags of L each, or (M,), divided by
            `offsets`. Negative ones count from the end.
        w: (n, m).
        offsets: where each bag begins in `x`, ascending, which is not checked, the first 0.
        mode: "mean", "sum" or "max".
        per_sample_weights: factors of the rows, of the shape of `x`; for "sum".
        padding_idx: the row that does not count.

    Returns:
        (bags, m).

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an index out of range or with a fraction, when it is used; a first offset above
            0; another mode.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"embedding_bag: got mode {mode!r}, want one of {', '.join(MODES)}")
    places = as_indices(x, "embedding_bag", w.device)
    if places.rank not in (1, 2) or (places.rank == 2 and offsets is not None):
        got = f"indices of shape {places.shape}" + ("" if offsets is None else " and offsets")
        raise ShapeError(f"embedding_bag: got {got}, want (N, L), or (M,) and offsets")
    rows, known = embedding(places, w), _known(places, w, padding_idx)
    factors = _factors(places, w, per_sample_weights, mode)
    rows = rows if factors is None else rows * factors.unsqueeze(-1)
    if known is not None:
        least = ops.full((), -math.inf if mode == "max" else 0, rows)
        rows = Where(known.unsqueeze(-1))(rows, least)[0]
    if places.rank == 2:
        return _of_rows(rows, known, mode)
    return _of_segments(rows, known, *_bags(offsets, places.numel, w.device), mode)


def _of_rows(rows: Tensor, known: Tensor | None, mode: str) -> Tensor:
    """Of bags of one length, (N, L, m)."""
    length = rows.shape[1]  # the sum of none is 0, and leads to the table
    made = (reduce_max if mode == "max" and length else reduce_sum)(rows, 1, False)
    if mode == "sum":
        return made
    count: Any = length if known is None else ops.reduce_op("sum", (1,), True)(known)
    return _finished(made, count, mode)


def _of_segments(rows: Tensor, known: Tensor | None, bags: Tensor, size: int, mode: str) -> Tensor:
    """Of bags one after another, (M, m)."""
    if mode == "max" and rows.numel:
        least = ops.full((size, rows.shape[1]), -math.inf, rows)
        least.requires_grad = False
        made = combined(least, bags, rows, "max")
    else:
        made = Total(bags, size)(rows)[0]
    if mode == "sum":
        return made
    if known is None:
        count = counts(bags, size)
    else:
        ones = ops.cast(known, float64)
        count = ops.op("gather_grad", axis=0, size=size)(ones, bags)
    return _finished(made, ops.reshape(count, (size, 1)), mode)


def _finished(made: Tensor, count: Tensor | int, mode: str) -> Tensor:
    """The results of bags with so many rows each: means, and 0 in the place of extremes of none."""
    if isinstance(count, int):
        return made / max(count, 1) if mode == "mean" else made
    count.requires_grad = False
    if mode == "max":
        return Where(ops.scalar_op("gt", 0)(count))(made, ops.full((), 0, made))[0]
    divisor = ops.scalar_op("maximum", 1)(ops.cast(count, made.dtype))
    divisor.requires_grad = False
    return made / divisor

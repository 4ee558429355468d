"""Order statistics, averages with weights or without NaN, ranges, covariances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import ShapeError
from ..refusals import strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import as_array, real, whole
from . import ops
from .axes import moveaxis
from .casting import cast, floating
from .finite import isinf, isnan
from .index import gather, where
from .matmul import matmul
from .precision import rounded_once
from .reduce import Axes, reduce_max, reduce_mean, reduce_min, reduce_sum, reduced_axes
from .results import ValuesIndices
from .shape import expand, plain_reshape, transpose
from .sorting import sort
from .statistics import narrowed, root
from .table import public
from .terms import wide

#: How a quantile between two elements is found, by NumPy's names.
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _lined_up(op: str, x: Tensor, axis: Axes) -> tuple[Tensor, tuple[int, ...]]:
    """The axes as one, the last, and which they are."""
    over = reduced_axes(axis, x.rank, op)
    rest = [i for i in range(x.rank) if i not in over]
    kept = [x.shape[i] for i in rest]
    count = math.prod(x.shape[i] for i in over)
    return plain_reshape(transpose(x, [*rest, *over]), (*kept, count)), over


def _back(made: Tensor, over: tuple[int, ...], keepdims: bool) -> Tensor:
    """The axes with extent 1 where they were, if they are kept."""
    return made.unsqueeze(over) if keepdims and over else made


def _at_ranks(values: Tensor, places: np.ndarray, how: str) -> Tensor:
    """What stands at places, which may be between two elements, of sorted last axes."""
    rounded = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}
    if how in rounded:
        return gather(values, -1, rounded[how](places).astype(np.int64))
    low, high = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
    first = gather(values, -1, low)
    if (low == high).all():
        return first
    share = np.full(places.shape, 0.5) if how == "midpoint" else places - low
    share = as_tensor(np.where(low == high, 0.0, share), values.device, values.dtype)
    share.requires_grad = False
    return between(first, gather(values, -1, high), share)


def between(first: Tensor, last: Tensor, share: Any) -> Tensor:
    """What stands a share of the way from an element to the next one."""
    # No part of the way leads from an infinity to a number, or to an equal one.
    stays = isinf(first.detach()) & (last.detach() != -first.detach())
    start, end = where(stays, 0.0, first), where(stays, 0.0, last)
    # Nor may a distance overflow, or swallow the digits of a sum near 0: as parts of both ends.
    crosses = (start.detach() < 0) != (end.detach() < 0)
    base, part = where(crosses, 0.0, start), where(crosses, start, 0.0) * (1 - share)
    return where(stays, first, base + (end - base) * share + part)


@rounded_once
def quantiles_by(
    prepare: Callable[[Tensor], Callable[[np.ndarray], Tensor]],
    op: str,
    x: Tensor,
    q: Any,
    axis: Axes,
    keepdims: bool,
    how: str,
    most: float,
) -> Tensor:
    """Quantiles over axes. Given these as the last one, `prepare` returns a function of the shares
    of what is not above, which are the last axis of its result."""
    if not isinstance(how, str) or how not in METHODS:
        raise ValueError(f"{op}: got method {how!r}, want one of {', '.join(METHODS)}")
    wanted = as_array(q, f"{op}: q").astype(np.float64)
    if wanted.ndim > 1 or not ((wanted >= 0) & (wanted <= most)).all():
        raise ValueError(f"{op}: got q {q}, want numbers from 0 to {most:g}")
    rows, over = _lined_up(op, floating(x), axis)
    if not rows.shape[-1]:
        raise ShapeError(f"{op}: got shape {x.shape}, want elements")
    found = _back(prepare(rows)(wanted.ravel() / most), over, keepdims)
    return moveaxis(found, -1, 0) if wanted.ndim else found[..., 0]


def _quantiles(
    op: str, x: Tensor, q: Any, axis: Axes, keepdims: bool, how: str, most: float
) -> Tensor:
    def prepare(rows: Tensor) -> Callable[[np.ndarray], Tensor]:
        values = sort(rows, -1)[0]
        last = values[..., -1:]  # NaN if there is one among them
        values = where(isnan(last), last, values)
        return lambda shares: _at_ranks(values, shares * (rows.shape[-1] - 1), how)

    return quantiles_by(prepare, op, x, q, axis, keepdims, how, most)


@public(methods="quantile")
def quantile(
    x: Tensor, q: Any, axis: Axes = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The quantiles over `axis`, all by default (NumPy quantile, PyTorch quantile): what a share
    `q` of the elements is not above. NaN if one of them is.

    Args:
        x: any shape; integers become float32.
        q: a number from 0 to 1, or several, which are the first axis of the result.
        axis: one axis or several.
        keepdims: whether these axes stay, with extent 1.
        method: what stands between two elements: "linear", "lower", "higher", "nearest" or
            "midpoint".

    Raises:
        ShapeError: no elements.
        ValueError: another share or method; axes that `x` does not have.
    """
    keeps = strict_flag(keepdims, "quantile: keepdims")
    return _quantiles("quantile", x, q, axis, keeps, method, 1)


@public(methods="percentile")
def percentile(
    x: Tensor, q: Any, axis: Axes = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """`quantile` of shares from 0 to 100 (NumPy percentile)."""
    keeps = strict_flag(keepdims, "percentile: keepdims")
    return _quantiles("percentile", x, q, axis, keeps, method, 100)


@public(methods="median")
def median(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The median over `axis`, all by default (NumPy median): of an even number of elements the mean
    of the two in the middle, where PyTorch's is the lower one. NaN if one of them is.

    Raises:
        ShapeError: no elements.
        ValueError: axes that `x` does not have.
    """
    strict_flag(keepdims, "median: keepdims")
    return _quantiles("median", x, 0.5, axis, keepdims, "midpoint", 1)


@public(methods="nansum")
def nansum(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis`, all by default, of what is not NaN (NumPy nansum).

    Raises:
        ValueError: axes that `x` does not have.
    """
    return reduce_sum(where(isnan(x), 0, x) if x.dtype.is_float else x, axis, keepdims)


@public(methods="nanmean")
def nanmean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis`, all by default, of what is not NaN (NumPy nanmean); NaN of nothing.
    Integers become float32.

    Raises:
        ValueError: axes that `x` does not have.
    """
    if not x.dtype.is_float:
        return reduce_mean(x, axis, keepdims)
    x_wide, known = wide(x), ops.op("unary", f="not")(isnan(x))
    known.requires_grad = False
    count = reduce_sum(cast(known, x_wide.dtype), axis, keepdims)
    return narrowed(reduce_sum(where(known, x_wide, 0.0), axis, keepdims) / count, x)


def _nan_extreme(op: str, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    over, least = (reduce_max, -math.inf) if op == "nanmax" else (reduce_min, math.inf)
    if not x.dtype.is_float:
        return over(x, axis, keepdims)
    unknown = isnan(x)
    made = over(where(unknown, least, x), axis, keepdims)
    axes = reduced_axes(axis, x.rank, op)
    none = ops.reduce_op("all", axes, bool(keepdims))(unknown) if axes else unknown
    none.requires_grad = False
    return where(none, math.nan, made)


@public(methods="nanmax")
def nanmax(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest over `axis`, all by default, of what is not NaN (NumPy nanmax); NaN of nothing.

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return _nan_extreme("nanmax", x, axis, keepdims)


@public(methods="nanmin")
def nanmin(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest over `axis`, all by default, of what is not NaN (NumPy nanmin); NaN of nothing.

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return _nan_extreme("nanmin", x, axis, keepdims)


@public(methods="ptp")
def ptp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest minus the smallest over `axis`, all by default (NumPy ptp).

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return reduce_max(x, axis, keepdims) - reduce_min(x, axis, keepdims)


@public()
def average(x: Tensor, axis: Axes = None, weights: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis`, all by default, with weights (NumPy average). `tensor.average` has
    SINGA's arguments.

    Args:
        x: any shape; integers become float32.
        axis: one axis or several.
        weights: the shape of `x`, or, for one axis, a vector along it; equal ones by default.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        ShapeError: weights of a shape that does not fit.
        ValueError: axes that `x` does not have.
    """
    over = reduced_axes(axis, x.rank, "average")
    if weights is None:
        return reduce_mean(x, over, keepdims)
    x_wide = wide(x)
    given = cast(as_tensor(weights, x.device, x_wide.dtype), x_wide.dtype)
    if given.shape != x.shape:
        if len(over) != 1 or given.shape != (x.shape[over[0]],):
            got = f"weights of shape {given.shape} for {x.shape}"
            raise ShapeError(f"average: got {got}, want the same, or a vector along one axis")
        given = plain_reshape(given, (given.numel, *(1,) * (x.rank - over[0] - 1)))
    total = reduce_sum(expand(given, x.shape), over, keepdims)
    return narrowed(reduce_sum(x_wide * given, over, keepdims) / total, x)


@public()
def cov(x: Tensor, ddof: float = 1) -> Tensor:
    """The covariances of variables (NumPy cov): the rows of a matrix, observed in its columns.

    Args:
        x: (variables, observations); a vector is one variable. Integers become float32. The result
            for one variable is of shape ().
        ddof: the sums are divided by `n - ddof`.

    Raises:
        ShapeError: more than two dimensions.
    """
    return narrowed(_cov("cov", x, real(ddof, "cov: ddof")), x)


def _cov(op: str, x: Tensor, ddof: float) -> Tensor:
    if x.rank not in (1, 2):
        raise ShapeError(f"{op}: got shape {x.shape}, want a matrix or a vector")
    rows = wide(x) if x.rank == 2 else plain_reshape(wide(x), (1, x.numel))
    rows = rows - reduce_mean(rows, 1, True)
    made = matmul(rows, transpose(rows)) / max(rows.shape[1] - ddof, 0.0)
    return made if made.numel != 1 else plain_reshape(made, ())


@public()
def corrcoef(x: Tensor) -> Tensor:
    """The correlations of variables, from -1 to 1 (NumPy corrcoef); the argument is as in `cov`.

    Raises:
        ShapeError: more than two dimensions.
    """
    made = _cov("corrcoef", x, 0)
    if not made.rank:
        return narrowed(made / made, x)
    spread = root(made.diagonal())
    made = made / spread.unsqueeze(1) / spread.unsqueeze(0)
    return narrowed(made.clip(-1.0, 1.0), x)


@public(methods="mode")
def mode(x: Tensor, axis: int = -1, keepdims: bool = False) -> ValuesIndices:
    """The element along an axis that occurs most often, the least of several, and the index of the
    last of them, int64 (PyTorch mode).

    Raises:
        ValueError: an axis that `x` does not have.
        ShapeError: no elements along it.
    """
    keeps = strict_flag(keepdims, "mode: keepdims")
    rows, over = _lined_up("mode", x, whole(axis, "mode: axis"))
    if not rows.shape[-1]:
        raise ShapeError(f"mode: got shape {x.shape}, want elements along axis {axis}")
    values, places = sort(rows, -1)
    last = ops.reduce_op("argmax", (values.rank - 1,), True)(_counted(values.detach()))
    last.requires_grad = False
    found = (t.take_along_axis(last, -1).squeeze(-1) for t in (values, places))
    return ValuesIndices(*(_back(t, over, keeps) for t in found))


def _counted(values: Tensor) -> Tensor:
    """How many equal ones there are up to each element of sorted last axes; fewer than 0 for NaN,
    most for the last."""
    along, size = values.rank - 1, values.shape[-1]
    every = ops.arange(size, values)
    before = ops.op("gather", axis=along)(
        values, ops.scalar_op("maximum", 0)(ops.scalar_op("sub", 1)(every))
    )
    differs = ops.op("binary", f="ne")(values, before)
    starts = ops.where(differs, every.view_expand(values.shape), ops.full((), 0, every))
    starts = ops.greatest_so_far(along)(starts)
    counts = ops.add(ops.sub(every, starts), ops.full((), 1, every))
    if not values.dtype.is_float:
        return counts
    known = ops.op("binary", f="eq")(values, values)
    return ops.where(known, counts, ops.scalar_op("sub", size)(every))

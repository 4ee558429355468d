"""Statistics of what is not NaN, several at once, and of the k-th element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import float64, uint8
from ..refusals import strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import real, whole
from . import ops
from .casting import cast, floating
from .finite import isnan
from .index import where
from .precision import rounded_once
from .quantiles import between, nanmean, quantiles_by
from .reduce import (
    Axes,
    as_axes,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reduced_axes,
)
from .results import MinMax, ValuesIndices
from .scan import cumprod, cumsum, flattened, of_scalars
from .shape import plain_reshape
from .sorting import sort
from .statistics import narrowed, norm, root, std, var
from .table import FUNCTIONS, public
from .terms import wide


def _with(x: Tensor, value: float) -> Tensor:
    """`x` with a number in the place of NaN."""
    return where(isnan(x), value, x) if x.dtype.is_float else x


@public(methods="nanprod", precision="wide")
def nanprod(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over `axis`, all by default, of what is not NaN (NumPy nanprod).

    Raises:
        ValueError: axes that `x` does not have.
    """
    return reduce_prod(_with(x, 1), axis, keepdims)


def _nan_deviation(op: str, x: Tensor, axis: Axes, keepdims: bool, ddof: float) -> Tensor:
    over, less = reduced_axes(axis, x.rank, op), real(ddof, f"{op}: ddof")
    x_wide = wide(x)
    known = ops.op("unary", f="not")(isnan(x_wide))
    known.requires_grad = False
    apart = where(known, x_wide - nanmean(x_wide, over, True), 0.0)
    total = reduce_sum(apart * apart, over, keepdims)
    count = cast(reduce_sum(known, over, keepdims), x_wide.dtype) - less
    count.requires_grad = False
    return where(count > 0, total / where(count > 0, count, 1.0), math.nan)


@public(methods="nanvar", precision="wide")
def nanvar(x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """The variance over `axis`, all by default, of what is not NaN (NumPy nanvar); NaN where there
    are no more than `ddof` such elements. Arguments are as in `var`.

    Raises:
        ValueError: axes that `x` does not have.
    """
    return narrowed(_nan_deviation("nanvar", x, axis, bool(keepdims), ddof), x)


@public(methods="nanstd", precision="wide")
def nanstd(x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """The standard deviation over `axis`, all by default, of what is not NaN (NumPy nanstd): the
    square root of `nanvar`, with the same arguments. Where it is 0 the gradient is 0."""
    return narrowed(root(_nan_deviation("nanstd", x, axis, bool(keepdims), ddof)), x)


@public()
def nancumsum(x: Tensor, axis: int | None = None) -> Tensor:
    """The running sum along an axis, of the flattened tensor by default, in which NaN counts as 0
    (NumPy nancumsum).

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return cumsum(_with(x, 0), axis)


@public()
def nancumprod(x: Tensor, axis: int | None = None) -> Tensor:
    """The running product along an axis, of the flattened tensor by default, in which NaN counts as
    1 (NumPy nancumprod).

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return cumprod(_with(x, 1), axis)


def _arg(op: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """The place of an extreme among what is not NaN, an infinity before what took its place."""
    flat, along = flattened(x.detach(), axis)
    (along,) = as_axes(whole(along, f"{op}: axis"), flat.rank, op)
    made = ops.reduce_op(op[3:], (along,), True)(_with(flat, _LEAST[op]))
    if x.dtype.is_float:
        known = ops.op("unary", f="not")(isnan(flat))
        first = ops.reduce_op("argmax", (along,), True)(ops.cast(known, uint8))
        made = ops.where(isnan(flat.take_along_axis(made, along)), first, made)
    kept = (1,) * x.rank if axis is None else made.shape
    over = as_axes(axis, x.rank, op)
    shape = kept if keepdims else tuple(n for i, n in enumerate(kept) if i not in over)
    made = ops.reshape(made, shape)
    made.requires_grad = False
    return made


#: What takes the place of NaN.
_LEAST = {"nanargmax": -math.inf, "nanargmin": math.inf}


@public(methods="nanargmax")
@of_scalars
def nanargmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first largest element along an axis, of all by default, that is not NaN;
    int64 (NumPy nanargmax). Where all are NaN it is 0, which NumPy refuses.

    Raises:
        ValueError: an axis that `x` does not have, or without elements.
    """
    return _arg("nanargmax", x, axis, bool(keepdims))


@public(methods="nanargmin")
@of_scalars
def nanargmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first smallest element along an axis, of all by default, that is not NaN;
    int64 (NumPy nanargmin). Where all are NaN it is 0, which NumPy refuses.

    Raises:
        ValueError: an axis that `x` does not have, or without elements.
    """
    return _arg("nanargmin", x, axis, bool(keepdims))


# ---- quantiles -----------------------------------------------------------------------------------


def _nan_quantiles(
    op: str, x: Tensor, q: Any, axis: Axes, keepdims: bool, how: str, most: float
) -> Tensor:
    def prepare(rows: Tensor) -> Callable[[np.ndarray], Tensor]:
        values = sort(rows, -1)[0]  # NaN is last
        known = ops.op("unary", f="not")(isnan(rows))
        last = ops.cast(ops.reduce_op("sum", (rows.rank - 1,), True)(known), float64)
        last = ops.scalar_op("maximum", 0)(ops.scalar_op("sub", 1)(last))
        return lambda shares: _at(values, last, shares, how)

    return quantiles_by(prepare, op, x, q, axis, keepdims, how, most)


def _at(values: Tensor, last: Tensor, shares: np.ndarray, how: str) -> Tensor:
    """What stands at shares of the places from 0 to `last` of sorted last axes."""
    place = ops.mul(last, as_tensor(shares, last.device, last.dtype))
    rounded = {"lower": ("floor",), "higher": ("ceil",), "nearest": ("rounde",)}
    ends = [ops.op("unary", f=f)(place) for f in rounded.get(how, ("floor", "ceil"))]
    for one in ends:
        one.requires_grad = False
    taken = [values.take_along_axis(one, -1) for one in ends]
    if len(taken) == 1:
        return taken[0]
    weight = ops.sub(place, ends[0])
    if how == "midpoint":
        weight = ops.scalar_op("mul", 0.5)(ops.op("unary", f="ceil")(weight))
    weight = ops.cast(weight, values.dtype)
    weight.requires_grad = False
    return between(*taken, weight)


@public(methods="nanquantile")
def nanquantile(
    x: Tensor, q: Any, axis: Axes = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The quantiles over `axis`, all by default, of what is not NaN (NumPy nanquantile, PyTorch
    nanquantile); NaN of nothing. Arguments and errors are as in `quantile`."""
    keeps = strict_flag(keepdims, "nanquantile: keepdims")
    return _nan_quantiles("nanquantile", x, q, axis, keeps, method, 1)


@public(methods="nanpercentile")
def nanpercentile(
    x: Tensor, q: Any, axis: Axes = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """`nanquantile` of shares from 0 to 100 (NumPy nanpercentile)."""
    keeps = strict_flag(keepdims, "nanpercentile: keepdims")
    return _nan_quantiles("nanpercentile", x, q, axis, keeps, method, 100)


@public(methods="nanmedian")
def nanmedian(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The median over `axis`, all by default, of what is not NaN (NumPy nanmedian): of an even
    number of elements the mean of the two in the middle. NaN of nothing.

    Raises:
        ShapeError: no elements.
        ValueError: axes that `x` does not have.
    """
    keeps = strict_flag(keepdims, "nanmedian: keepdims")
    return _nan_quantiles("nanmedian", x, 0.5, axis, keeps, "midpoint", 1)


@public(methods="kthvalue")
@of_scalars
def kthvalue(x: Tensor, k: int, axis: int = -1, keepdims: bool = False) -> ValuesIndices:
    """The `k`-th smallest element along an axis, counted from 1, and its index, int64 (PyTorch
    kthvalue); of equal ones in the order in which they stand. NaN is greater than all numbers.

    Raises:
        ValueError: an axis that `x` does not have; a `k` that is not from 1 to its extent.
    """
    (along,) = as_axes(whole(axis, "kthvalue: axis"), x.rank, "kthvalue")
    count, keeps = whole(k, "kthvalue: k"), strict_flag(keepdims, "kthvalue: keepdims")
    if not 1 <= count <= x.shape[along]:
        raise ValueError(f"kthvalue: got k {count} for an axis of {x.shape[along]}, want one in it")
    place: Any = slice(count - 1, count) if keeps else count - 1
    key = (*(slice(None),) * along, place)
    values, places = sort(x, along)
    return ValuesIndices(values[key], places[key])


# ---- several at once -----------------------------------------------------------------------------


@public(methods="aminmax")
def aminmax(x: Tensor, axis: Axes = None, keepdims: bool = False) -> MinMax:
    """The smallest and the largest over `axis`, all by default (PyTorch aminmax); NaN wins, and
    equal ones share the gradient.

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return MinMax(reduce_min(x, axis, keepdims), reduce_max(x, axis, keepdims))


@public(precision="wide")
def var_mean(
    x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0
) -> tuple[Tensor, Tensor]:
    """The variance and the mean over `axis`, all by default (PyTorch var_mean, whose default is
    `ddof=1`). Arguments and errors are as in `var`."""
    return var(x, axis, keepdims, ddof), x.mean(axis, keepdims)


@public(precision="wide")
def std_mean(
    x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over `axis`, all by default (PyTorch std_mean, whose
    default is `ddof=1`). Arguments and errors are as in `std`."""
    return std(x, axis, keepdims, ddof), x.mean(axis, keepdims)


@public(methods="dist", precision="wide")
@rounded_once
def dist(a: Tensor, b: Any, p: float = 2.0) -> Tensor:
    """The norm of all elements of `a - b` (PyTorch dist).

    Args:
        a, b: tensors that broadcast; integers become float32.
        p: the order, from 1, or infinity.

    Raises:
        ShapeError: shapes that do not broadcast.
        ValueError: another order.
    """
    apart = floating(FUNCTIONS["sub"](a, b))
    return norm(plain_reshape(apart, (apart.numel,)), real(p, "dist: p"), 0)

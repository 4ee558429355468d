"""Reductions over axes, running sums and products, and what is normalised along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import autograd
from ...autograd.casting import cast
from ...autograd.reduce import as_axes
from ...tensor import Tensor, bool_, float64, full, int64, uint64
from ..table import reads
from . import integers

Axes = tuple[int, ...] | None
#: A function of a tensor, the axes that it reduces, all if None, and whether they stay.
Over = Callable[[Tensor, Axes, bool], Tensor]


def _count(x: Tensor, axes: Axes) -> int:
    return math.prod(x.shape[a] for a in as_axes(axes, x.rank, "axes"))


def _sum(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return autograd.reduce_sum(x, axes, keepdims)


def _mean(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    if x.dtype.is_float:
        return autograd.reduce_mean(x, axes, keepdims)
    total = _sum(x, axes, keepdims)
    # The mean of no integers is 0, as in onnxruntime.
    return integers.quotient(total, full((), max(1, _count(x, axes)), x.device, int64))


def _product(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return autograd.reduce_prod(x, axes, keepdims)


def _sum_square(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return _sum(x * x, axes, keepdims)


def _l1(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return _sum(autograd.abs(x), axes, keepdims)


def _l2(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return autograd.norm(x, None, tuple(range(x.rank)) if axes is None else axes, keepdims)


def _log_sum(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return autograd.log(_sum(x, axes, keepdims))


def _integral(over: Over) -> Over:
    """A reduction of integers whose results are integers."""

    def run(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
        return cast(integers.in_int64(over, x, axes, keepdims), x.dtype)

    return run


def _real(over: Over) -> Over:
    """A reduction whose results are not integers: for those they lose their fractions."""

    def run(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
        wide = x if x.dtype.is_float else cast(x, float64)
        return cast(over(wide, axes, keepdims), x.dtype)

    return run


def _extreme(over: Over, sign: int) -> Over:
    """The greatest or the least; of no elements, the end of the range on the other side."""

    def run(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
        if _count(x, axes) == 0:
            known = autograd.reduce_sum(cast(x, int64), axes, keepdims)
            return _filled(known.shape, _end(x, sign), x)
        if x.dtype == uint64:
            found = over(integers.ordered(x), axes, keepdims)
            return cast(autograd.bitwise_xor(found, -(2**63)), uint64)
        return integers.in_int64(over, x, axes, keepdims)

    return run


def _filled(shape: tuple[int, ...], value: float, like: Tensor) -> Tensor:
    """A number in a shape; the greatest of uint64, which is that of -1, does not fit a float64."""
    is_large = like.dtype == uint64 and value
    made = full(shape, -1 if is_large else value, like.device, int64 if is_large else like.dtype)
    return cast(made, like.dtype)


def _end(x: Tensor, sign: int) -> float:
    if x.dtype.is_float:
        return sign * math.inf
    if x.dtype == bool_:
        return int(sign > 0)
    info = np.iinfo(x.dtype.name)
    return int(info.max if sign > 0 else info.min)


_REDUCTIONS: dict[str, Over] = {
    "Sum": _integral(_sum),
    "Prod": _integral(_product),
    "Mean": _integral(_mean),
    "SumSquare": _integral(_sum_square),
    "L1": _integral(_l1),
    "L2": _real(_l2),
    "LogSum": _real(_log_sum),
    "LogSumExp": _real(autograd.logsumexp),
    "Max": _extreme(autograd.reduce_max, -1),
    "Min": _extreme(autograd.reduce_min, 1),
}


def _by_attribute(over: Over) -> Callable[..., Tensor]:
    def run(x: Tensor, *, axes: Axes = None, keepdims: int = 1) -> Tensor:
        return over(x, axes or None, bool(keepdims))

    return run


def _by_input(over: Over) -> Callable[..., Tensor]:
    def run(
        x: Tensor, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        found = () if axes is None else tuple(int(a) for a in np.ravel(axes))
        return over(x, found if found or noop_with_empty_axes else None, bool(keepdims))

    return run


for _name, _over in _REDUCTIONS.items():
    reads(f"Reduce{_name}")(_by_attribute(_over))
    reads(f"Reduce{_name}", 13 if _name == "Sum" else 18, host="axes")(_by_input(_over))


def _position(find: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(
        x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Tensor:  # fmt: skip
        x = integers.ordered(x)
        if not select_last_index:
            return find(x, axis, keepdims)
        return x.shape[axis] - 1 - find(autograd.flip(x, axis), axis, keepdims)

    return run


reads("ArgMax")(_position(autograd.argmax))
reads("ArgMin")(_position(autograd.argmin))


def _running(scan: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        along = int(np.ravel(axis)[0])
        return cast(integers.in_int64(scan, x, along, bool(exclusive), bool(reverse)), x.dtype)

    return run


reads("CumSum", since=11, host="axis")(_running(autograd.cumsum))
reads("CumProd", since=26, host="axis")(_running(autograd.cumprod))


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """1 at the first of the greatest along an axis, else 0."""
    if not x.numel:
        return autograd.identity(x)
    return autograd.one_hot(autograd.argmax(x, axis), x.shape[axis], axis, x.dtype)


def _in_rows(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """A function of an axis as of opsets below 13: of all from `axis` on as one."""

    def run(x: Tensor, *, axis: int = 1) -> Tensor:
        (at,) = as_axes(axis, x.rank, "axis")
        rows = (math.prod(x.shape[:at]), math.prod(x.shape[at:]))
        return function(x.reshape(rows), 1).reshape(x.shape)

    return run


def _along(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, *, axis: int = -1) -> Tensor:
        return function(x, axis)

    return run


for _name, _function in {
    "Softmax": autograd.softmax, "LogSoftmax": autograd.log_softmax, "Hardmax": _hardmax
}.items():  # fmt: skip
    reads(_name)(_in_rows(_function))
    reads(_name, since=13)(_along(_function))


@reads("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """`x` divided by its norms along an axis; 0 where they are 0."""
    if p not in (1, 2):
        raise ValueError(f"LpNormalization: got p {p}, want 1 or 2")
    length = autograd.norm(x, p, axis, True)
    return x / autograd.where(length.detach() == 0, 1.0, length)

"""The pairs of right and other classes whose scores are less than a margin apart, counted by
sorting, not one by one: C log C steps for a row of C classes, however many of them are right."""

from __future__ import annotations

from typing import Any

from .._core import float64, int64
from ..tensor import Tensor
from . import ops
from .rule import Rule


class OverMargin(Rule):
    """The sums over the right classes `j` and all others `i` of `max(0, 1 - x[j] + x[i])`, (N,).

    That is the number of pairs above 0, and each score as often as it counts in them, whole numbers
    that are the slopes, too.
    """

    keeps = constants = ("slopes",)

    def __init__(self, places: Tensor, counts: Tensor) -> None:
        self.places, self.counts = places, counts

    def forward(self, x: Tensor) -> Tensor:
        classes = x.shape[1]
        right, other = _times(self.places, self.counts)
        # Of equal keys others are first, so that they are not above the margin.
        keys = ops.op("concat", axis=1)(x, ops.scalar_op("sub", 1)(x))
        _, order = ops.op("sort", axis=1, descending=False, count=None)(keys)
        right, other = (ops.op("gather_elements", axis=1)(t, order) for t in (right, other))
        below = ops.mul(other, _running(right, reverse=False))
        above = ops.mul(right, _running(other, reverse=True))
        slopes = _back(ops.sub(below, above), order)
        halves = (ops.part(slopes, 1, at, at + classes) for at in (0, classes))
        slopes = ops.add(*halves)
        self.slopes = ops.cast(slopes, x.dtype)
        return ops.cast(ops.add(_total(below), _product(slopes, x)), x.dtype)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` by the number of pairs in which a score counts."""
        (dy,) = dys
        return (ops.mul(ops.reshape(dy, (*dy.shape, 1)), self.load(0)),)


def _times(places: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """How often each class is given as right, and how often, once or not, it is another one; beside
    the zeros of the other half each, (N, 2 C)."""
    none, join = ops.full(places.shape, 0, places), ops.op("concat", axis=1)
    right = ops.op("scatter", axis=1, join="add")(none, places, ops.cast(counts, int64))
    other = ops.cast(ops.scalar_op("eq", 0)(right), int64)
    return join(none, right), join(other, none)


def _running(x: Tensor, reverse: bool) -> Tensor:
    return ops.op("scan", f="sum", axis=1, exclusive=False, reverse=reverse)(x)


def _back(x: Tensor, order: Tensor) -> Tensor:
    """Rows in the order that they had before they were sorted."""
    return ops.op("scatter", axis=1, join="none")(ops.full(x.shape, 0, x), order, x)


def _total(x: Tensor) -> Tensor:
    """The sums of rows, in float64: terms of both signs nearly cancel."""
    return ops.reduce_op("sum", (1,), False)(ops.cast(x, float64))


def _product(slopes: Tensor, x: Tensor) -> Tensor:
    """The sums of scores by their slopes. One that is not finite counts only where it has a slope,
    NaN always."""
    none = ops.where(ops.op("binary", f="eq")(x, x), ops.full((), 0, x), x)
    x = ops.where(ops.scalar_op("eq", 0)(slopes), none, x)
    return _total(ops.mul(ops.cast(slopes, float64), ops.cast(x, float64)))

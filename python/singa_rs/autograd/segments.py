"""Values that meet at the same places: added, multiplied, compared, or the last of them. All are
operations of the engine, whatever the dtype, and in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import DTypeError, bfloat16, bool_, float16, int64
from ..tensor import Tensor
from . import binary, ops
from .index import gather, where
from .mode import no_grad
from .ops import Grads, Tensors
from .rule import Rule
from .shape import cat, clone

#: How values that meet at a place are joined, by ONNX's names.
REDUCTIONS = ("none", "add", "mul", "max", "min")
_JOIN: dict[str, Callable[[Any, Any], Tensor]] = {
    "add": binary.FUNCTIONS["add"],
    "mul": binary.FUNCTIONS["mul"],
    "max": binary.FUNCTIONS["maximum"],
    "min": binary.FUNCTIONS["minimum"],
}


class _AtPlaces(Rule):
    """An operation at places, which it keeps beside what backward needs, to be computed again."""

    keeps = constants = ("places",)
    places: Tensor

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        """Saves the places."""
        self.save(self.places)


class Total(_AtPlaces):
    """The sums of the rows at each of `size` places."""

    def __init__(self, places: Tensor, size: int) -> None:
        self.places, self.size = places, size

    def forward(self, x: Tensor) -> Tensor:
        return ops.op("gather_grad", axis=0, size=self.size)(x, self.places)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` of the place of each row."""
        return (ops.op("gather", axis=0)(dys[0], self.load(0)),)


class Scattered(_AtPlaces):
    """The rows of `x` (n, ...), where those at places are replaced by `updates` (m, ...), the last
    of several, or have them added in their order."""

    def __init__(self, places: Tensor, adds: bool) -> None:
        self.places, self.adds = places, adds

    def forward(self, x: Tensor, updates: Tensor) -> Tensor:
        return ops.op("scatter_rows", adds=self.adds)(x, self.places, updates)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy` where nothing was replaced; `dy` of the place of each update that stands there."""
        (dy,), places = dys, self.load(0)
        taken = ops.op("gather", axis=0)(dy, places) if wanted[1] else None
        if self.adds:
            return dy, taken
        rest = None
        if wanted[0]:
            none = ops.full((places.numel, *dy.shape[1:]), 0, dy)
            rest = ops.op("scatter_rows", adds=False)(dy, places, none)
        if taken is not None:
            stands = _column(_stands(places, dy.shape[0]), dy.rank)
            taken = ops.where(stands, taken, ops.full((), 0, dy))
        return rest, taken


class _Extremes(_AtPlaces):
    """The rows of `x` (n, ...), each with the largest ("max") or smallest ("min") of what stands in
    it and of the `updates` (m, ...) at its place; NaN wins. Equal ones share the gradient evenly.
    """

    keeps = ("xs", "ys", "places")

    def __init__(self, places: Tensor, how: str) -> None:
        self.places, self.how = places, how

    def forward(self, x: Tensor, updates: Tensor) -> Tensor:
        with no_grad():
            return _met(x, self.places, updates, self.how)

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        self.save(*xs, *ys, self.places)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy` by the number of extremes, for each of them."""
        x, updates, y, places = (self.load(i) for i in range(4))
        take, none = ops.op("gather", axis=0), ops.full((), 0, dys[0])
        own, given = _are_extreme(x, y), _are_extreme(updates, take(y, places))
        count = ops.op("scatter_rows", adds=True)(
            ops.cast(own, int64), places, ops.cast(given, int64)
        )
        share = ops.div(dys[0], ops.cast(count, y.dtype))
        return (
            ops.where(own, share, none) if wanted[0] else None,
            ops.where(given, take(share, places), none) if wanted[1] else None,
        )


def _are_extreme(x: Tensor, most: Tensor) -> Tensor:
    """Whether elements are the extreme that was found, or NaN, which is one then."""
    same, is_nan = ops.op("binary", f="eq")(x, most), ops.op("binary", f="ne")(x, x)
    return ops.op("binary", f="or")(same, is_nan)


def replace_rows(x: Tensor, places: Tensor, updates: Tensor) -> None:
    """Writes the rows of `updates` into those of `x`, as `combined` replaces them."""
    ops.op("scatter_rows", adds=False).into([x, places, updates], [x])


def _stands(places: Tensor, size: int) -> Tensor:
    """Whether each of the places is the last one of its number, below `size`."""
    order, none = ops.arange(places.numel, places), ops.full((size,), 0, places)
    last = ops.op("scatter_rows", adds=False)(none, places, order)
    made = ops.op("binary", f="eq")(ops.op("gather", axis=0)(last, places), order)
    made.requires_grad = False
    return made


def counts(places: Tensor, size: int) -> Tensor:
    """How many of the places, of one dimension, are each of the numbers below `size`; int64."""
    none, ones = ops.full((size,), 0, places), ops.full(places.shape, 1, places)
    made = ops.op("scatter_rows", adds=True)(none, places, ones)
    made.requires_grad = False
    return made


def _column(x: Tensor, rank: int) -> Tensor:
    """A vector that broadcasts along the rows of a tensor."""
    return ops.reshape(x, (*x.shape, *(1,) * (rank - 1)))


def _joined(values: Tensor, places: Tensor, join: Callable[[Any, Any], Tensor]) -> Tensor:
    """For sorted places, the joined values from the first of the same place up to each: scans of
    1, 2, 4, ... neighbours (Hillis & Steele, 1986)."""
    count, step = places.numel, 1
    while step < count:
        same = ops.op("binary", f="eq")(places[step:], places[:-step])
        same.requires_grad = False
        later = values[step:]
        later = where(_column(same, values.rank), join(values[:-step], later), later)
        values = cat([values[:step], later])
        step *= 2
    return values


def check_reduction(op: str, x: Tensor, reduction: Any) -> None:
    """Raises unless values of a dtype can be joined that way."""
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        raise ValueError(f"{op}: got reduction {reduction!r}, want one of {known}")
    if x.dtype == bool_ and reduction in ("add", "mul"):
        raise DTypeError(f"{op}: got bools and reduction {reduction!r}, want numbers")


def combined(x: Tensor, places: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """The rows of `x`, joined with the rows of `updates` at their places, or replaced by the last
    of them.

    Args:
        x: (n, ...).
        places: (m,), int64, from 0 to n - 1.
        updates: (m, ...), of the dtype of `x`.
    """
    if not places.numel or not x.numel:
        return clone(x)
    if reduction == "none" or (reduction == "add" and x.dtype not in (float16, bfloat16)):
        return Scattered(places, reduction == "add")(x, updates)[0]
    if reduction == "add":  # whose sums are in float32
        return x + Total(places, x.shape[0])(updates)[0]
    if reduction == "mul":
        return _met(x, places, updates, reduction)
    return _Extremes(places, reduction)(x, updates)[0]


def _met(x: Tensor, places: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """The rows of `x`, joined with the rows of `updates` at their places one after another."""
    found = counts(places, x.shape[0])
    some = _column(ops.scalar_op("gt", 0)(found), x.rank)
    ends = ops.op("scan", f="sum", axis=0, exclusive=False, reverse=False)(found)
    last = ops.op("binary_scalar", f="maximum", scalar=0, reverse=False)(
        ops.scalar_op("sub", 1)(ends)
    )
    sort = ops.op("sort", axis=0, descending=False, count=None)
    ordered, order = sort(places)
    for one in (some, last, ordered, order):
        one.requires_grad = False
    joined = gather(_joined(gather(updates, 0, order), ordered, _JOIN[reduction]), 0, last)
    return where(some, _JOIN[reduction](x, joined), x)

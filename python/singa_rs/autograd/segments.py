"""Values that meet at the same places: added, multiplied, compared, or the last of them. All are
operations of the engine, whatever the dtype, and in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core import DTypeError, bfloat16, bool_, float16, float32, int64, uint8
from ..tensor import Tensor
from . import ops
from .casting import cast
from .ops import Grads, Tensors
from .rule import Rule

#: How values that meet at a place are joined, by ONNX's names.
REDUCTIONS = ("none", "add", "mul", "max", "min")
#: The dtypes in which values are joined whose own the engine only replaces.
_WIDE = {float16: float32, bfloat16: float32, bool_: uint8}


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
    """`x`, where the elements at places along an axis are replaced by `updates`, the last of
    several, or have them added in their order.

    Args:
        places: the shape of the updates, which along other axes than this one have no more elements
            than `x`; or of one dimension: those of slices.
        axis: the axis that the places are in.
        how: "none" or "add".
    """

    def __init__(self, places: Tensor, axis: int, how: str) -> None:
        self.places, self.axis, self.how = places, axis, how

    def forward(self, x: Tensor, updates: Tensor) -> Tensor:
        return _scatter(self.how, x, self.places, updates, self.axis)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy` where nothing was replaced; `dy` of the place of each update that stands there."""
        (dy,), places = dys, self.load(0)
        taken = _taken(dy, places, self.axis) if wanted[1] else None
        if self.how == "add":
            return dy, taken
        rest, none = None, ops.full((), 0, dy)
        if wanted[0]:
            shape = list(dy.shape)
            shape[self.axis] = places.numel
            shape = places.shape if places.rank == dy.rank else shape
            rest = _scatter("none", dy, places, none.view_expand(shape), self.axis)
        if taken is not None:
            stands = _stands(places, dy.shape[self.axis], self.axis)
            if places.rank < dy.rank:
                stands = ops.reshape(stands, _along(places.numel, self.axis, dy.rank))
            taken = ops.where(stands, taken, none)
        return rest, taken


class _Untouched(Rule):
    """A copy of `x`, none of whose elements meets an update: the gradient of these is zero, so that
    a parameter among them takes part in the step."""

    shape: tuple[int, ...]

    def forward(self, x: Tensor, updates: Tensor) -> Tensor:
        self.shape = updates.shape
        return ops.copy(x)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy`, and zeros."""
        return dys[0], ops.full(self.shape, 0, dys[0]) if wanted[1] else None


class _Extremes(Scattered):
    """The same, with the largest ("max") or smallest ("min") of what stands in each place and of
    the updates there; NaN wins. Equal ones share the gradient evenly."""

    keeps = ("xs", "ys", "places")

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        self.save(*xs, *ys, self.places)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy` by the number of extremes, for each of them."""
        x, updates, y, places = (self.load(i) for i in range(4))
        none = ops.full((), 0, dys[0])
        own, given = _are_extreme(x, y), _are_extreme(updates, _taken(y, places, self.axis))
        counted = [ops.cast(one, int64) for one in (own, given)]
        count = _scatter("add", counted[0], places, counted[1], self.axis)
        share = ops.div(dys[0], ops.cast(count, y.dtype))
        return (
            ops.where(own, share, none) if wanted[0] else None,
            ops.where(given, _taken(share, places, self.axis), none) if wanted[1] else None,
        )


class _Products(Scattered):
    """The same, with the product of what stands in each place and of the updates there."""

    keeps = ("xs", "places")

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        self.save(*xs, self.places)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """`dy` by the product of the other factors: that of all, with 1 in the place of zeros, by
        the own one, where no other is 0. Of one other, what leads to it stays in the second
        derivative."""
        x, updates, places = (self.load(i) for i in range(3))
        own, given = _Factors.of(x), _Factors.of(updates)
        met = [
            _scatter(how, a, places, b, self.axis)
            for how, a, b in zip(("mul", "add", "add"), own, given, strict=True)
        ]
        met[0] = ops.mul(dys[0], met[0])
        taken = (_taken(one, places, self.axis) for one in met)
        return (
            own.slope(*met) if wanted[0] else None,
            given.slope(*taken) if wanted[1] else None,
        )


class _Factors(NamedTuple):
    """Factors with 1 added to zeros, these zeros, and how many each of them is, int64."""

    whole: Tensor
    zeros: Tensor
    count: Tensor

    @classmethod
    def of(cls, x: Tensor) -> _Factors:
        """Those of a tensor."""
        is_zero, none = ops.scalar_op("eq", 0)(x), ops.full((), 0, x)
        whole = ops.where(is_zero, ops.scalar_op("add", 1)(x), x)
        return cls(whole, ops.where(is_zero, x, none), ops.cast(is_zero, int64))

    def slope(self, product: Tensor, zeros: Tensor, count: Tensor) -> Tensor:
        """The product by each of them, from all products, zeros and counts."""
        others, none = ops.sub(count, self.count), ops.full((), 0, product)
        product = ops.div(product, self.whole)
        alone, led = (ops.scalar_op("eq", n)(others) for n in (0, 1))
        rest = ops.where(led, ops.mul(product, ops.sub(zeros, self.zeros)), none)
        return ops.where(alone, product, rest)


def scatter_rule(places: Tensor, axis: int, how: str) -> Scattered:
    """The rule of updates that meet elements at places, as `Scattered`; of all reductions."""
    rules = {"mul": _Products, "max": _Extremes, "min": _Extremes}
    return rules.get(how, Scattered)(places, axis, how)


def _are_extreme(x: Tensor, most: Tensor) -> Tensor:
    """Whether elements are the extreme that was found, or NaN, which is one then."""
    same, is_nan = ops.op("binary", f="eq")(x, most), ops.op("binary", f="ne")(x, x)
    return ops.op("binary", f="or")(same, is_nan)


def _along(count: int, axis: int, rank: int) -> tuple[int, ...]:
    """The shape of a vector along an axis."""
    return (*(1,) * axis, count, *(1,) * (rank - axis - 1))


def _spread(places: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Places of the shape of the updates, those of slices as a view."""
    if places.rank == updates.rank:
        return places
    return ops.reshape(places, _along(places.numel, axis, updates.rank)).view_expand(updates.shape)


def _scatter(how: str, x: Tensor, places: Tensor, updates: Tensor, axis: int) -> Tensor:
    return ops.op("scatter", axis=axis, join=how)(x, _spread(places, updates, axis), updates)


def _taken(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """What stands at the places."""
    if places.rank < x.rank:
        return ops.op("gather", axis=axis)(x, places)
    sizes = (x.shape[i] if i == axis else n for i, n in enumerate(places.shape))
    return ops.op("gather_elements", axis=axis)(
        x.view_slice(tuple((0, n, 1) for n in sizes)), places
    )


def replace_rows(x: Tensor, places: Tensor, updates: Tensor) -> None:
    """Writes the rows of `updates` into those of `x`, as `combined` replaces them."""
    places = _spread(places, updates, 0)
    ops.op("scatter", axis=0, join="none").into([x, places, updates], [x])


def _stands(places: Tensor, size: int, axis: int) -> Tensor:
    """Whether each of the places is the last one of its number, below `size`, along an axis; of
    slices, the only one."""
    axis = axis if places.rank > 1 else 0
    shape, count = places.shape, places.shape[axis]
    order = ops.reshape(ops.arange(count, places), _along(count, axis, places.rank))
    order = order.view_expand(shape)
    none = ops.full((*shape[:axis], size, *shape[axis + 1 :]), 0, places)
    last = _taken(_scatter("none", none, places, order, axis), places, axis)
    made = ops.op("binary", f="eq")(last, order)
    made.requires_grad = False
    return made


def counts(places: Tensor, size: int) -> Tensor:
    """How many of the places, of one dimension, are each of the numbers below `size`; int64."""
    return hits(places, (size,), 0)


def hits(places: Tensor, shape: Sequence[int], axis: int) -> Tensor:
    """How often each element of a tensor is at one of the places along an axis; int64."""
    none, one = ops.full(tuple(shape), 0, places), ops.full((), 1, places)
    made = _scatter("add", none, places, one.view_expand(places.shape), axis)
    made.requires_grad = False
    return made


def check_reduction(op: str, x: Tensor, reduction: Any) -> None:
    """Raises unless values of a dtype can be joined that way."""
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        raise ValueError(f"{op}: got reduction {reduction!r}, want one of {known}")
    if x.dtype == bool_ and reduction in ("add", "mul"):
        raise DTypeError(f"{op}: got bools and reduction {reduction!r}, want numbers")


def combined(x: Tensor, places: Tensor, updates: Tensor, reduction: str, axis: int = 0) -> Tensor:
    """`x`, with the elements at places along an axis joined with `updates`, or replaced by the last
    of them; sums and products of 16-bit floats are rounded once.

    Args:
        x: any shape but ().
        places: int64, within the axis, as in `Scattered`.
        updates: of the dtype of `x`.
    """
    if not places.numel or not x.numel:
        return _Untouched()(x, updates)[0]
    wide = _WIDE.get(x.dtype, x.dtype) if reduction != "none" else x.dtype
    made = scatter_rule(places, axis, reduction)(cast(x, wide), cast(updates, wide))[0]
    return cast(made, x.dtype)

"""Sorting along an axis, and the greatest or least elements."""

from __future__ import annotations

from typing import Any

from ..refusals import flag
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import ops
from .reduce import as_axes
from .results import ValuesIndices
from .rule import Rule
from .scan import flattened, of_scalars
from .table import public


class Sort(Rule):
    """The elements along an axis in order, and where each stood."""

    tag = "sort"
    count: int | None = None
    keeps = constants = ("places",)

    def __init__(self, axis: int = -1, descending: bool = False) -> None:
        self.axis = whole(axis, f"{self.tag}: axis")
        self.descending = flag(descending, f"{self.tag}: descending")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        (self.along,) = as_axes(self.axis, x.rank, self.tag)
        if self.count is not None and self.count > x.shape[self.along]:
            got = f"k {self.count} for an axis of {x.shape[self.along]}"
            raise ValueError(f"{self.tag}: got {got}, want no more than there are")
        sort = ops.op("sort", axis=self.along, descending=self.descending, count=self.count)
        values, self.places = sort(x)
        self.places.requires_grad = False
        self.size = x.shape[self.along]
        return values, self.places

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` of the values, back in the elements' places."""
        add = ops.op("gather_elements_grad", axis=self.along, size=self.size)
        return (add(dys[0], self.load(0)),)


class TopK(Sort):
    """The greatest or least elements along an axis in order, and where each stood (ONNX TopK)."""

    tag = "topk"

    def __init__(self, k: int, axis: int = -1, largest: bool = True) -> None:
        super().__init__(axis, largest)
        self.count = whole(k, "topk: k")
        if self.count < 0:
            raise ValueError(f"topk: got k {self.count}, want at least 0")


@public(Sort, methods="sort")
@of_scalars
def sort(
    x: Tensor, axis: int | None = -1, descending: bool = False, *, stable: bool = True
) -> ValuesIndices:
    """The elements along an axis in order, and their indices before, int64 (PyTorch sort, whose
    values are NumPy's sort).

    Equal elements keep their order. NaN counts as greater than all numbers: it is last in ascending
    order, as in NumPy, and first in descending order, as in PyTorch. `t.sort()` leaves `t` as it
    is. The gradient of each value goes to the element that it was.

    Args:
        x: any shape, any dtype.
        axis: the flattened tensor if None.
        descending: whether the greatest come first.
        stable: nothing, as equal elements always keep their order.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    x, axis = flattened(x, axis)
    return ValuesIndices(*Sort(axis, descending)(x))


@public(methods="argsort")
@of_scalars
def argsort(
    x: Tensor, axis: int | None = -1, descending: bool = False, *, stable: bool = True
) -> Tensor:
    """The indices that sort a tensor along an axis, int64 (NumPy argsort); see `sort`."""
    flat, along = flattened(x, axis)
    (along,) = as_axes(whole(along, "argsort: axis"), flat.rank, "argsort")
    places = ops.op("sort", axis=along, descending=bool(descending), count=None)(flat)[1]
    places.requires_grad = False
    return places


@public(TopK, methods="topk")
@of_scalars
def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> ValuesIndices:
    """The `k` greatest elements along an axis (the least unless `largest`), the greatest (least)
    first, and their indices, int64 (ONNX TopK, PyTorch topk).

    They are the first of `sort(x, axis, descending=largest)`: of equal ones those that come first,
    and NaN counts as greater than all numbers.

    Raises:
        ValueError: an axis that `x` does not have; `k` negative or larger than its extent.
    """
    return ValuesIndices(*TopK(k, axis, largest)(x))

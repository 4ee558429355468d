"""Running sums and products along an axis."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..refusals import flag
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import ops
from .reduce import as_axes, is_first
from .rule import Rule
from .shape import plain_reshape
from .table import public

Function = TypeVar("Function", bound=Callable[..., Any])


class CumSum(Rule):
    """The sum of all elements up to each one along an axis (ONNX CumSum)."""

    f = "sum"

    def __init__(self, axis: int, exclusive: bool = False, reverse: bool = False) -> None:
        op = f"cum{self.f}"
        self.axis, self.exclusive = whole(axis, f"{op}: axis"), flag(exclusive, f"{op}: exclusive")
        self.reverse = flag(reverse, f"{op}: reverse")

    def forward(self, x: Tensor) -> Tensor:
        (self.along,) = as_axes(self.axis, x.rank, f"cum{self.f}")
        return self.scan(self.f, x)

    def scan(self, f: str, x: Tensor, back: bool = False) -> Tensor:
        """The scan `f` in the direction of this one, or against it if `back`."""
        reverse = self.reverse != back
        return ops.op("scan", f=f, axis=self.along, exclusive=self.exclusive, reverse=reverse)(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The sum of `dy` in the other direction."""
        return (self.scan("sum", dys[0], back=True),)


class CumProd(CumSum):
    """The product of all elements up to each one along an axis (ONNX CumProd)."""

    f = "prod"
    keeps = ("xs",)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The product before each element, times the sum over what follows of `dy` and the product
        up to there, as no quotient has it beside zeros, infinities and NaN."""
        before = ops.op("scan", f="prod", axis=self.along, exclusive=True, reverse=self.reverse)
        x, dy = self.load(0), dys[0]
        if not x.numel:
            return (dy,)
        sums = self._sums(self._forwards(x), self._forwards(dy))
        return (ops.mul(before(x), self._forwards(sums)),)

    def _sums(self, x: Tensor, dy: Tensor) -> Tensor:
        """For each place k, the sum over i >= k of `dy` at i times the elements from k + 1 to i (of
        exclusive products, over i > k, to i - 1): over 1, 2, 4, ... places, each of two before."""
        axis, count = self.along, x.shape[self.along]
        sums, factors, span = dy, ops.part(x, axis, 1, count), 1
        if self.exclusive:
            last = ops.part(dy, axis, 0, 1)
            sums = ops.joined([ops.part(dy, axis, 1, count), ops.full(last.shape, 0, dy)], axis)
        while span < count:
            more = ops.mul(factors, ops.part(sums, axis, span, count))
            near = ops.part(sums, axis, 0, count - span)
            rest = ops.part(sums, axis, count - span, count)
            sums = ops.joined([ops.add(near, more), rest], axis)
            end, span = count - span, 2 * span
            far = ops.part(factors, axis, span // 2, max(end, span // 2))
            factors = ops.mul(ops.part(factors, axis, 0, max(count - span, 0)), far)
        return sums

    def _forwards(self, x: Tensor) -> Tensor:
        """The elements in the order in which they are multiplied."""
        return ops.turned(x, self.along) if self.reverse else x


def flattened(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The tensor and the axis to work along: the flattened tensor if that is None."""
    return (plain_reshape(x, (x.numel,)), 0) if axis is None else (x, axis)


def _without_axes(x: Tensor) -> Tensor:
    """A single element with the shape (); none stays as it is."""
    return plain_reshape(x, ()) if x.numel else x


def of_scalars(function: Function) -> Function:
    """A function of a tensor and, besides others, an `axis`, which takes a tensor of shape () as
    one of a single element along axis 0 or -1, and returns the shape () (PyTorch)."""
    parameters = inspect.signature(function).parameters
    place, default = list(parameters).index("axis") - 1, parameters["axis"].default

    @wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, Tensor) or x.rank:
            return function(x, *args, **kwargs)
        axis = args[place] if len(args) > place else kwargs.get("axis", default)
        if not is_first(axis):
            return function(x, *args, **kwargs)
        made = function(plain_reshape(x, (1,)), *args, **kwargs)  # which has these axes, too
        if isinstance(made, Tensor):
            return _without_axes(made)
        return type(made)(*map(_without_axes, made))

    return call  # type: ignore[return-value]


@public(CumSum, methods="cumsum", precision="wide")
@of_scalars
def cumsum(
    x: Tensor, axis: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """The sum of all elements up to each one along an axis (NumPy cumsum, ONNX CumSum).

    Sums are in float64, and rounded to the dtype of `x`; those of integers and bool are int64, and
    wrap.

    Args:
        x: any shape.
        axis: the flattened tensor if None.
        exclusive: whether the element itself is left out, so that the first sum is 0.
        reverse: whether sums begin at the end of the axis.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    x, axis = flattened(x, axis)
    return CumSum(axis, exclusive, reverse)(x)[0]


@public(CumProd, methods="cumprod", precision="wide")
@of_scalars
def cumprod(
    x: Tensor, axis: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """The product of all elements up to each one along an axis (NumPy cumprod, ONNX CumProd).

    Arguments, dtypes and errors are as in `cumsum`; the first exclusive product is 1.
    """
    x, axis = flattened(x, axis)
    return CumProd(axis, exclusive, reverse)(x)[0]

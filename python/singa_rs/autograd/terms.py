"""What losses share: operands of one shape and dtype, and the ways to reduce their terms."""

from __future__ import annotations

import math
from typing import Any

from .._core import DType, ShapeError, float32
from ..shown import misgiven
from ..tensor import Tensor, as_tensor
from . import ops
from .casting import cast, convert, floating
from .reduce import reduce_mean, reduce_sum
from .rule import Rule
from .shape import reshape

#: How the terms of a loss become its value.
REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name: str, reduction: Any, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """Raises ValueError unless the reduction is one of those allowed."""
    if not isinstance(reduction, str) or reduction not in allowed:
        raise ValueError(f"{name}: got reduction {reduction!r}, want one of {', '.join(allowed)}")


def wide(x: Tensor) -> Tensor:
    """`x` in the float dtype in which a loss is computed: float32 where its own is shorter."""
    x = floating(x)
    return x if x.dtype.itemsize > 2 else cast(x, float32)


def result_dtype(x: Tensor) -> DType:
    """The dtype of a loss of `x`: its own, or float32 for integers."""
    return x.dtype if x.dtype.is_float else float32


def like(name: str, value: Any, x: Tensor) -> Tensor:
    """A tensor, array or list as a tensor of the dtype of `x`, on its device."""
    if isinstance(value, Tensor):
        return convert(value, x.dtype)
    try:
        return as_tensor(value, x.device, x.dtype)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def share(count: int) -> float:
    """What each of so many terms is multiplied by for their mean; that of none is NaN."""
    return 1 / count if count else math.nan


class _Raised(Rule):
    """`x`, at least `least`, with the gradient of `x` itself."""

    def __init__(self, least: float) -> None:
        self.least = least

    def forward(self, x: Tensor) -> Tensor:
        return ops.scalar_op("maximum", self.least)(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy`, also where `x` was raised."""
        return (dys[0],)


def raised(x: Tensor, least: float) -> Tensor:
    """`x` with `least` in the place of what is smaller, where it gets a gradient all the same, as
    in PyTorch's losses."""
    return _Raised(least)(x)[0]


def alike(name: str, x: Any, t: Any) -> tuple[Tensor, Tensor]:
    """Predictions and a target of the same shape, in the dtype in which a loss is computed.

    Raises:
        ShapeError: different shapes.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
    made = wide(x)
    t = like(name, t, made)
    if t.shape != x.shape:
        raise ShapeError(f"{name}: got shapes {x.shape}, {t.shape}, want equal")
    return made, t


def reduced(
    terms: Tensor, reduction: str, dtype: DType, total: Tensor | int | None = None
) -> Tensor:
    """The terms themselves ("none"), or their sum or mean, of shape (1,), in `dtype`. The mean of
    no terms is NaN, as in NumPy and PyTorch.

    Args:
        total: what the sum is divided by for the mean, the number of terms by default.
    """
    if reduction == "none":
        return cast(terms, dtype)
    if reduction == "mean" and total is None:
        made = reduce_mean(terms, None, 0)
    else:
        made = reduce_sum(terms, None, 0)
        made = made if reduction == "sum" else made / total
    return cast(reshape(made, (1,)), dtype)

"""The largest and the least elements along an axis, and their indices, as PyTorch's `max` and `min`
with `dim` give them; without it these are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import called
from ..refusals import strict_flag
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import reduce
from .along import take_along_axis
from .reduce import Axes, as_axes, is_first
from .results import ValuesIndices
from .shape import plain_reshape, squeeze
from .table import as_method

#: By name, what gives the indices.
_FIND = {"max": reduce.argmax, "min": reduce.argmin}


def with_indices(op: str, x: Tensor, axis: Any, keepdims: Any, dim: Any, keepdim: Any) -> Any:
    """What the function `op` ("max" or "min") gives for PyTorch's arguments besides NumPy's: the
    extremes along `dim`, and the index of the first of equal ones, to which the gradient goes.

    Raises:
        TypeError: arguments of both kinds, or `keepdim` alone.
        ValueError: an axis that `x` does not have.
    """
    if dim is None:
        raise TypeError(f"{op}: got keepdim without dim, want keepdims for the values alone")
    if axis is not None or keepdims:
        own = "keepdims" if axis is None else "axis"
        raise TypeError(f"{op}: got both {own} and dim, want dim and keepdim, or axis and keepdims")
    keeps = strict_flag(keepdim, f"{op}: keepdim")
    if not x.rank and is_first(dim):
        x, keeps = plain_reshape(x, (1,)), False
    (along,) = as_axes(whole(dim, f"{op}: dim"), x.rank, op)
    indices = _FIND[op](x, along, True)
    found = take_along_axis(x, indices, along), indices
    return ValuesIndices(*(found if keeps else (squeeze(one, along) for one in found)))


def _method(op: str, over: Callable[..., Tensor]) -> None:
    """Enters the method of an extreme."""

    def reduced(
        self: Tensor,
        axis: Axes = None,
        keepdims: bool = False,
        *,
        dim: int | None = None,
        keepdim: bool = False,
    ) -> Any:
        if dim is None and not keepdim:
            return over(self, axis, keepdims)
        return with_indices(op, self, axis, keepdims, dim, keepdim)

    doc = f"""{over.__doc__}
    With `dim` the values along that axis, and their indices, int64 (PyTorch {op}): the gradient
    goes to the first of equal ones alone."""
    as_method(op)(called(reduced, op, doc))


_method("max", reduce.reduce_max)
_method("min", reduce.reduce_min)

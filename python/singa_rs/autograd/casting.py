"""Conversion between element types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import float32
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_operand, device_of
from ..tensor.dtypes import promote, with_scalar
from ..tensor.numbers import as_number
from . import ops
from .rule import Rule
from .table import public


class Cast(Rule):
    """The same values in another dtype (ONNX Cast); floats truncate into integers."""

    f = "cast"

    def __init__(self, to: Any) -> None:
        self.to = _core.dtype(to)

    def forward(self, x: Tensor) -> Tensor:
        self.source = x.dtype
        self.differentiable = self.source.is_float and self.to.is_float
        return ops.op(self.f, dtype=self.to.name)(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor | None]:
        """The gradient in the input's dtype."""
        return (ops.cast(dys[0], self.source),)


@public(Cast)
def cast(x: Tensor, to: Any) -> Tensor:
    """`x` in dtype `to` (ONNX Cast); `x` itself if it already has it."""
    to = _core.dtype(to)
    return x if x.dtype == to else Cast(to)(x)[0]


def floating(x: Tensor) -> Tensor:
    """`x` itself if it is of floats, else in float32."""
    return x if x.dtype.is_float else Cast(float32)(x)[0]


class Convert(Cast):
    """The same values in another dtype, which must be able to hold them; floats may round."""

    f = "convert"


def convert(x: Tensor, to: Any) -> Tensor:
    """`x` in dtype `to`; `x` itself if it already has it.

    Raises:
        DTypeError: a value that `to` cannot hold.
    """
    to = _core.dtype(to)
    return x if x.dtype == to else Convert(to)(x)[0]


def with_numbers(op: str, xs: Sequence[Any]) -> tuple[Any, ...]:
    """Operands in which numbers beside tensors are tensors of the dtype that arithmetic takes them
    in, which they do not widen; bools are left as they are.

    Raises:
        ValueError: an int that the integer type cannot hold.
    """
    dtypes = [x.dtype for x in xs if isinstance(x, Tensor)]
    if not dtypes or len(dtypes) == len(xs):
        return tuple(xs)
    have, to = functools.reduce(promote, dtypes), device_of(xs)

    def made(x: Any) -> Any:
        value = None if isinstance(x, (Tensor, bool, np.bool_)) else as_number(x)
        return x if value is None else as_tensor(value, to, with_scalar(op, have, value))

    return tuple(map(made, xs))


def promoted(xs: Sequence[Any], counts: bool = True) -> tuple[Tensor, ...]:
    """The tensors (or arrays) in the dtype that arithmetic on all of them computes in; bools stay
    bools where they are not counted."""
    dtypes = [x.dtype for x in xs if isinstance(x, Tensor)]
    to = device_of(xs)
    made = tuple(as_operand(x, dtypes, to) for x in xs)
    if not made:
        return made
    want = made[0].dtype
    for x in made[1:]:
        want = want if x.dtype == want and not counts else promote(want, x.dtype)
    return tuple(cast(x, want) for x in made)

"""Arithmetic and comparisons of a tensor with a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import bfloat16, bool_, float16, float32, float64, int64
from ..tensor import Tensor
from ..tensor.dtypes import fits, with_scalar
from . import ops
from .casting import cast
from .mode import mode
from .rule import Rule
from .tape import record

#: The greatest numbers of the shorter floats.
_MOST = {float16: 65504.0, **dict.fromkeys((bfloat16, float32), float(np.finfo(np.float32).max))}
_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor")


class WithNumber(Rule):
    """`f(a, number)`, or `f(number, a)` where `reverse`."""

    def __init__(self, f: str, number: float, reverse: bool) -> None:
        self.f, self.number, self.reverse = f, number, reverse
        self.differentiable = f not in _COMPARE and f != "floor_divide"

    def forward(self, a: Tensor) -> Tensor:
        return ops.scalar_op(self.f, self.number, self.reverse)(a)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        if self.f in ("pow", "maximum", "minimum") or (self.f in _REVERSED and self.reverse):
            self.save(xs[0], ys[0])

    def origins(self) -> tuple[str, ...]:
        """The tensor and the output."""
        return ("x0", "y0") if self.saved else ()

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The gradient of the tensor."""
        rules = _REVERSED if self.reverse and self.f in _REVERSED else _RULES
        return (rules[self.f](self, dys[0], self.number),)


def _pow(node: WithNumber, dy: Tensor, n: float) -> Tensor:
    a = node.load(0)
    if n == 0:
        return ops.full(dy.shape, 0, dy)
    power = a if n == 2 else ops.scalar_op("pow", n - 1)(a)
    return ops.scale(dy, n) if n == 1 else ops.mul(dy, ops.scale(power, n))


def _number_to_the(node: WithNumber, dy: Tensor, n: float) -> Tensor:
    slope = ops.scale(node.load(1), math.log(n) if n > 0 else math.nan if n else -math.inf)
    if n == 0:  # as in the rule of Pow
        slope = ops.where(ops.scalar_op("ge", 0)(node.load(0)), ops.full((), 0, dy), slope)
    return ops.mul(dy, slope)


def to_divisor(node: Rule, dy: Tensor, _: float = 0) -> Tensor:
    """The gradient of b in `a / b`, of which b and the quotient are saved."""
    return ops.neg(ops.div(ops.mul(dy, node.load(1)), node.load(0)))


def _number_modulo(node: WithNumber, dy: Tensor, n: float) -> Tensor:
    whole = ops.scalar_op("floor_divide", n, True)(node.load(0))
    return ops.neg(ops.mul(dy, whole))


def _extreme(node: WithNumber, dy: Tensor, n: float) -> Tensor:
    a, lost = node.load(0), "lt" if node.f == "maximum" else "gt"
    kept = ops.where(ops.scalar_op("eq", n)(a), ops.scale(dy, 0.5), dy)
    return ops.where(ops.scalar_op(lost, n)(a), ops.full((), 0, dy), kept)


_RULES = {
    "add": lambda node, dy, n: dy,
    "sub": lambda node, dy, n: ops.neg(dy) if node.reverse else dy,
    "mul": lambda node, dy, n: ops.scale(dy, n),
    "div": lambda node, dy, n: ops.scalar_op("div", n)(dy),
    "remainder": lambda node, dy, n: dy,
    "pow": _pow,
    "maximum": _extreme,
    "minimum": _extreme,
}
_REVERSED = {"div": to_divisor, "pow": _number_to_the, "remainder": _number_modulo}


def is_beyond(number: float, dtype: Any) -> bool:
    """Whether a number is greater, or less, than all that a shorter float type has."""
    return _MOST.get(dtype, math.inf) < abs(number) < math.inf


def with_number(f: str, a: Tensor, number: float, reverse: bool) -> Tensor:
    """`f` of a tensor and a number, in the dtype that the two are computed in: float64, rounded,
    where a float tensor has no such number."""
    dtype = a.dtype
    if not dtype.is_float:
        number = _comparable(number) if f in _COMPARE else number
        dtype = _compared_in(dtype, number) if f in _COMPARE else _computed_in(f, dtype, number)
        a = cast(a, dtype)
        if f == "pow" and dtype.is_int and number < 0 and not reverse:
            raise ValueError(f"pow: got integers to the power {number}, want a power of at least 0")
    elif f in _COMPARE and is_beyond(number, dtype):
        a = cast(a, float64)
    try:
        y = ops.scalar_op(f, number, reverse)(a)
    except ValueError:
        if not is_beyond(number, a.dtype):
            raise
        return cast(with_number(f, cast(a, float64), number, reverse), dtype)
    if mode.tape:
        record(WithNumber(f, number, reverse), (a,), (y,))
    return y


def _computed_in(f: str, dtype: Any, number: float) -> Any:
    return float32 if f == "div" else with_scalar(f, dtype, number)


def _comparable(number: float) -> float:
    """A number that compares with every integer as `number` does, and that the engine can hold."""
    if isinstance(number, float) or fits(number, int64):
        return number
    return math.inf if number > 0 else -math.inf


def _compared_in(dtype: Any, number: float) -> Any:
    """The dtype in which an integer or bool tensor is compared with a number."""
    if isinstance(number, float):
        return float64
    return dtype if dtype != bool_ and fits(number, dtype) else int64

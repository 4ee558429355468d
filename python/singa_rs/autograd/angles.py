"""Angles of points, scaling by powers of two, bounds that are tensors, signed infinities."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._core import float64
from ..tensor import Tensor
from ..tensor.dtypes import fits
from ..tensor.numbers import as_number
from . import binary, ops
from .casting import cast
from .finite import flags_of
from .ops import unary
from .pairs import as_operands, float_operands
from .precision import rounded_once
from .rule import KeepsShape, Rule
from .shape import clone
from .table import FUNCTIONS, public

#: `2**n`.
_POWER = ops.scalar_op("pow", 2, True)


def _is_negative(x: Tensor) -> Tensor:
    """Whether a number is below 0, or -0.0, whose reciprocal is."""
    below = ops.scalar_op("lt", 0)
    return ops.op("binary", f="or")(below(x), below(ops.scalar_op("div", 1, True)(x)))


class Atan2(Rule):
    """The angle of the point (x, y) against the x axis, from -pi to pi; that of (0, 0) and of the
    corners of infinity follows from the signs."""

    keeps = ("xs",)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        up, across = unary("abs", y), unary("abs", x)
        same = ops.op("binary", f="eq")(up, across)
        angle = unary("atan", ops.where(same, unary("sign", up), ops.div(up, across)))
        angle = ops.where(_is_negative(x), ops.scalar_op("sub", math.pi, True)(angle), angle)
        return ops.where(_is_negative(y), ops.neg(angle), angle)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy x / (x**2 + y**2)` and `-dy y / (x**2 + y**2)`, 0 for (0, 0) and for an infinite
        operand beside a finite one."""
        y, x = self.load(0), self.load(1)
        most = ops.op("binary", f="maximum")(unary("abs", y), unary("abs", x))
        one = ops.full((), 1, most)
        has_unit = ops.op("binary", f="ne")(most, ops.scale(most, 2))  # neither 0 nor infinite
        most = ops.where(has_unit, most, one)
        y_unit, x_unit = ops.div(y, most), ops.div(x, most)
        squares = ops.add(unary("square", y_unit), unary("square", x_unit))
        squares = ops.where(ops.scalar_op("eq", 0)(squares), one, squares)
        share = ops.div(ops.div(dys[0], most), squares)
        return (
            ops.reduce_to(ops.mul(share, x_unit), y.shape),
            ops.reduce_to(ops.neg(ops.mul(share, y_unit)), x.shape),
        )


@public(Atan2, methods="atan2")
@rounded_once
def atan2(y: Tensor, x: Any) -> Tensor:
    """The angle of the points (x, y) against the x axis, from -pi to pi, with the signs of zeros
    (NumPy arctan2, PyTorch atan2); integers become float32. The gradient at (0, 0) is 0."""
    return Atan2()(*float_operands("atan2", y, x))[0]


def _binding(bound: Any, x: Tensor, side: int) -> Any:
    """A bound, or None for an int that all integers of the dtype of `x` are within."""
    value = None if isinstance(bound, Tensor) else as_number(bound)
    if not isinstance(value, int) or not x.dtype.is_int or fits(value, x.dtype):
        return bound
    return None if value * side > 0 else bound


@public(methods="clamp")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`x` within bounds that are numbers, or tensors that broadcast (PyTorch clamp, NumPy clip); a
    bound that is None does not bind, nor does one beyond the integers that `x` can hold. Where `x`
    equals a tensor, both share the gradient.

    Raises:
        ShapeError: shapes that do not broadcast.
        ValueError: an int that the integer type of `x` cannot hold, but that binds.
    """
    if not isinstance(min, Tensor) and not isinstance(max, Tensor) and x.dtype.is_float:
        return FUNCTIONS["clip"](x, min, max)
    min, max = _binding(min, x, -1), _binding(max, x, 1)
    given = [one for one in (min, max) if one is not None]
    made, *bounds = as_operands("clamp", x, *given)
    if min is not None:
        made = binary.FUNCTIONS["maximum"](made, bounds[0])
    if max is not None:
        made = binary.FUNCTIONS["minimum"](made, bounds[-1])
    return clone(made) if not given else made


class _Scaled(KeepsShape):
    """`x * 2**n`, rounded once, as is its gradient; `n` gets none."""

    keeps = constants = ("n",)

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        self.n = n
        return _scaled(x, n)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, None]:
        """`dy * 2**n`."""
        return ops.reduce_to(_scaled(dys[0], self.load(0)), self.shape), None


class _Powered(KeepsShape):
    """The same where `n` has a gradient."""

    keeps = ("x1", "y0")

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        return _scaled(x, n)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, Tensor]:
        """`dy * 2**n` and `dy * x * 2**n * log(2)`."""
        n, slope = self.load(0), ops.scale(self.load(1), math.log(2))
        dx = ops.reduce_to(_scaled(dys[0], n), self.shape)
        return dx, ops.reduce_to(ops.mul(dys[0], slope), n.shape)


def _scaled(x: Tensor, n: Tensor) -> Tensor:
    """By three factors that the dtype holds, the rest first: what a product before the last one
    rounds is 0 in the end, as the least factor follows."""
    limits = np.finfo(np.float64 if n.dtype == float64 else np.float32)
    bounds = (("min", float(limits.minexp)), ("max", float(limits.maxexp - 1)))
    within = ops.unary_op("unary", "clip", bounds)
    last = within(n)
    rest = ops.sub(n, last)
    second = within(rest)
    parts = (within(ops.sub(rest, second)), second, last)
    return functools.reduce(ops.mul, map(_POWER, parts), x)


@public(methods="ldexp")
@rounded_once
def ldexp(x: Tensor, n: Any) -> Tensor:
    """`x * 2**n` (NumPy ldexp, PyTorch ldexp), also where the dtype does not hold `2**n` alone;
    integers become float32.

    Args:
        x: any shape.
        n: whole numbers, or others of a float dtype; shapes broadcast.
    """
    x, n = float_operands("ldexp", x, n)
    return (_Powered if n.requires_grad else _Scaled)()(x, n)[0]


@public(methods="float_power")
def float_power(x: Tensor, exponent: Any) -> Tensor:
    """`x ** exponent` in float64 (NumPy float_power, PyTorch float_power)."""
    return cast(x, float64) ** (
        cast(exponent, float64) if isinstance(exponent, Tensor) else exponent
    )


@public(methods="isposinf")
def isposinf(x: Tensor) -> Tensor:
    """Whether each element is infinity, bool (NumPy isposinf)."""
    return flags_of(x, ops.scalar_op("eq", math.inf), False)


@public(methods="isneginf")
def isneginf(x: Tensor) -> Tensor:
    """Whether each element is minus infinity, bool (NumPy isneginf)."""
    return flags_of(x, ops.scalar_op("eq", -math.inf), False)

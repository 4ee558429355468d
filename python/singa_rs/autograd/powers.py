"""More functions element by element: roots, angles, parts of numbers. Recordings fuse what they are
made of."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from ..tensor.numbers import within
from . import ops
from .casting import floating
from .index import where
from .ops import unary
from .precision import rounded_once
from .rule import Rule, function
from .table import public
from .unary import FUNCTIONS as UNARY


def _scalar(f: str, number: float, x: Tensor) -> Tensor:
    return ops.scalar_op(f, number)(x)


class Cbrt(Rule):
    """Cube roots, of negative numbers, too (NumPy cbrt); integers become float32."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> Tensor:
        size = unary("abs", x)
        root = _scalar("pow", 1 / 3, size)
        # A step of Newton's method makes up for the rounding of 1 / 3.
        error = ops.sub(root, ops.div(size, ops.mul(root, root)))
        better = ops.sub(root, _scalar("mul", 1 / 3, error))
        plain = ops.op("binary", f="or")(_scalar("eq", 0, size), _scalar("eq", math.inf, size))
        return ops.mul(unary("sign", x), ops.where(plain, size, better))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / (3 y**2)`."""
        y = self.load(0)
        return (ops.div(ops.scale(dys[0], 1 / 3), ops.mul(y, y)),)


cbrt = function(Cbrt, "cbrt", floating, methods="cbrt", once=True)


@public(methods="rsqrt")
@rounded_once
def rsqrt(x: Tensor) -> Tensor:
    """`1 / sqrt(x)` (PyTorch rsqrt); integers become float32."""
    return UNARY["reciprocal"](UNARY["sqrt"](floating(x)))


def _near_zero(angle: Tensor) -> Tensor:
    """`sin(a) / a` for sizes up to 0.25, where the six terms of its series are exact in float64."""
    square, made = angle * angle, 1.0
    for i in range(5, 0, -1):
        made = 1 - square * made / (2 * i * (2 * i + 1))
    return made


@public(methods="sinc")
@rounded_once
def sinc(x: Tensor) -> Tensor:
    """`sin(pi x) / (pi x)`, 1 at 0 (NumPy sinc); integers become float32. The gradient at 0 is
    0."""
    angle = floating(x) * math.pi
    # The gradient of the quotient would be a difference of numbers near 1 / a, or of infinities.
    is_small = abs(angle.detach()) < 0.25
    far = where(is_small, 1.0, angle)
    return where(is_small, _near_zero(where(is_small, angle, 0.0)), UNARY["sin"](far) / far)


@public(methods="deg2rad")
@rounded_once
def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians (NumPy deg2rad); integers become float32."""
    return floating(x) * (math.pi / 180)


@public(methods="rad2deg")
@rounded_once
def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees (NumPy rad2deg); integers become float32."""
    return floating(x) * (180 / math.pi)


@public(methods="trunc")
def trunc(x: Tensor) -> Tensor:
    """Rounds towards zero (NumPy trunc); the gradient is 0."""
    return where(x.detach() < 0, UNARY["ceil"](x), UNARY["floor"](x))


@public(methods="frac")
def frac(x: Tensor) -> Tensor:
    """`x - trunc(x)`, the part behind the point, with the sign of `x` (PyTorch frac)."""
    return x - trunc(x.detach())


@public(methods="signbit")
def signbit(x: Tensor) -> Tensor:
    """Whether the sign is negative, of -0.0, too; bool (NumPy signbit). It is not of NaN."""
    x = x.detach()
    made = x < 0
    if x.dtype.is_float:
        made = made | ((x == 0) & (1.0 / x < 0))
    made.requires_grad = False
    return made


@public(methods="logit")
@rounded_once
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`, the inverse of sigmoid (PyTorch logit); integers become float32. With
    `eps`, of `x` clipped to [eps, 1 - eps].

    Raises:
        ValueError: an `eps` that is not from 0 to 0.5.
    """
    x = floating(x)
    if eps is not None:
        low = within(eps, "logit: eps", 0, 0.5)
        x = x.clip(low, 1 - low)
    return UNARY["log"](x) - UNARY["log1p"](-x)


@public(methods="logical_not")
def logical_not(x: Tensor) -> Tensor:
    """Whether an element is zero, bool (NumPy logical_not, ONNX Not)."""
    made = ops.op("unary", f="not")(x)
    made.requires_grad = False
    return made

"""Activations that are compositions of other functions; recordings fuse them."""

from __future__ import annotations

import math
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import real, whole, within
from . import ops
from .binary import CLASSES
from .casting import floating
from .index import where
from .ops import Tensors
from .parametrised import Clip
from .precision import rounded_once
from .reduce import as_axes, softmax
from .shape import split
from .table import public
from .unary import FUNCTIONS as UNARY


@public()
@rounded_once
def gelu_tanh(x: Tensor) -> Tensor:
    """`0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`, within 5e-4 of `gelu` (ONNX
    Gelu with approximate="tanh").

    Args:
        x: of any shape; integers become float32.
    """
    x = floating(x)
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (inner.tanh() + 1.0)


@public()
@rounded_once
def mish(x: Tensor) -> Tensor:
    """`x * tanh(softplus(x))` (Misra, 2019; ONNX Mish).

    Args:
        x: of any shape; integers become float32.
    """
    x = floating(x)
    return x * x.softplus().tanh()


class _Gated(CLASSES["Mul"]):
    """`a * b`, without a gradient of `a` where `b` is 0, be it infinite or NaN."""

    def to_a(self, dy: Tensor) -> Tensor:
        b = self.load(1)
        return ops.where(ops.scalar_op("eq", 0)(b), ops.full((), 0, dy), ops.mul(dy, b))


@public()
@rounded_once
def hardswish(x: Tensor) -> Tensor:
    """`x * max(0, min(1, x / 6 + 0.5))` (Howard et al., 2019; ONNX HardSwish).

    Args:
        x: of any shape; integers become float32.
    """
    x = floating(x)
    return _Gated()(x, x.hardsigmoid(1 / 6, 0.5))[0]


@public()
@rounded_once
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))` (Barron, 2017; ONNX Celu).

    Args:
        x: of any shape; integers become float32.
        alpha: any number but 0.
    """
    x, a = floating(x), real(alpha, "celu: alpha")
    if not a or not math.isfinite(a):
        raise ValueError(f"celu: got alpha {alpha}, want a finite number other than 0")
    is_low = x.detach() < 0
    low = UNARY["expm1"](where(is_low, x, 0.0) / a) * a
    return where(is_low, low, x)


@public()
@rounded_once
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along an axis, times the sigmoid of the second half (Dauphin et al., 2017;
    PyTorch glu).

    Args:
        x: of any shape but (); integers become float32.
        axis: an axis of even extent.

    Raises:
        ShapeError: an odd extent.
        ValueError: an axis that `x` does not have.
    """
    x = floating(x)
    (along,) = as_axes(whole(axis, "glu: axis"), x.rank, "glu")
    if x.shape[along] % 2:
        raise ShapeError(f"glu: got shape {x.shape}, want an even extent of axis {along}")
    half = x.shape[along] // 2
    a, gate = split(x, along, [half, half])
    return a * UNARY["sigmoid"](gate)


@public()
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` outside of [-lambd, lambd], else 0 (PyTorch hardshrink; ONNX Shrink with bias 0).

    Args:
        x: of any shape; integers become float32.
        lambd: from 0.
    """
    x, bound = floating(x), within(lambd, "hardshrink: lambd", 0)
    return where(abs(x.detach()) <= bound, 0.0, x)


@public()
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """`x`, moved towards 0 by `lambd`, which it does not pass (PyTorch softshrink; ONNX Shrink with
    bias equal to lambd).

    Args:
        x: of any shape; integers become float32.
        lambd: from 0.
    """
    x, bound = floating(x), within(lambd, "softshrink: lambd", 0)
    return where(abs(x.detach()) <= bound, 0.0, x - x.clip(-bound, bound))


@public()
@rounded_once
def tanhshrink(x: Tensor) -> Tensor:
    """`x - tanh(x)` (PyTorch tanhshrink); integers become float32."""
    x = floating(x)
    return x - x.tanh()


@public()
def logsigmoid(x: Tensor) -> Tensor:
    """`log(sigmoid(x))` without overflow (PyTorch logsigmoid); integers become float32."""
    return -UNARY["softplus"](-floating(x))


@public(precision="wide")
def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """`softmax(-x)` along an axis (PyTorch softmin); integers become float32."""
    return softmax(-floating(x), axis)


@public()
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """`x` where it is above a threshold, else `value` (PyTorch threshold; ONNX ThresholdedRelu
    with value 0). NaN stays NaN, which ONNX makes 0.

    Args:
        x: of any shape; integers become float32.
        threshold, value: numbers.
    """
    x, bound = floating(x), real(threshold, "threshold: threshold")
    return where(x.detach() <= bound, real(value, "threshold: value"), x)


class _Bounded(Clip):
    """As `Clip`, without a gradient at the bounds, as PyTorch's hardtanh and relu6 have none."""

    def gradients(self, dys: Tensors, wanted: Any) -> Tensors:
        """`dy` between the bounds, else 0."""
        x = self.load(0)
        is_low, is_high = ops.scalar_op("le", self.min)(x), ops.scalar_op("ge", self.max)(x)
        is_out = ops.op("binary", f="or")(is_low, is_high)
        return (ops.where(is_out, ops.full((), 0, dys[0]), dys[0]),)


@public()
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`x` within [min_val, max_val] (PyTorch hardtanh, ONNX Clip); integers become float32. The
    gradient at both bounds is 0, where that of `clip` is 1.

    Raises:
        ValueError: bounds in the wrong order.
    """
    low, high = real(min_val, "hardtanh: min_val"), real(max_val, "hardtanh: max_val")
    if not low < high:
        raise ValueError(f"hardtanh: got {min_val} to {max_val}, want a range")
    return _Bounded(low, high)(floating(x))[0]


@public()
def relu6(x: Tensor) -> Tensor:
    """`min(max(x, 0), 6)` (PyTorch relu6; Krizhevsky, 2010); integers become float32. The gradient
    at 0 and 6 is 0, as that of `relu` at 0."""
    return _Bounded(0.0, 6.0)(floating(x))[0]

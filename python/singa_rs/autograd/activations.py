"""Activations that are compositions of functions element by element; recordings fuse them."""

from __future__ import annotations

import math

from ..tensor import Tensor
from .casting import floating
from .table import public


@public()
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
def mish(x: Tensor) -> Tensor:
    """`x * tanh(softplus(x))` (Misra, 2019; ONNX Mish).

    Args:
        x: of any shape; integers become float32.
    """
    x = floating(x)
    return x * x.softplus().tanh()


@public()
def hardswish(x: Tensor) -> Tensor:
    """`x * max(0, min(1, x / 6 + 0.5))` (Howard et al., 2019; ONNX HardSwish).

    Args:
        x: of any shape; integers become float32.
    """
    x = floating(x)
    return x * x.hardsigmoid(1 / 6, 0.5)

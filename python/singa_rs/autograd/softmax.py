"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from .._core import float32
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import ops
from .casting import cast
from .tape import Rule


class SoftMax(Rule):
    """`exp(x)` divided by its sum over one axis (ONNX Softmax from opset 13)."""

    log = False

    def __init__(self, axis: int = 1) -> None:
        self.axis = whole(axis, "softmax: axis")

    def forward(self, x: Tensor) -> Tensor:
        return ops.op("softmax", axis=self.axis, log=self.log)(x)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*ys)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """Computed from `dy` and the output."""
        grad = ops.op("softmax_grad", axis=self.axis, log=self.log)
        return (grad(dys[0], self.load(0)),)


class LogSoftMax(SoftMax):
    """The logarithm of softmax, without overflow (ONNX LogSoftmax)."""

    log = True


def softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Softmax over one axis (ONNX Softmax); integers become float32."""
    return SoftMax(axis)(x if x.dtype.is_float else cast(x, float32))[0]


def log_softmax(x: Tensor, axis: int = 1) -> Tensor:
    """The logarithm of softmax over one axis (ONNX LogSoftmax); integers become float32."""
    return LogSoftMax(axis)(x if x.dtype.is_float else cast(x, float32))[0]

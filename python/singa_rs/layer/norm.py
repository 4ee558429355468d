"""Normalisation."""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import at_most, axes, count, features, float_input, number
from .parameters import parameter, state


class BatchNorm2d(Layer):
    """Batch normalisation (Ioffe and Szegedy, 2015; ONNX BatchNormalization).

    In training, each channel is normalised by the batch's mean and biased variance, and

        running = (1 - momentum) * running + momentum * batch

    with the variance times n / (n - 1); in evaluation by the running averages. So `momentum` is
    the weight of the new batch, as in SINGA and PyTorch; in ONNX it is that of the old average.
    The default is 0.1: SINGA's 0.9 keeps little more than the last batch.

    Parameters `scale` and `bias`, states `running_mean` and `running_var`, all (C,).
    """

    def __init__(self, *args: Any, momentum: float = 0.1, eps: float = 1e-5) -> None:
        """`BatchNorm2d()`, `BatchNorm2d(channels)` or `BatchNorm2d(channels, momentum)`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        at_most("BatchNorm2d", len(args), 2)
        self.channels = count(args[0], "BatchNorm2d: channels") if args else None
        momentum = args[1] if len(args) > 1 else momentum
        self.momentum = number(momentum, "BatchNorm2d: momentum", 0.0, 1.0)
        self.eps = number(eps, "BatchNorm2d: eps", 0.0)

    def initialize(self, x: Tensor) -> None:
        """Makes the parameters and the running averages."""
        float_input(x, "BatchNorm2d")
        axes(x, "BatchNorm2d", 2, 4)
        self.channels = features(x, "BatchNorm2d", 1, self.channels)
        shape = (self.channels,)
        self.scale = parameter(shape, x, "ones", "BatchNorm2d: scale")
        self.bias = parameter(shape, x, "zeros", "BatchNorm2d: bias")
        self.running_mean = state(shape, x, 0.0)
        self.running_var = state(shape, x, 1.0)
        self.handle = autograd.BatchNormHandle(self.momentum, eps=self.eps)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C) or (N, C, H, W).

        Raises:
            ShapeError: a different number of axes or channels.
        """
        axes(x, "BatchNorm2d", 2, 4)
        features(x, "BatchNorm2d", 1, self.channels)
        return autograd.batchnorm_2d(
            self.handle, x, self.scale, self.bias, self.running_mean, self.running_var
        )

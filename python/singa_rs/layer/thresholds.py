"""More activations as layers: with bounds, thresholds and slopes, gates, and over axes."""

from __future__ import annotations

from .. import autograd
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import count, float_input, number
from .parameters import parameter


class CELU(Layer):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron, 2017; PyTorch CELU)."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = number(alpha, "CELU: alpha")
        if not self.alpha:
            raise ValueError("CELU: alpha: got 0, want another number")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.celu(x, self.alpha)


class Hardtanh(Layer):
    """x within [min_val, max_val] (PyTorch Hardtanh)."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = number(min_val, "Hardtanh: min_val")
        self.max_val = number(max_val, "Hardtanh: max_val")
        if not self.min_val < self.max_val:
            raise ValueError(f"Hardtanh: got {min_val} to {max_val}, want a range")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.hardtanh(x, self.min_val, self.max_val)


class ReLU6(Layer):
    """min(max(x, 0), 6) (Krizhevsky, 2010; PyTorch ReLU6)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.relu6(x)


class Threshold(Layer):
    """x where it is above a threshold, else a value (PyTorch Threshold)."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = number(threshold, "Threshold: threshold")
        self.value = number(value, "Threshold: value")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.threshold(x, self.threshold, self.value)


class _Shrink(Layer):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = number(lambd, f"{type(self).__name__}: lambd", 0)


class Hardshrink(_Shrink):
    """x outside of [-lambd, lambd], else 0 (PyTorch Hardshrink)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.hardshrink(x, self.lambd)


class Softshrink(_Shrink):
    """x, moved towards 0 by lambd, which it does not pass (PyTorch Softshrink)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.softshrink(x, self.lambd)


class Tanhshrink(Layer):
    """x - tanh(x) (PyTorch Tanhshrink)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.tanhshrink(x)


class LogSigmoid(Layer):
    """log(sigmoid(x)) without overflow (PyTorch LogSigmoid)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.logsigmoid(x)


class _Along(Layer):
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = count(axis, f"{type(self).__name__}: axis", -64)


class GLU(_Along):
    """The first half along an axis, times the sigmoid of the second half (Dauphin et al., 2017;
    PyTorch GLU)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis, with an even extent there."""
        return autograd.glu(x, self.axis)


class LogSoftmax(_Along):
    """The logarithm of softmax along an axis, the last by default (PyTorch LogSoftmax)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.log_softmax(x, self.axis)


class Softmin(_Along):
    """Softmax of -x along an axis, the last by default (PyTorch Softmin)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.softmin(x, self.axis)


class RReLU(Layer):
    """x where it is positive, else times a slope, drawn for each element in training (Xu et al.,
    2015; PyTorch RReLU)."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower, self.upper = number(lower, "RReLU: lower"), number(upper, "RReLU: upper")
        if self.lower > self.upper:
            raise ValueError(f"RReLU: got slopes from {lower} to {upper}, want them in order")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.rrelu(x, self.lower, self.upper)


class PReLU(Layer):
    """x where it is positive, else times a slope that is learned (He et al., 2015; PyTorch PReLU).
    Parameter W, (num_parameters,)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        """`num_parameters`: 1, or a slope for each channel, axis 1. `init`: the first slope."""
        super().__init__()
        self.num_parameters = count(num_parameters, "PReLU: num_parameters")
        self.init = number(init, "PReLU: init")

    def initialize(self, x: Tensor) -> None:
        """Makes W."""
        float_input(x, "PReLU")

        def fill(t: Tensor) -> None:
            t.set_value(self.init)

        self.W = parameter((self.num_parameters,), x, fill, "PReLU: init")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape; with several slopes (N, num_parameters, ...).

        Raises:
            ShapeError: other channels.
        """
        slope = autograd.cast(self.W, x.dtype)
        if self.num_parameters > 1:
            if x.rank < 2 or x.shape[1] != self.num_parameters:
                want = f"{self.num_parameters} channels on axis 1"
                raise ShapeError(f"PReLU: got shape {x.shape}, want {want}")
            slope = autograd.reshape(slope, (-1, *(1,) * (x.rank - 2)))
        elif not x.rank:
            slope = autograd.reshape(slope, ())
        return autograd.prelu(x, slope)


class Softmax2d(Layer):
    """Softmax over the channels of images (PyTorch Softmax2d)."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W).

        Raises:
            ShapeError: a different number of axes.
        """
        if x.rank not in (3, 4):
            raise ShapeError(f"Softmax2d: got shape {x.shape}, want (N, C, H, W) or (C, H, W)")
        return autograd.softmax(x, -3)

"""Pooling over images and sequences."""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import axes, count, float_input
from .window import Window


class Pooling2d(Layer):
    """The maximum or average of windows (ONNX MaxPool, AveragePool). Both exclude padding; elements
    beyond the last window are dropped."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        is_max: bool = True,
        pad_mode: str = "NOTSET",
    ) -> None:
        """Kernel, stride (the kernel by default) and padding as in `Conv2d`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        stride = kernel_size if stride is None else stride
        self.window = Window(name, kernel_size, stride, padding, 1, pad_mode)
        self.kernel_size, self.stride = self.window.kernel, self.window.stride
        self.is_max = bool(is_max)

    def initialize(self, x: Tensor) -> None:
        """Makes `handle`."""
        float_input(x, type(self).__name__)
        axes(x, type(self).__name__, 4)
        self.handle = self._handle(x.shape)

    def _handle(self, shape: tuple[int, ...]) -> autograd.PoolingHandle:
        pads = self.window.padding(shape)
        return autograd.PoolingHandle(self.kernel_size, self.stride, pads, self.is_max)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H', W').

        Raises:
            ShapeError: a different number of axes, or an image smaller than the window.
        """
        axes(x, type(self).__name__, 4)
        if self.window.pad_mode != "NOTSET":
            self.handle = self._handle(x.shape)
        return autograd.pooling_2d(self.handle, x)


class MaxPool2d(Pooling2d):
    """The maximum of windows."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, pad_mode: str = "NOTSET"
    ) -> None:
        """As `Pooling2d`."""
        super().__init__(kernel_size, stride, padding, True, pad_mode)


class AvgPool2d(Pooling2d):
    """The average of windows, over the elements inside the image."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, pad_mode: str = "NOTSET"
    ) -> None:
        """As `Pooling2d`."""
        super().__init__(kernel_size, stride, padding, False, pad_mode)


class _Pooling1d(Pooling2d):
    def __init__(
        self, kernel_size: int, stride: int | None, padding: int, is_max: bool, pad_mode: str
    ) -> None:
        name = type(self).__name__
        stride = kernel_size if stride is None else stride
        kernel = (1, count(kernel_size, f"{name}: kernel_size"))
        steps = (1, count(stride, f"{name}: stride"))
        super().__init__(
            kernel, steps, (0, count(padding, f"{name}: padding", 0)), is_max, pad_mode
        )

    def initialize(self, x: Tensor) -> None:
        """Makes `handle`."""
        super().initialize(_image(x, type(self).__name__))

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, L) -> (N, C, L'), or (N, C, H, L) -> (N, C, H, L')."""
        y = super().forward(_image(x, type(self).__name__))
        return autograd.squeeze(y, [2]) if len(x.shape) == 3 else y


def _image(x: Tensor, layer: str) -> Tensor:
    axes(x, layer, 3, 4)
    return autograd.unsqueeze(x, [2]) if len(x.shape) == 3 else x


class MaxPool1d(_Pooling1d):
    """The maximum of windows along the last axis."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int = 0,
        pad_mode: str = "NOTSET",
    ) -> None:
        """Kernel, stride (the kernel by default) and padding are ints."""
        super().__init__(kernel_size, stride, padding, True, pad_mode)


class AvgPool1d(_Pooling1d):
    """The average of windows along the last axis, over the elements inside."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int = 0,
        pad_mode: str = "NOTSET",
    ) -> None:
        """Kernel, stride (the kernel by default) and padding are ints."""
        super().__init__(kernel_size, stride, padding, False, pad_mode)


class GlobalAvgPool2d(Layer):
    """The average of each channel (ONNX GlobalAveragePool)."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, 1, 1)."""
        axes(x, "GlobalAvgPool2d", 4)
        return autograd.globalaveragepool(x)

"""Windows over images and sequences, and pooling."""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..errors import ShapeError
from ..tensor import Tensor
from ..tensor.keys import Settings
from .base import Layer
from .check import axes, count, float_input, one_of, padding, pair

PAD_MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER")
Padding = tuple[int, int, int, int]


class Window(Settings):
    """A checked window over the last two axes. `pad_mode` SAME_UPPER and SAME_LOWER pad so that
    the result has ceil(size / stride) elements, with odd padding after or before."""

    def __init__(
        self,
        layer: str,
        kernel_size: Any,
        stride: Any,
        pads: Any,
        dilation: Any = 1,
        pad_mode: str = "NOTSET",
    ) -> None:
        super().__init__(
            layer=layer,
            kernel=pair(kernel_size, f"{layer}: kernel_size"),
            stride=pair(stride, f"{layer}: stride"),
            dilation=pair(dilation, f"{layer}: dilation"),
            pads=padding(pads, f"{layer}: padding"),
            pad_mode=one_of(pad_mode, f"{layer}: pad_mode", PAD_MODES),
        )
        if self.pad_mode != "NOTSET" and any(self.pads):
            raise ValueError(f"{layer}: padding: got {pads!r} with pad_mode {pad_mode!r}, want 0")

    @property
    def extent(self) -> tuple[int, int]:
        """The size of the dilated window."""
        height, width = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return height, width

    def padding(self, shape: tuple[int, ...]) -> Padding:
        """(top, left, bottom, right) for an input of that shape.

        Raises:
            ShapeError: the window does not fit into the padded input.
        """
        pads = self.pads if self.pad_mode == "NOTSET" else self._same(shape[-2:])
        for axis, reach in enumerate(self.extent):
            size = shape[axis - 2] + pads[axis] + pads[axis + 2]
            if size < reach:
                raise ShapeError(
                    f"{self.layer}: got shape {shape}, {size} with padding on axis {axis - 2}, "
                    f"want at least the window's {reach}"
                )
        return pads

    def _same(self, size: tuple[int, ...]) -> Padding:
        before, after = [], []
        for n, reach, stride in zip(size, self.extent, self.stride, strict=True):
            total = max(0, (-(-n // stride) - 1) * stride + reach - n)
            small, large = total // 2, total - total // 2
            before.append(small if self.pad_mode == "SAME_UPPER" else large)
            after.append(large if self.pad_mode == "SAME_UPPER" else small)
        return (before[0], before[1], after[0], after[1])


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

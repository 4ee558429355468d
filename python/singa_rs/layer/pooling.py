"""Pooling over series, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import axes, count_or_none, exponent, flag, float_input, numbers, paddings
from .window import Window, Windowed

if TYPE_CHECKING:
    from .typed import Padding, Sizes


class _Pool(Windowed):
    #: The number of spatial axes.
    _axes: ClassVar[int]

    def _slide(
        self,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        pad_mode: str,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:
        """Keeps the window."""
        stride = kernel_size if stride is None else stride
        how = (kernel_size, stride, padding, dilation, pad_mode, self._axes, ceil_mode)
        self.window = Window(type(self).__name__, *how)
        self.kernel_size, self.stride = self.window.kernel, self.window.stride

    def _slid(self, x: Tensor) -> tuple[Any, ...]:
        """Kernel, stride and padding for an input."""
        float_input(x, type(self).__name__)
        axes(x, type(self).__name__, self._axes + 2)
        return self.kernel_size, self.stride, self.window.padding(x.shape)


class _MaxPool(_Pool):
    is_max = True

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Padding = 0,
        pad_mode: str = "NOTSET",
        *,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> None:
        """Kernel, stride (the kernel by default), padding, dilation and `pad_mode` as in `Conv2d`.
        With `ceil_mode`, windows that start inside count even where they reach beyond the padding;
        with `return_indices` the result is (maxima, indices), for the unpooling layers.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self._slide(kernel_size, stride, padding, pad_mode, dilation, ceil_mode)
        self.return_indices = flag(return_indices, f"{type(self).__name__}: return_indices")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, *spatial'), or a pair of that and the indices: checkers take
        it for one tensor, which may be unpacked just so.

        Raises:
            ShapeError: a different number of axes, or an image smaller than the window.
        """
        window = self.window
        how = (window.dilation, window.ceil_mode, self.return_indices)
        return autograd.max_pool(x, *self._slid(x), *how)


class _AvgPool(_Pool):
    is_max = False

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Padding = 0,
        pad_mode: str = "NOTSET",
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        divisor_override: int | None = None,
    ) -> None:
        """Kernel, stride (the kernel by default), padding and `pad_mode` as in `Conv2d`. With
        `ceil_mode`, windows that start inside count even where they reach beyond the padding; with
        `count_include_pad` padding counts as zeros (PyTorch's default); sums are divided by
        `divisor_override` if that is given.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self._slide(kernel_size, stride, padding, pad_mode, ceil_mode=ceil_mode)
        name = type(self).__name__
        self.count_include_pad = flag(count_include_pad, f"{name}: count_include_pad")
        self.divisor_override = count_or_none(divisor_override, f"{name}: divisor_override")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, *spatial').

        Raises:
            ShapeError: a different number of axes, or an image smaller than the window.
        """
        how = (self.window.ceil_mode, self.count_include_pad, self.divisor_override)
        return autograd.avg_pool(x, *self._slid(x), *how)


class Pooling2d(_Pool):
    """The maximum or average of windows (ONNX MaxPool, AveragePool). Both exclude padding; elements
    beyond the last window are dropped."""

    _axes = 2

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Padding = 0,
        is_max: bool = True,
        pad_mode: str = "NOTSET",
    ) -> None:
        """Kernel, stride (the kernel by default) and padding as in `Conv2d`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self._slide(kernel_size, stride, padding, pad_mode)
        self.is_max = flag(is_max, f"{type(self).__name__}: is_max")

    def initialize(self, x: Tensor) -> None:
        """Makes `handle`."""
        self._slid(x)
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
        if self.window.is_same or "handle" not in self.__dict__:
            self.handle = self._handle(x.shape)
        return autograd.pooling_2d(self.handle, x)


class MaxPool2d(_MaxPool, Pooling2d):
    """The maximum of windows."""


class AvgPool2d(_AvgPool, Pooling2d):
    """The average of windows, over the elements inside the image."""


class MaxPool3d(_MaxPool):
    """The maximum of windows of volumes."""

    _axes = 3


class AvgPool3d(_AvgPool):
    """The average of windows of volumes, over the elements inside."""

    _axes = 3


def _flat(kernel_size: Any, stride: Any, padding: Any, layer: str) -> tuple[Any, ...]:
    """A window along the last axis as one over images."""
    stride = kernel_size if stride is None else stride
    (size,), (step,) = (
        numbers(given, f"{layer}: {name}", 1)
        for given, name in ((kernel_size, "kernel_size"), (stride, "stride"))
    )
    if padding is None or isinstance(padding, str):
        return (1, size), (1, step), padding
    before, after = paddings(padding, f"{layer}: padding", 1)
    return (1, size), (1, step), (0, before, 0, after)


def _as_images(x: Tensor, layer: str) -> Tensor:
    axes(x, layer, 3, 4)
    return autograd.unsqueeze(x, [2]) if len(x.shape) == 3 else x


class _Pool1d(_Pool):
    """Windows along the last axis, as those of images."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("kernel_size", "stride", "padding", "dilation") and isinstance(value, int):
            value = (int(name != "padding"), value)
        super().__setattr__(name, value)

    def initialize(self, x: Tensor) -> None:
        """Makes `handle`."""
        super().initialize(_as_images(x, type(self).__name__))

    def forward(self, x: Tensor) -> Any:
        """(N, C, L) -> (N, C, L'), or (N, C, H, L) -> (N, C, H, L')."""
        made = super().forward(_as_images(x, type(self).__name__))
        if len(x.shape) == 4:
            return made
        if isinstance(made, Tensor):
            return autograd.squeeze(made, [2])
        return tuple(autograd.squeeze(one, [2]) for one in made)


class MaxPool1d(_Pool1d, MaxPool2d):
    """The maximum of windows along the last axis."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int | None = 0,
        pad_mode: str = "NOTSET",
        *,
        dilation: int = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> None:
        """As `MaxPool2d`, with ints; padding may be a pair, before and after."""
        name = type(self).__name__
        gaps = (1, *numbers(dilation, f"{name}: dilation", 1))
        how = {"ceil_mode": ceil_mode, "return_indices": return_indices}
        window = _flat(kernel_size, stride, padding, name)
        super().__init__(*window, pad_mode, dilation=gaps, **how)


class AvgPool1d(_Pool1d, AvgPool2d):
    """The average of windows along the last axis, over the elements inside."""

    def __init__(
        self,
        kernel_size: int,
        stride: int | None = None,
        padding: int | None = 0,
        pad_mode: str = "NOTSET",
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        divisor_override: int | None = None,
    ) -> None:
        """As `AvgPool2d`, with ints; padding may be a pair, before and after."""
        window = _flat(kernel_size, stride, padding, type(self).__name__)
        super().__init__(
            *window,
            pad_mode,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )


class _LPPool(_Pool):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Padding = 0,
        pad_mode: str = "NOTSET",
        *,
        ceil_mode: bool = False,
    ) -> None:
        """The exponent, from 1 to infinity; then as in `MaxPool2d`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self._slide(kernel_size, stride, padding, pad_mode, ceil_mode=ceil_mode)
        self.norm_type = exponent(norm_type, f"{type(self).__name__}: norm_type")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, *spatial').

        Raises:
            ShapeError: a different number of axes, or an image smaller than the window.
        """
        return autograd.lp_pool(x, self.norm_type, *self._slid(x), self.window.ceil_mode)


class LPPool1d(_LPPool):
    """The norm of windows along an axis (`autograd.lp_pool`)."""

    _axes = 1


class LPPool2d(_LPPool):
    """The norm of windows of images (`autograd.lp_pool`)."""

    _axes = 2


class LPPool3d(_LPPool):
    """The norm of windows of volumes (`autograd.lp_pool`)."""

    _axes = 3


class _MaxUnpool(_Pool):
    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Padding = 0
    ) -> None:
        """The kernel, stride and padding of the pooling that gave the indices.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self._slide(kernel_size, stride, padding, "NOTSET")

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """(N, C, *spatial) and indices of that shape -> (N, C, *output_size).

        Raises:
            ShapeError: shapes that differ, or a different number of axes.
            ValueError: an index that the result does not have.
        """
        axes(x, type(self).__name__, self._axes + 2)
        window = self.window
        how = (window.kernel, window.stride, window.pads, output_size)
        return autograd.max_unpool(x, indices, *how)


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d` but for the lesser elements (`autograd.max_unpool`)."""

    _axes = 1


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d` but for the lesser elements (`autograd.max_unpool`)."""

    _axes = 2


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d` but for the lesser elements (`autograd.max_unpool`)."""

    _axes = 3


class _GlobalAvgPool(Layer):
    _axes: ClassVar[int]

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, 1, ...)."""
        axes(x, type(self).__name__, self._axes + 2)
        return autograd.globalaveragepool(x)


class GlobalAvgPool1d(_GlobalAvgPool):
    """The average of each channel of series (ONNX GlobalAveragePool)."""

    _axes = 1


class GlobalAvgPool2d(_GlobalAvgPool):
    """The average of each channel (ONNX GlobalAveragePool)."""

    _axes = 2


class GlobalAvgPool3d(_GlobalAvgPool):
    """The average of each channel of volumes (ONNX GlobalAveragePool)."""

    _axes = 3

"""Convolutions over series, images and volumes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, overload

from .. import autograd, initializer
from ..tensor import Tensor
from . import activation as activations
from .check import at_most, axes, count, count_or_none, features, flag, float_input
from .parameters import normal, parameter
from .window import SETTINGS, Window, Windowed

if TYPE_CHECKING:
    from .typed import Activation, Fill, Padding, Sizes


class _Default(int):
    """A number that nobody gave."""


STRIDE, PADDING = _Default(1), _Default(0)


def _placed(name: str, given: tuple[Any, ...], kernel_size: Any, named: tuple[Any, Any]) -> Any:
    """The arguments of a convolution, in order: [in, ]out, kernel, stride, padding."""
    if kernel_size is not None:
        if len(given) > 2:
            raise _twice(name, "kernel_size")
        given = (*given, kernel_size)
    if len(given) < 2:
        raise TypeError(f"{name}: got no kernel_size, want {name}(in, out, kernel)")
    at_most(name, len(given), 5)
    count = max(0, len(given) - 3)
    for what, value in zip(("stride", "padding")[:count], named, strict=False):
        if not isinstance(value, _Default):
            raise _twice(name, what)
    return *given, *named[count:]


def _twice(name: str, what: str) -> TypeError:
    want = f"want {name}(in, out, kernel, stride, padding)"
    return TypeError(f"{name}: got {what} twice, {want}")


class Conv(Windowed):
    """What convolutions of any number of spatial axes share, and their transposes."""

    #: The number of spatial axes.
    _axes: ClassVar[int]

    @overload
    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: Activation = "NOTSET",
        in_channels: int | None = None,
        kernel_init: Fill = None,
        bias_init: Fill = "zeros",
    ) -> None: ...
    @overload
    def __init__(
        self,
        in_channels: int,
        nb_kernels: int,
        /,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        *,
        dilation: Sizes = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: Activation = "NOTSET",
        kernel_init: Fill = None,
        bias_init: Fill = "zeros",
    ) -> None: ...
    def __init__(
        self,
        nb_kernels: int,
        *args: Any,
        kernel_size: Any = None,
        stride: Any = STRIDE,
        padding: Any = PADDING,
        dilation: Any = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: Any = "NOTSET",
        in_channels: int | None = None,
        kernel_init: Any = None,
        bias_init: Any = "zeros",
    ) -> None:
        """`(nb_kernels, kernel_size)`, or `(in, nb_kernels, kernel_size[, stride[, padding]])`; the
        kernel's size may go by name in both.

        Kernel, stride and dilation are an int, or one for each spatial axis (height, width);
        padding is an int, one for each axis, or those before each axis and then those after each
        (top, left, bottom, right), or follows from `pad_mode` SAME_UPPER, SAME_LOWER or VALID; it
        may also be "same" or "valid". `activation` is a name such as "RELU", or a callable.
        Initialisers are names or callables; the default for W is normal with the variance
        2 / (in / group * kh * kw + nb_kernels).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        given = _placed(name, (nb_kernels, *args), kernel_size, (stride, padding))
        *channels, nb_kernels, kernel_size, stride, padding = given
        if channels and in_channels is not None:
            raise _twice(name, "in_channels")
        in_channels = channels[0] if channels else in_channels
        self.nb_kernels = count(nb_kernels, f"{name}: nb_kernels")
        self.group = count(group, f"{name}: group")
        if self.nb_kernels % self.group:
            raise ValueError(f"{name}: group: got {group}, want a divisor of {nb_kernels} kernels")
        self.in_channels = count_or_none(in_channels, f"{name}: in_channels")
        if self.in_channels is not None:
            self._check_group(self.in_channels)
        how = (kernel_size, stride, padding, dilation, pad_mode)
        self.window = Window(name, *how, axes=self._axes)
        self.kernel_size = self.window.kernel
        self.stride, self.dilation = self.window.stride, self.window.dilation
        self.bias = flag(bias, f"{name}: bias")
        activations.get(activation, f"{name}: activation")
        self.activation = activation
        self.kernel_init = kernel_init and initializer.get(kernel_init, f"{name}: kernel_init")
        self.bias_init = initializer.get(bias_init, f"{name}: bias_init")

    def _check_group(self, channels: int) -> None:
        if channels % self.group:
            name = type(self).__name__
            raise ValueError(f"{name}: group: got {self.group}, want a divisor of {channels}")

    def initialize(self, x: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        name = type(self).__name__
        float_input(x, name)
        self.in_channels = self._channels(x)
        self._check_group(self.in_channels)
        each = self.in_channels // self.group
        spread = 2.0 / (each * math.prod(self.kernel_size) + self.nb_kernels)
        fill = self.kernel_init or normal(spread)
        self.W = self._weight(each, x, fill, f"{name}: kernel_init")
        self.b: Any = None
        if self.bias:
            self.b = parameter((self.nb_kernels,), x, self.bias_init, f"{name}: bias_init")

    def _weight(self, each: int, x: Tensor, fill: Any, argument: str) -> Tensor:
        return parameter((self.nb_kernels, each, *self.kernel_size), x, fill, argument)

    def _channels(self, x: Tensor) -> int:
        axes(x, type(self).__name__, self._axes + 1, self._axes + 2)
        return features(x, type(self).__name__, x.rank - self._axes - 1, self.in_channels)

    def _apply(self, x: Tensor, b: Tensor | None) -> Tensor:
        pads = self.window.padding(x.shape)
        return autograd.conv(x, self.W, b, self.stride, pads, self.dilation, self.group)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in, *spatial) -> (N, nb_kernels, *spatial'), or both without N.

        Raises:
            ShapeError: a different number of axes or channels, or an image smaller than the window.
        """
        self._channels(x)
        is_one = x.rank == self._axes + 1
        x = autograd.unsqueeze(x, 0) if is_one else x
        y = self._apply(x, self.b if self.bias else None)
        activation = activations.get(self.activation, f"{type(self).__name__}: activation")
        y = y if activation is None else activation(y)
        return autograd.squeeze(y, 0) if is_one else y


class Conv1d(Conv):
    """1-d convolution (ONNX Conv), with W (nb_kernels, in / group, k) and b (nb_kernels,)."""

    _axes = 1


class Conv2d(Conv):
    """2-d convolution (ONNX Conv), with W (nb_kernels, in / group, kh, kw) and b (nb_kernels,)."""

    _axes = 2

    def initialize(self, x: Tensor) -> None:
        """Makes `handle` and W, and b where there is a bias."""
        super().initialize(x)
        self.handle = self._handle(x.shape)

    def _handle(self, shape: tuple[int, ...]) -> autograd.ConvHandle:
        pads = self.window.padding(shape)
        return autograd.ConvHandle(self.kernel_size, self.stride, pads, self.dilation, self.group)

    def _apply(self, x: Tensor, b: Tensor | None) -> Tensor:
        if self.window.is_same or "handle" not in self.__dict__:
            self.handle = self._handle(x.shape)
        return autograd.conv2d(self.handle, x, self.W, b)


class Conv3d(Conv):
    """3-d convolution (ONNX Conv), with W (nb_kernels, in / group, kd, kh, kw) and
    b (nb_kernels,)."""

    _axes = 3


class SeparableConv2d(Windowed):
    """A convolution of each channel by itself, `depthwise_conv`, and a 1x1 convolution across
    channels, `point_conv` (Chollet, Xception, 2017)."""

    @overload
    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        bias: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        in_channels: int,
        nb_kernels: int,
        /,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        *,
        bias: bool = False,
    ) -> None: ...
    def __init__(
        self,
        nb_kernels: int,
        *args: Any,
        kernel_size: Any = None,
        stride: Any = STRIDE,
        padding: Any = PADDING,
        bias: bool = False,
    ) -> None:
        """As `Conv2d`, including its second form.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        given = _placed("SeparableConv2d", (nb_kernels, *args), kernel_size, (stride, padding))
        *channels, nb_kernels, kernel_size, stride, padding = given
        self.in_channels: int | None = None
        if channels:
            self.in_channels = count(channels[0], "SeparableConv2d: in_channels")
        self.nb_kernels = count(nb_kernels, "SeparableConv2d: nb_kernels")
        self.kernel_size, self.stride = kernel_size, stride
        self.window = Window("SeparableConv2d", kernel_size, stride, padding)
        self.bias = flag(bias, "SeparableConv2d: bias")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in SETTINGS and self._initialized:
            setattr(self.depthwise_conv, name, value)

    def initialize(self, x: Tensor) -> None:
        """Makes `depthwise_conv`, which has a kernel for each channel, and `point_conv`."""
        axes(x, "SeparableConv2d", 3, 4)
        self.in_channels = features(x, "SeparableConv2d", x.rank - 3, self.in_channels)
        window = self.window
        self.depthwise_conv = Conv2d(
            self.in_channels,
            window.kernel,
            stride=window.stride,
            padding=window.pads,
            group=self.in_channels,
            bias=self.bias,
            pad_mode=window.pad_mode,
            dilation=window.dilation,
        )
        self.point_conv = Conv2d(self.nb_kernels, 1, bias=self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in, H, W) -> (N, nb_kernels, H', W'), or both without N."""
        return self.point_conv(self.depthwise_conv(x))

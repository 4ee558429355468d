"""Convolutions over images."""

from __future__ import annotations

import math
from typing import Any

from .. import autograd, initializer
from ..tensor import Tensor
from . import activation as activations
from .base import Layer
from .check import at_most, axes, count, features, float_input
from .parameters import normal, parameter
from .pooling import Window


class Conv2d(Layer):
    """2-d convolution (ONNX Conv), with W (nb_kernels, in / group, kh, kw) and b (nb_kernels,)."""

    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Any,
        *args: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: Any = "NOTSET",
        in_channels: int | None = None,
        kernel_init: Any = None,
        bias_init: Any = "zeros",
    ) -> None:
        """`Conv2d(nb_kernels, kernel_size)`, or `Conv2d(in, nb_kernels, kernel_size[, stride[,
        padding]])`.

        Kernel, stride and dilation are an int or two (height, width); padding is an int, two, or
        four (top, left, bottom, right), or follows from `pad_mode` SAME_UPPER or SAME_LOWER.
        `activation` is a name such as "RELU", or a callable. Initialisers are names or callables;
        the default for W is normal with the variance 2 / (in / group * kh * kw + nb_kernels).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        at_most("Conv2d", len(args) + 2, 5)
        if args:
            in_channels, nb_kernels, kernel_size = nb_kernels, kernel_size, args[0]
            stride = args[1] if len(args) > 1 else stride
            padding = args[2] if len(args) > 2 else padding
        self.nb_kernels = count(nb_kernels, "Conv2d: nb_kernels")
        self.group = count(group, "Conv2d: group")
        if self.nb_kernels % self.group:
            raise ValueError(f"Conv2d: group: got {group}, want a divisor of {nb_kernels} kernels")
        if in_channels is not None:
            in_channels = count(in_channels, "Conv2d: in_channels")
            self._check_group(in_channels)
        self.in_channels = in_channels
        self.window = Window("Conv2d", kernel_size, stride, padding, dilation, pad_mode)
        self.kernel_size = self.window.kernel
        self.stride, self.dilation = self.window.stride, self.window.dilation
        self.bias = bool(bias)
        self.activation = activations.get(activation, "Conv2d: activation")
        self.kernel_init = kernel_init and initializer.get(kernel_init, "Conv2d: kernel_init")
        self.bias_init = initializer.get(bias_init, "Conv2d: bias_init")

    def _check_group(self, channels: int) -> None:
        if channels % self.group:
            raise ValueError(f"Conv2d: group: got {self.group}, want a divisor of {channels}")

    def initialize(self, x: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        float_input(x, "Conv2d")
        axes(x, "Conv2d", 4)
        self.in_channels = features(x, "Conv2d", 1, self.in_channels)
        self._check_group(self.in_channels)
        self.handle = self._handle(x.shape)
        shape = (self.nb_kernels, self.in_channels // self.group, *self.kernel_size)
        spread = 2.0 / (math.prod(shape[1:]) + self.nb_kernels)
        self.W = parameter(shape, x, self.kernel_init or normal(spread), "Conv2d: kernel_init")
        if self.bias:
            self.b = parameter((self.nb_kernels,), x, self.bias_init, "Conv2d: bias_init")

    def _handle(self, shape: tuple[int, ...]) -> autograd.ConvHandle:
        pads = self.window.padding(shape)
        return autograd.ConvHandle(self.kernel_size, self.stride, pads, self.dilation, self.group)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in, H, W) -> (N, nb_kernels, H', W').

        Raises:
            ShapeError: a different number of axes or channels, or an image smaller than the window.
        """
        axes(x, "Conv2d", 4)
        features(x, "Conv2d", 1, self.in_channels)
        if self.window.pad_mode != "NOTSET":
            self.handle = self._handle(x.shape)
        y = autograd.conv2d(self.handle, x, self.W, self.b if self.bias else None)
        return y if self.activation is None else self.activation(y)


class SeparableConv2d(Layer):
    """A convolution of each channel by itself, `depthwise_conv`, and a 1x1 convolution across
    channels, `point_conv` (Chollet, Xception, 2017)."""

    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Any,
        *args: Any,
        stride: Any = 1,
        padding: Any = 0,
        bias: bool = False,
    ) -> None:
        """As `Conv2d`, including its second form.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        at_most("SeparableConv2d", len(args) + 2, 5)
        self.in_channels: int | None = None
        if args:
            self.in_channels = count(nb_kernels, "SeparableConv2d: in_channels")
            nb_kernels, kernel_size = kernel_size, args[0]
            stride = args[1] if len(args) > 1 else stride
            padding = args[2] if len(args) > 2 else padding
        self.nb_kernels = count(nb_kernels, "SeparableConv2d: nb_kernels")
        self.window = Window("SeparableConv2d", kernel_size, stride, padding)
        self.bias = bool(bias)
        self.point_conv = Conv2d(self.nb_kernels, 1, bias=self.bias)

    def initialize(self, x: Tensor) -> None:
        """Makes `depthwise_conv`, which has a kernel for each channel."""
        axes(x, "SeparableConv2d", 4)
        self.in_channels = features(x, "SeparableConv2d", 1, self.in_channels)
        window = self.window
        self.depthwise_conv = Conv2d(
            self.in_channels,
            window.kernel,
            stride=window.stride,
            padding=window.pads,
            group=self.in_channels,
            bias=self.bias,
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, in, H, W) -> (N, nb_kernels, H', W')."""
        return self.point_conv(self.depthwise_conv(x))

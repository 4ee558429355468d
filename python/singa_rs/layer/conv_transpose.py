"""Transposed convolutions over series, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from .. import autograd
from ..tensor import Tensor
from .check import numbers
from .conv import PADDING, STRIDE, Conv
from .parameters import parameter

if TYPE_CHECKING:
    from .typed import Activation, Fill, Padding, Sizes


class _ConvTranspose(Conv):
    @overload
    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
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
        output_padding: Sizes = 0,
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
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: Any = "NOTSET",
        in_channels: int | None = None,
        kernel_init: Any = None,
        bias_init: Any = "zeros",
    ) -> None:
        """`(nb_kernels, kernel_size)`, or `(in, nb_kernels, kernel_size[, stride[, padding]])`,
        with arguments as in `Conv2d`; padding is left out of the result.

        `output_padding` elements are added after each axis; it is less than the stride or the
        dilation. With `pad_mode` SAME_UPPER or SAME_LOWER the result has `size * stride` elements
        along each axis, and `output_padding` more. Named initialisers count `in / group * k...` as
        fan-in and `nb_kernels * k...` as fan-out, as a convolution from `in` to `nb_kernels`
        channels has them; a callable gets W.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(
            nb_kernels,
            *args,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            group=group,
            bias=bias,
            pad_mode=pad_mode,
            activation=activation,
            in_channels=in_channels,
            kernel_init=kernel_init,
            bias_init=bias_init,
        )
        what = f"{type(self).__name__}: output_padding"
        self.output_padding = numbers(output_padding, what, self._axes, 0)
        self._is_named = isinstance(kernel_init, str)
        found = zip(self.output_padding, self.stride, self.dilation, strict=True)
        if any(n >= max(stride, dilation) for n, stride, dilation in found):
            raise ValueError(f"{what}: got {output_padding}, want less than stride or dilation")

    def _weight(self, each: int, x: Tensor, fill: Any, argument: str) -> Tensor:
        outputs, groups = self.nb_kernels // self.group, self.group
        shape = (each * groups, outputs, *self.kernel_size)
        if not self._is_named:
            return parameter(shape, x, fill, argument)

        def as_convolution(W: Tensor) -> None:
            drawn = Tensor((self.nb_kernels, each, *self.kernel_size), W.device, W.dtype)
            fill(drawn)
            values = drawn.to_numpy().reshape(groups, outputs, each, *self.kernel_size)
            W.copy_from_numpy(values.swapaxes(1, 2).reshape(shape))

        return parameter(shape, x, as_convolution, argument)

    def _apply(self, x: Tensor, b: Tensor | None) -> Tensor:
        window = self.window
        pads = window.pads if window.pad_mode == "NOTSET" else window.pad_mode
        how = (self.stride, pads, self.output_padding, self.dilation, self.group)
        return autograd.conv_transpose(x, self.W, b, *how)


class ConvTranspose1d(_ConvTranspose):
    """1-d transposed convolution (ONNX ConvTranspose), with W (in, nb_kernels / group, k) and
    b (nb_kernels,)."""

    _axes = 1


class ConvTranspose2d(_ConvTranspose):
    """2-d transposed convolution (ONNX ConvTranspose), with W (in, nb_kernels / group, kh, kw) and
    b (nb_kernels,)."""

    _axes = 2


class ConvTranspose3d(_ConvTranspose):
    """3-d transposed convolution (ONNX ConvTranspose), with W (in, nb_kernels / group, kd, kh, kw)
    and b (nb_kernels,)."""

    _axes = 3

"""Layers whose windows slide over images or series: convolution and pooling."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ... import autograd
from ...layer.check import count, flag, numbers, one_of
from ...tensor import Tensor
from ..proto.model_pb2 import PoolingConf
from .base import Layer, Shape, Specs


class _Windowed(Layer):
    """A layer of samples (C, H, W)."""

    def _set_window(self, kernel: Any, stride: Any, border_mode: str, pad: Any) -> None:
        where = self._where
        self.kernel = numbers(kernel, where("kernel"), 2)
        self.stride = numbers(stride, where("stride"), 2)
        self.pad = None if pad is None else numbers(pad, where("pad"), 2, 0)
        self.border_mode = one_of(str(border_mode).lower(), where("border_mode"), ("same", "valid"))

    def _padding(self, size: Shape) -> Shape:
        """The padding before both axes of an image, and after them: `pad`; else none if the mode
        is "valid", or as much as makes size // stride results, an odd element of it behind."""
        if self.pad is not None:
            return self.pad * 2
        if self.border_mode == "valid":
            return (0, 0, 0, 0)
        axes = zip(size, self.kernel, self.stride, strict=True)
        totals = [max((n // step - 1) * step + window - n, 0) for n, window, step in axes]
        return (*[n // 2 for n in totals], *[n - n // 2 for n in totals])

    def _slide(self, shape: Shape) -> Shape:
        """Notes the padding for samples (C, H, W); returns the size of the result."""
        if len(shape) != 3:
            raise self._refuse(f"a sample of {shape}", "(channels, height, width)")
        self._pads = self._padding(shape[1:])
        made = []
        for axis in range(2):
            room = shape[1 + axis] + self._pads[axis] + self._pads[2 + axis] - self.kernel[axis]
            if room < 0:
                raise self._refuse(f"a sample of {shape}", f"room for a window of {self.kernel}")
            made.append(room // self.stride[axis] + 1)
        return tuple(made)


class Conv2D(_Windowed):
    """Convolution of images (SINGA 1.x Conv2D), with the parameters weight, a filter in each row
    (nb_kernels, channels * kh * kw), and bias (nb_kernels,)."""

    def __init__(
        self,
        name: str,
        nb_kernels: int,
        kernel: Any = 3,
        stride: Any = 1,
        border_mode: str = "same",
        cudnn_prefer: str = "fastest",
        workspace_byte_limit: int = 1024,
        data_format: str = "NCHW",
        use_bias: bool = True,
        W_specs: Specs = None,
        b_specs: Specs = None,
        pad: Any = None,
        input_sample_shape: Any = None,
    ) -> None:
        """`nb_kernels`: the number of filters.

        Args:
            kernel, stride: an int, or a pair for height and width.
            border_mode: without `pad`, "valid" does not pad, and "same" pads so that there are
                size // stride results.
            cudnn_prefer, workspace_byte_limit: of no effect.
            data_format: "NCHW".
            use_bias: whether there is a bias.
            W_specs, b_specs: how the parameters begin and are trained (`ParamSpec`).
            pad: zeros around the image: an int, or a pair for height and width.
            input_sample_shape: (channels, height, width).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        one_of(data_format, self._where("data_format"), ("NCHW",))
        self.nb_kernels = count(nb_kernels, self._where("nb_kernels"))
        self.use_bias = flag(use_bias, self._where("use_bias"))
        self._set_window(kernel, stride, border_mode, pad)
        self._specify_affine(self.use_bias, W_specs, b_specs)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _setup(self, shape: Shape) -> Shape:
        size = self._slide(shape)
        filters = (self.nb_kernels, shape[0] * math.prod(self.kernel))
        self._make_affine(self.use_bias, filters, self.nb_kernels)
        return (self.nb_kernels, *size)

    def _compute(self, x: Tensor) -> Tensor:
        W = autograd.reshape(self.W, (self.nb_kernels, x.shape[1], *self.kernel))
        return autograd.conv(x, W, self.b if self.use_bias else None, self.stride, self._pads)


class Pooling2D(_Windowed):
    """The maxima (`PoolingConf.MAX`) or means (`PoolingConf.AVE`, padding counts as zeros) of
    windows (SINGA 1.x Pooling2D)."""

    def __init__(
        self,
        name: str,
        mode: int,
        kernel: Any = 3,
        stride: Any = 2,
        border_mode: str = "same",
        pad: Any = None,
        data_format: str = "NCHW",
        input_sample_shape: Any = None,
    ) -> None:
        """`mode`: which of both; the rest as `Conv2D`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        one_of(data_format, self._where("data_format"), ("NCHW",))
        self.mode = PoolingConf(mode)
        self._set_window(kernel, stride, border_mode, pad)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _setup(self, shape: Shape) -> Shape:
        size = self._slide(shape)
        if any(pad >= window for pad, window in zip(self._pads, self.kernel * 2, strict=True)):
            raise self._refuse(f"pads {self._pads}", f"less than the window {self.kernel}")
        return (shape[0], *size)

    def _compute(self, x: Tensor) -> Tensor:
        if self.mode == PoolingConf.MAX:
            return autograd.max_pool(x, self.kernel, self.stride, self._pads)
        pads = self._pads
        return autograd.avg_pool(x, self.kernel, self.stride, pads, count_include_pad=True)


class MaxPooling2D(Pooling2D):
    """The maxima of windows (SINGA 1.x MaxPooling2D)."""

    _mode: ClassVar[PoolingConf] = PoolingConf.MAX

    def __init__(
        self,
        name: str,
        kernel: Any = 3,
        stride: Any = 2,
        border_mode: str = "same",
        pad: Any = None,
        data_format: str = "NCHW",
        input_sample_shape: Any = None,
    ) -> None:
        """As `Pooling2D`."""
        how = (kernel, stride, border_mode, pad, data_format, input_sample_shape)
        super().__init__(name, self._mode, *how)


class AvgPooling2D(MaxPooling2D):
    """The means of windows, in which padding counts as zeros (SINGA 1.x AvgPooling2D)."""

    _mode = PoolingConf.AVE

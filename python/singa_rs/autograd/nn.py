"""Convolution, pooling, dropout.

A handle holds the geometry that does not depend on the input: each of SINGA's layers makes one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import ShapeError
from ..device import report_warnings
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import real, whole, wholes
from . import ops
from .mode import mode
from .ops import Grads, Tensors
from .rule import KeepsShape, Rule, function

Pair = int | Sequence[int]


def as_pair(value: Pair, what: str) -> tuple[int, int]:
    """(height, width) from one int or from two."""
    pair = wholes(value, what)
    if len(pair) > 2 or not pair:
        raise ValueError(f"{what}: got {value}, want an int or a pair")
    return pair[0], pair[-1]


def as_padding(value: Pair, what: str) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) from one int, (vertical, horizontal), or all four."""
    given = wholes(value, what)
    return given if len(given) == 4 else as_pair(given, what) * 2


def _with_odd(padding: tuple[int, ...], odd: Sequence[int]) -> tuple[int, ...]:
    """Padding with SINGA's extra rows and columns: (top, bottom, left, right)."""
    top, bottom, left, right = wholes(odd, "odd_padding")
    return padding[0] + top, padding[1] + left, padding[2] + bottom, padding[3] + right


class ConvHandle(Settings):
    """The geometry of a convolution.

    Args:
        kernel_size: (height, width).
        stride: (height, width).
        padding: one int, (vertical, horizontal) or (top, left, bottom, right).
        dilation: (height, width).
        group: the number of groups that the channels are divided into.
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        group: int = 1,
    ) -> None:
        super().__init__(
            kernel_size=as_pair(kernel_size, "conv2d kernel"),
            stride=as_pair(stride, "conv2d stride"),
            padding=as_padding(padding, "conv2d padding"),
            dilation=as_pair(dilation, "conv2d dilation"),
            group=whole(group, "conv2d group"),
        )


class PoolingHandle(Settings):
    """The geometry of a pooling: window, stride (the window's by default), padding.

    `is_max` selects maxima, otherwise means; means exclude padding unless `count_include_pad`.
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        is_max: bool = True,
        count_include_pad: bool = False,
    ) -> None:
        window = as_pair(kernel_size, "pooling_2d kernel")
        super().__init__(
            kernel_size=window,
            stride=window if stride is None else as_pair(stride, "pooling_2d stride"),
            padding=as_padding(padding, "pooling_2d padding"),
            is_max=bool(is_max),
            count_include_pad=bool(count_include_pad),
        )


@functools.cache
def _report_once() -> None:
    """Shows the engine's warnings about its libraries, after the first convolution."""
    report_warnings()


class _Conv2d(Rule):
    """A convolution of images with filters (ONNX Conv)."""

    def __init__(self, handle: ConvHandle, odd_padding: Sequence[int] = (0, 0, 0, 0)) -> None:
        self.handle, self.odd_padding = handle, tuple(odd_padding)
        self.attrs = {
            "stride": handle.stride,
            "padding": _with_odd(handle.padding, self.odd_padding),
            "dilation": handle.dilation,
            "groups": handle.group,
        }

    def forward(self, x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
        y = ops.op("conv2d", **self.attrs)(*((x, W) if b is None else (x, W, b)))
        _report_once()
        return y

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*xs[:2])
        self.has_bias = len(xs) == 3

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """The gradients of x and W, and of b if it was given."""
        (dy,), (x, W) = dys, (self.load(0), self.load(1))
        size, kernel = x.shape[2:], W.shape[2:]
        to_x = ops.op("conv2d_grad_input", **self.attrs, size=size)
        to_w = ops.op("conv2d_grad_weight", **self.attrs, kernel=kernel)
        made = (to_x(dy, W) if wanted[0] else None, to_w(dy, x) if wanted[1] else None)
        if not self.has_bias:
            return made
        total = ops.op("reduce", f="sum", axes=(0, 2, 3), keepdims=False)
        return (*made, total(dy) if wanted[2] else None)


def conv2d(
    handle: ConvHandle,
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    odd_padding: Sequence[int] = (0, 0, 0, 0),
) -> Tensor:
    """A convolution (cross-correlation) of images with filters (ONNX Conv).

    Args:
        handle: the geometry.
        x: (N, C, H, W).
        W: (O, C / group, kh, kw).
        b: (O,) or None.
        odd_padding: additional padding: top, bottom, left, right (as in SINGA).

    Raises:
        ShapeError: shapes that do not fit each other.
    """
    return _Conv2d(handle, odd_padding)(*((x, W) if b is None else (x, W, b)))[0]


class _Pooling2d(KeepsShape):
    """Maxima or means of windows (ONNX MaxPool, AveragePool)."""

    def __init__(self, handle: PoolingHandle, odd_padding: Sequence[int] = (0, 0, 0, 0)) -> None:
        self.handle, self.odd_padding = handle, tuple(odd_padding)
        padding = _with_odd(handle.padding, self.odd_padding)
        self.attrs = {"kernel": handle.kernel_size, "stride": handle.stride, "padding": padding}
        if handle.is_max:
            self.keeps = ("places",)
        else:
            self.attrs["count_include_pad"] = handle.count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        if not self.handle.is_max:
            return ops.op("avg_pool2d", **self.attrs)(x)
        y, self.places = ops.op("max_pool2d", **self.attrs)(x)
        return y

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` at the maxima, or spread over the windows."""
        size = self.shape[2:]
        if not self.handle.is_max:
            return (ops.op("avg_pool2d_grad", **self.attrs, size=size)(*dys),)
        places = self.load(0)
        # The next reader of the gradient also reads the image: the same memory order is fastest.
        dy = ops.ordered_like(dys[0], places)
        return (ops.op("max_pool2d_grad", **self.attrs, size=size)(dy, places),)


def pooling_2d(
    handle: PoolingHandle, x: Tensor, odd_padding: Sequence[int] = (0, 0, 0, 0)
) -> Tensor:
    """Maxima or means of the windows of images (N, C, H, W) (ONNX MaxPool, AveragePool)."""
    return _Pooling2d(handle, odd_padding)(x)[0]


class GlobalAveragePool(KeepsShape):
    """The mean over the spatial axes, kept with extent 1 (ONNX GlobalAveragePool).

    Every `data_format` but 'channels_first' means that the channels are the last axis.
    """

    def __init__(self, data_format: str = "channels_first") -> None:
        self.data_format = data_format

    def _axes(self, rank: int) -> tuple[int, ...]:
        first = 2 if self.data_format == "channels_first" else 1
        return tuple(range(first, first + rank - 2))

    def forward(self, x: Tensor) -> Tensor:
        if x.rank < 3:
            raise ShapeError(f"globalaveragepool: got shape {x.shape}, want at least 3 dimensions")
        return ops.op("reduce", f="mean", axes=self._axes(x.rank), keepdims=True)(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / n` at every position."""
        count = math.prod(self.shape[a] for a in self._axes(len(self.shape)))
        return (ops.scale(dys[0], 1 / count if count else 0).view_expand(self.shape),)


globalaveragepool = function(GlobalAveragePool, "globalaveragepool")


class Dropout(Rule):
    """Elements set to zero with probability `ratio`, the others scaled by `1 / (1 - ratio)`."""

    keeps = ("mask",)

    def __init__(self, ratio: float = 0.5, seed: int | None = None) -> None:
        self.ratio, self.seed = real(ratio, "dropout: ratio"), seed
        if not 0 <= self.ratio < 1:
            raise ValueError(f"dropout: got ratio {ratio}, want 0 <= ratio < 1")

    def forward(self, x: Tensor) -> Tensor:
        state = () if self.seed is None else (_state(self.seed, x),)
        y, self.mask = ops.op("dropout", ratio=self.ratio)(x, *state)
        return y

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / (1 - ratio)` where the element was kept, else 0."""
        return (ops.op("dropout_grad", ratio=self.ratio)(dys[0], self.load(0)),)


def _state(seed: int, like: Tensor) -> Tensor:
    """The state of a separate generator: key and position."""
    key = whole(seed, "dropout: seed")
    if not -(2**62) <= key < 2**62:
        raise ValueError(f"dropout: got seed {key}, want an integer from -2**62 to 2**62 - 1")
    return _core.from_numpy(np.array([key << 1, 0], np.int64), like.device)


def dropout(x: Tensor, ratio: float = 0.5, seed: int | None = None) -> Tensor:
    """In training, elements set to zero with probability `ratio` and the others scaled up.

    Outside of training, `x` itself (ONNX Dropout). With a `seed`, the same elements each time.
    """
    return Dropout(ratio, seed)(x)[0] if mode.training and ratio else x

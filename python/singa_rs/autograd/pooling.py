"""Pooling over one to three spatial axes: maxima, means and norms of windows, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import real, whole
from . import ops, windows
from .casting import floating
from .convolution import with_odd
from .index import as_indices
from .rule import KeepsShape, Rule, function
from .statistics import narrowed, nth_root
from .table import public
from .terms import wide
from .unary import FUNCTIONS as UNARY
from .windows import Numbers, Padding


class PoolingHandle(Settings):
    """The geometry of a pooling: window, stride (the window's by default), padding.

    `is_max` selects maxima, otherwise means; means exclude padding unless `count_include_pad`.
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        is_max: bool = True,
        count_include_pad: bool = False,
    ) -> None:
        window = windows.along(kernel_size, 2, "pooling_2d kernel")
        steps = window if stride is None else windows.along(stride, 2, "pooling_2d stride")
        super().__init__(
            kernel_size=window,
            stride=steps,
            padding=windows.around(padding, 2, "pooling_2d padding"),
            is_max=bool(is_max),
            count_include_pad=bool(count_include_pad),
        )


class _Pooling(KeepsShape):
    """Maxima or means of windows (ONNX MaxPool, AveragePool), and where each of the maxima stands
    in its channel if that is asked for."""

    def __init__(self, attrs: dict[str, Any], is_max: bool, indices: bool = False) -> None:
        self.attrs, self.is_max, self.indices = attrs, is_max, indices
        if is_max:
            self.keeps = ("places",)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if not self.is_max:
            return ops.op("avg_pool", **self.attrs)(x)
        y, self.places = ops.op("max_pool", **self.attrs)(x)
        if not self.indices:
            return y
        indices = in_channel(self.places, x.shape[2:], self.attrs)
        indices.requires_grad = False
        return y, indices

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` at the maxima, or spread over the windows."""
        size = self.shape[2:]
        if not self.is_max:
            return (ops.op("avg_pool_grad", **self.attrs, size=size)(dys[0]),)
        places = self.load(0)
        # The next reader of the gradient also reads the image: the same memory order is fastest.
        dy = ops.ordered_like(dys[0], places)
        return (ops.op("max_pool_grad", **self.attrs, size=size)(dy, places),)


class _Pooling2d(_Pooling):
    """Maxima or means of windows (ONNX MaxPool, AveragePool)."""

    def __init__(self, handle: PoolingHandle, odd_padding: Sequence[int] = (0, 0, 0, 0)) -> None:
        self.handle, self.odd_padding = handle, tuple(odd_padding)
        padding = with_odd(handle.padding, self.odd_padding)
        attrs = {"kernel": handle.kernel_size, "stride": handle.stride, "padding": padding}
        if not handle.is_max:
            attrs["count_include_pad"] = handle.count_include_pad
        super().__init__(attrs, handle.is_max)


@public(PoolingHandle, _Pooling2d)
def pooling_2d(
    handle: PoolingHandle, x: Tensor, odd_padding: Sequence[int] = (0, 0, 0, 0)
) -> Tensor:
    """Maxima or means of the windows of images (N, C, H, W) (ONNX MaxPool, AveragePool)."""
    return _Pooling2d(handle, odd_padding)(x)[0]


def _window(
    op: str,
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Padding,
    ceil_mode: bool = False,
    dilation: Numbers = 1,
) -> dict[str, Any]:
    """The attributes that all poolings have."""
    axes = windows.spatial_axes(x, op)
    kernel = windows.along(kernel_size, axes, f"{op}: kernel_size")
    steps = kernel if stride is None else windows.along(stride, axes, f"{op}: stride")
    gaps = windows.along(dilation, axes, f"{op}: dilation")
    reach = windows.extents(kernel, gaps)
    pads = windows.resolved(padding, x.shape[2:], reach, steps, f"{op}: padding")
    attrs = {"kernel": kernel, "stride": steps, "padding": pads}
    if gaps != (1,) * axes:
        attrs["dilation"] = gaps
    return {**attrs, "ceil_mode": True} if ceil_mode else attrs


@public()
def max_pool(
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Padding = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window over one, two or three spatial axes (ONNX MaxPool,
    PyTorch max_pool1d, 2d, 3d).

    Of equal elements the first counts, NaN is greater than all numbers, and padding is never the
    greatest.

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of numbers.
        kernel_size: the extents of the window: one int, or one for each axis.
        stride: the window's extents by default.
        padding: as in `conv`; less than the window.
        dilation: the distance between the window's elements.
        ceil_mode: whether windows that reach beyond the padded axis count, if they start in the
            axis or the padding before it.
        return_indices: whether the result is (maxima, indices), for `max_unpool`: the positions of
            the maxima, int64, in each channel's elements in row-major order (PyTorch's; ONNX counts
            the elements of all channels).

    Raises:
        ShapeError: a tensor of other axes.
        ValueError: windows that do not fit, or that lie in the padding or have no element of `x`.
        DTypeError: bools.
    """
    attrs = _window("max_pool", x, kernel_size, stride, padding, ceil_mode, dilation)
    made = _Pooling(attrs, True, bool(return_indices))(x)
    return made if return_indices else made[0]


def in_channel(places: Tensor, size: tuple[int, ...], attrs: dict[str, Any]) -> Tensor:
    """Positions within windows as positions within the channel that the windows slide over."""
    kernel, axes = attrs["kernel"], len(size)
    steps = [math.prod(size[d + 1 :]) for d in range(axes)]
    starts = np.zeros((1,) * axes, np.int64)
    for d, windows_along in enumerate(places.shape[2:]):
        first = np.arange(windows_along) * attrs["stride"][d] - attrs["padding"][d]
        starts = starts + (first * steps[d]).reshape(-1, *(1,) * (axes - 1 - d))
    made, rest = _core.from_numpy(starts, places.device), ops.cast(places, _core.int64)
    for d in reversed(range(axes)):
        gap = attrs.get("dilation", (1,) * axes)[d]
        at = ops.scalar_op("remainder", kernel[d])(rest)
        rest = ops.scalar_op("floor_divide", kernel[d])(rest)
        made = ops.add(made, ops.scalar_op("mul", gap * steps[d])(at))
    return made


@public()
def avg_pool(
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
    dilation: Numbers = 1,
) -> Tensor:
    """The mean of each window over one, two or three spatial axes (ONNX AveragePool, PyTorch
    avg_pool1d, 2d, 3d).

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of a float dtype.
        kernel_size: the extents of the window: one int, or one for each axis.
        stride: the window's extents by default.
        padding: as in `conv`; less than the window.
        ceil_mode: as in `max_pool`. What lies beyond the padding never counts.
        count_include_pad: whether padding counts as zeros. ONNX's and SINGA's default; PyTorch's
            is True.
        divisor_override: what the sums are divided by, instead of the number of elements.
        dilation: the distance between the window's elements.

    Raises:
        ShapeError: a tensor of other axes.
        ValueError: windows that do not fit, or that lie in the padding.
        DTypeError: a tensor that is not of floats.
    """
    attrs = _window("avg_pool", x, kernel_size, stride, padding, ceil_mode, dilation)
    attrs["count_include_pad"] = bool(count_include_pad)
    if divisor_override is not None:
        attrs["divisor"] = whole(divisor_override, "avg_pool: divisor_override")
        if attrs["divisor"] < 1:
            got = f"divisor_override {divisor_override}"
            raise ValueError(f"avg_pool: got {got}, want at least 1")
    return _Pooling(attrs, False)(x)[0]


@public()
def lp_pool(
    x: Tensor,
    p: float,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    dilation: Numbers = 1,
) -> Tensor:
    """The norm of each window over one, two or three spatial axes, the root `p` of the sum of
    `|x| ** p` (ONNX LpPool). PyTorch's lp_pool1d, 2d and 3d sum `x ** p` instead, which differs for
    odd `p` where elements are negative.

    Sums of float16 and bfloat16 are in float32. Where a norm is 0 the gradient is 0.

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W); integers become float32.
        p: any number from 1, also infinity.
        kernel_size, stride, padding, ceil_mode, dilation: as in `max_pool`.

    Raises:
        ShapeError: a tensor of other axes.
        ValueError: `p` below 1; windows that do not fit, or that lie in the padding.
    """
    p = real(p, "lp_pool: p")
    if not p >= 1:
        raise ValueError(f"lp_pool: got p {p}, want at least 1")
    attrs = _window("lp_pool", x, kernel_size, stride, padding, ceil_mode, dilation)
    size = UNARY["abs"](wide(x))
    if math.isinf(p):
        return narrowed(_Pooling(attrs, True)(size)[0], x)
    powers = size * size if p == 2 else size if p == 1 else size**p
    attrs.update(count_include_pad=False, divisor=1)
    sums = _Pooling(attrs, False)(powers)[0]
    return narrowed(nth_root(sums, p), x)


class _MaxUnpool(Rule):
    """Values at the positions that maxima came from."""

    keeps = ("places", "counts")
    constants = ("counts",)

    def __init__(self, indices: Any, size: tuple[int, ...]) -> None:
        self.indices, self.size = indices, size

    def forward(self, x: Tensor) -> Tensor:
        indices = as_indices(self.indices, "max_unpool", x.device)
        self.shape = x.shape
        if indices.shape != self.shape:
            got = f"{self.shape} and indices of shape {indices.shape}"
            raise ShapeError(f"max_unpool: got shape {got}, want equal shapes")
        images, channels = self.shape[:2]
        self.flat = (images * channels, math.prod(self.size))
        places = ops.op("places", of="max_unpool", size=self.flat[1])(indices)
        starts = ops.op(
            "arange",
            device=indices.device,
            start=0,
            step=self.flat[1],
            count=self.flat[0],
            dtype="int64",
        )()
        planes = ops.reshape(starts, (images, channels, *(1,) * len(self.size)))
        self.places = ops.add(places, planes)
        self.counts = self._spread(ops.full(self.shape, 1.0, x))
        at_least = ops.scalar_op("maximum", 1.0)(self.counts)
        return ops.reshape(ops.div(self._spread(x), at_least), (*self.shape[:2], *self.size))

    def _spread(self, x: Tensor) -> Tensor:
        return ops.op("gather_grad", axis=0, size=math.prod(self.flat))(x, self.places)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` at the positions, shared by the values of each."""
        places, counts = self.load(0), self.load(1)
        take = ops.op("gather", axis=0)
        dy = take(ops.reshape(dys[0], (math.prod(self.flat),)), places)
        return (ops.div(dy, take(counts, places)),)


@public()
def max_unpool(
    x: Tensor,
    indices: Any,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with each value at the position of the maximum that it belongs to (PyTorch
    max_unpool1d, 2d, 3d, ONNX MaxUnpool): the inverse of `max_pool` but for the other elements.

    Where several values have one position, their mean is there.

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of a float dtype.
        indices: integers of the shape of `x`: positions in each channel in row-major order, as
            `max_pool(..., return_indices=True)` gives them.
        kernel_size, stride, padding: those of `max_pool`; padding is one int or one for each axis.
        output_size: the spatial extents of the result; by default the least that the windows
            cover without dilation or ceil mode.

    Raises:
        ShapeError: shapes that differ, or other axes.
        ValueError: an index that the result does not have; extents below 1.
    """
    axes = windows.spatial_axes(x, "max_unpool")
    attrs = _window("max_unpool", x, kernel_size, stride, padding)
    if output_size is not None:
        size = windows.along(output_size, axes, "max_unpool: output_size")
    else:
        found = zip(x.shape[2:], attrs["kernel"], attrs["stride"], strict=True)
        pads = attrs["padding"]
        size = tuple(
            (n - 1) * s + k - pads[d] - pads[axes + d] for d, (n, k, s) in enumerate(found)
        )
    if min(size) < 1:
        raise ValueError(f"max_unpool: got extents {size}, want at least 1")
    return _MaxUnpool(indices, size)(floating(x))[0]


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

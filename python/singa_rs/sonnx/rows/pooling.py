"""Pooling: maxima, means and norms of windows or of whole channels, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ...tensor.numbers import wholes
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .convolution import Ints, check_windows, padding_of

# ---- windows -------------------------------------------------------------------------------------


def _check(op: str, x: Tensor, kernel: Ints, pads: Ints, strides: Ints, gaps: Ints) -> None:
    check_windows(op, x, pads, kernel_shape=kernel, strides=strides, dilations=gaps)


@reads("AveragePool")
def average_pool(
    x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    """The means of windows."""
    _check("AveragePool", x, kernel_shape, pads, strides, dilations)
    return autograd.avg_pool(
        x, kernel_shape, strides or 1, padding_of(auto_pad, pads), bool(ceil_mode),
        bool(count_include_pad), dilation=dilations or 1,
    )  # fmt: skip


@reads("LpPool")
def lp_pool(
    x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Ints = None, p: float = 2, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    """The norms of windows."""
    _check("LpPool", x, kernel_shape, pads, strides, dilations)
    return autograd.lp_pool(
        x, p, kernel_shape, strides or 1, padding_of(auto_pad, pads), bool(ceil_mode),
        dilations or 1,
    )  # fmt: skip


@reads("MaxPool")
def max_pool(
    x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Ints = None, pads: Ints = None, storage_order: int = 0, strides: Ints = None,
    outputs: int, frame: Frame,
) -> Any:  # fmt: skip
    """The maxima of windows and, if they are wanted, where they stand in the whole tensor."""
    _check("MaxPool", x, kernel_shape, pads, strides, dilations)
    geometry = (kernel_shape, strides or 1, padding_of(auto_pad, pads), dilations or 1)
    if outputs == 1:
        return autograd.max_pool(x, *geometry, bool(ceil_mode))
    y, places = autograd.max_pool(x, *geometry, bool(ceil_mode), return_indices=True)
    if storage_order:
        places = _by_columns(places, x.shape[2:])
    return y, places + _starts(x.shape, frame)


def _starts(shape: tuple[int, ...], frame: Frame) -> Tensor:
    """Where each channel begins among the elements of all, as a column."""
    area, count = math.prod(shape[2:]), math.prod(shape[:2])
    starts = np.arange(count).reshape((*shape[:2], *(1,) * (len(shape) - 2))) * area
    return to_tensor(starts, frame.device)


def _by_columns(places: Tensor, size: Sequence[int]) -> Tensor:
    """Positions in a channel in row-major order as those in column-major order."""
    made, rest, step = None, places, math.prod(size)
    for extent in reversed(size):
        step //= extent
        part = autograd.remainder(rest, extent) * step
        made, rest = part if made is None else made + part, autograd.floor_divide(rest, extent)
    return made


@reads("MaxUnpool", host="output_shape")
def max_unpool(
    x: Tensor, indices: Tensor, output_shape: Any = None, *, kernel_shape: Ints,
    pads: Ints = None, strides: Ints = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Zeros, with values at the positions that the maxima had; a greater shape has more zeros
    behind."""
    axes = x.rank - 2
    around, stride = tuple(pads or (0,) * (2 * axes)), tuple(strides or (1,) * axes)
    windows = zip(x.shape[2:], stride, kernel_shape, strict=True)
    size = [(n - 1) * s + k - around[d] - around[axes + d] for d, (n, s, k) in enumerate(windows)]
    places = indices - _starts((*x.shape[:2], *size), frame)
    y = autograd.max_unpool(x, places, kernel_shape, stride, output_size=size)
    if output_shape is None:
        return y
    more = [m - n for n, m in zip(y.shape, wholes(output_shape, "MaxUnpool"), strict=True)]
    if min(more) < 0:
        raise ShapeError(f"MaxUnpool: got output_shape {output_shape}, want {y.shape} at least")
    return autograd.pad(y, "constant", [0] * x.rank + more) if any(more) else y


# ---- whole channels ------------------------------------------------------------------------------


def _spatial(op: str, x: Tensor) -> tuple[int, ...]:
    if x.rank < 3:
        raise ShapeError(f"{op}: got shape {x.shape}, want (N, C) and more axes")
    return tuple(range(2, x.rank))


@reads("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    """The mean of each channel."""
    return autograd.reduce_mean(x, _spatial("GlobalAveragePool", x))


@reads("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    """The greatest element of each channel."""
    return autograd.reduce_max(x, _spatial("GlobalMaxPool", x))


@reads("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    """The norm of each channel."""
    axes = _spatial("GlobalLpPool", x)
    flat = x.reshape((*x.shape[:2], math.prod(x.shape[2:])))
    return autograd.norm(flat, p, 2).reshape((*x.shape[:2], *(1,) * len(axes)))

"""Pooling: maxima, means and norms of windows or of whole channels, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...autograd import windows
from ...errors import ShapeError
from ...tensor import Tensor, full, int64
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
    if auto_pad == "NOTSET" and not ceil_mode and min(size := _windows(x, *geometry)) == 0:
        y, places = (full((*x.shape[:2], *size), 0, x.device, one) for one in (x.dtype, int64))
        return y if outputs == 1 else (y, places)
    if outputs == 1:
        return autograd.max_pool(x, *geometry, bool(ceil_mode))
    y, places = autograd.max_pool(x, *geometry, bool(ceil_mode), return_indices=True)
    if storage_order:
        places = _by_columns(places, x.shape[2:])
    return y, places + _starts(x.shape, frame)


def _windows(x: Tensor, kernel: Sequence[int], strides: Any, pads: Any, gaps: Any) -> list[int]:
    """How many windows there are along each axis: none where an image does not hold one."""
    axes = x.rank - 2
    around = windows.around(pads, axes, "MaxPool: pads")
    reach = windows.extents(kernel, windows.along(gaps, axes, "MaxPool: dilations"))
    steps = windows.along(strides, axes, "MaxPool: strides")
    return [
        (n + around[d] + around[axes + d] - reach[d]) // steps[d] + 1
        for d, n in enumerate(x.shape[2:])
    ]


def _starts(shape: tuple[int, ...], frame: Frame) -> Tensor:
    """Where each channel begins among the elements of all, as a column."""
    area, count = math.prod(shape[2:]), math.prod(shape[:2])
    starts = np.arange(count).reshape((*shape[:2], *(1,) * (len(shape) - 2))) * area
    return to_tensor(starts, frame.device)


def _by_columns(places: Tensor, size: Sequence[int]) -> Tensor:
    """Positions in a channel in row-major order as those in column-major order."""
    made, step = None, 1
    for at, extent in zip(_along(places, size), size, strict=True):
        made, step = at if made is None else made + at * step, step * extent
    return made


@reads("MaxUnpool", host="output_shape")
def max_unpool(
    x: Tensor, indices: Tensor, output_shape: Any = None, *, kernel_shape: Ints,
    pads: Ints = None, strides: Ints = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Zeros, with values at the positions that the maxima had in an image of the given extents, by
    default of the least."""
    axes = x.rank - 2
    around, stride = tuple(pads or (0,) * (2 * axes)), tuple(strides or (1,) * axes)
    found = zip(x.shape[2:], stride, kernel_shape, strict=True)
    least = [(n - 1) * s + k - around[d] - around[axes + d] for d, (n, s, k) in enumerate(found)]
    size = least if output_shape is None else _given(x, output_shape)
    places, others = (indices - _starts((*x.shape[:2], *of), frame) for of in (size, least))
    if size != least and all(n >= m for n, m in zip(size, least, strict=True)):
        each = zip(x.shape[2:], stride, around[:axes], strict=True)
        begins = [np.arange(n) * s - p for n, s, p in each]
        places = _of_either(places, size, others, least, [*zip(begins, kernel_shape, strict=True)])
    return autograd.max_unpool(x, places, kernel_shape, stride, output_size=size)


def _given(x: Tensor, shape: Any) -> list[int]:
    front, size = (list(wholes(shape, "MaxUnpool")[part]) for part in (slice(2), slice(2, None)))
    if front != list(x.shape[:2]) or len(size) != x.rank - 2:
        raise ShapeError(f"MaxUnpool: got output_shape {shape} for {x.shape}")
    return size


def _of_either(
    places: Tensor, size: list[int], others: Tensor, least: list[int], spans: list[Any]
) -> Tensor:
    """Positions in an image of a size; or those in the least image if they alone are within the
    windows, as in the test of ONNX's own suite."""
    at = _along(others, least)
    is_least = autograd.logical_and(
        _are_in(at, spans), autograd.logical_not(_are_in(_along(places, size), spans))
    )
    made = at[0]
    for one, extent in zip(at[1:], size[1:], strict=True):
        made = made * extent + one
    return autograd.where(is_least, made, places)


def _along(places: Tensor, size: Sequence[int]) -> list[Tensor]:
    """Positions in a channel by axis, the first of which may be beyond it."""
    made = []
    for extent in reversed(size[1:]):
        made.insert(0, autograd.remainder(places, extent))
        places = autograd.floor_divide(places, extent)
    return [places, *made]


def _are_in(at: list[Tensor], spans: list[Any]) -> Tensor:
    """Whether all positions are in the windows, given by their begins and extents, of their
    values."""
    made = []
    for d, (one, (begin, extent)) in enumerate(zip(at, spans, strict=True)):
        begin = begin.reshape(-1, *(1,) * (len(at) - 1 - d))
        made += (autograd.all(one >= begin), autograd.all(one < begin + extent))
    return autograd.all(autograd.stack(made))


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

"""Pooling to a given size: window i of m over n elements is from floor(i n / m) to
ceil((i + 1) n / m), as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import wholes
from . import ops
from .along import take_along_axis
from .casting import floating
from .pooling import PoolingHandle, pooling_2d
from .reduce import argmax, reduce_mean
from .shape import apart, cat, reshape, slice
from .table import public

#: The greatest size that may exceed the extent, as each window is computed by itself.
_MOST = 4096
Sizes = int | None | Sequence[int | None]


def _sizes(x: Tensor, output_size: Sizes, name: str) -> tuple[int, ...]:
    """The extents of the result's last axes; None keeps an extent, one int is for all axes."""
    if output_size is None or isinstance(output_size, int):
        given: tuple[Any, ...] = (output_size,) * max(x.rank - 2, 0)
    else:
        given = tuple(output_size)
    if not given or x.rank < len(given) + 1:
        want = "a size for each axis after (N, C)"
        raise ShapeError(f"{name}: got shape {x.shape} and output_size {output_size}, want {want}")
    have = x.shape[-len(given) :]
    kept = [n if m is None else m for n, m in zip(have, given, strict=True)]
    sizes = wholes(kept, f"{name}: output_size")
    if min(sizes) < 1:
        raise ValueError(f"{name}: output_size: got {output_size}, want at least 1")
    if any(m > max(n, _MOST) for n, m in zip(have, sizes, strict=True)):
        raise ValueError(f"{name}: output_size: got {output_size} for {x.shape}, want less")
    if 0 in have:
        raise ShapeError(f"{name}: got shape {x.shape}, want an element on each axis pooled over")
    return sizes


def _along(x: Tensor, axis: int, size: int, is_max: bool) -> Tensor:
    """Maxima or means of `size` windows along one axis."""
    n = x.shape[axis]
    if n == size:
        return x
    ends = [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
    if is_max:
        return take_along_axis(x, _first_maxima(x.detach(), axis, ends), axis)
    if n % size == 0:
        parts = reshape(x, (*x.shape[:axis], size, n // size, *x.shape[axis + 1 :]))
        return reduce_mean(parts, axis + 1, 0)
    return cat([reduce_mean(slice(x, [a], [b], [axis]), axis, 1) for a, b in ends], axis)


def _first_maxima(x: Tensor, axis: int, ends: list[tuple[int, int]]) -> Tensor:
    """Where along an axis the first of the greatest elements of each window is."""
    size, each = len(ends), x.shape[axis] // len(ends)
    if size * each == x.shape[axis]:
        parts = ops.reshape(x, (*x.shape[:axis], size, each, *x.shape[axis + 1 :]))
        starts = ops.arange(size, x, step=each)
        return argmax(parts, axis + 1) + ops.reshape(starts, (size,) + (1,) * (x.rank - axis - 1))
    return cat([argmax(slice(x, [a], [b], [axis]), axis, 1) + a for a, b in ends], axis)


def _adaptive(x: Tensor, output_size: Sizes, name: str, is_max: bool) -> Tensor:
    x = floating(x)
    sizes = _sizes(x, output_size, name)
    have = x.shape[-len(sizes) :]
    if x.rank == 4 and len(sizes) == 2 and not any(n % m for n, m in zip(have, sizes, strict=True)):
        window = [n // m for n, m in zip(have, sizes, strict=True)]
        return pooling_2d(PoolingHandle(window, window, 0, is_max), x)
    # From the last axis on, the first maximum is that in row-major order, as `pooling_2d` has it.
    # Means are faster from the first on, whose parts are long.
    given, order = x, list(enumerate(sizes, x.rank - len(sizes)))
    for axis, size in order[::-1] if is_max else order:
        x = _along(x, axis, size, is_max)
    return apart(x, given)


@public()
def adaptive_avg_pool(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of windows that divide the last axes into `output_size` parts (PyTorch
    adaptive_avg_pool1d, 2d, 3d).

    Args:
        x: (..., C, *spatial); integers become float32.
        output_size: one int or None for each spatial axis, or one for all axes after (N, C); None
            keeps the extent. Window i of m over n elements is from floor(i n / m) to
            ceil((i + 1) n / m).

    Raises:
        ShapeError: too few axes, or an axis without elements.
        ValueError, TypeError: a size below 1, above 4096 and the extent, or not an int.
    """
    return _adaptive(x, output_size, "adaptive_avg_pool", False)


@public()
def adaptive_max_pool(x: Tensor, output_size: Sizes) -> Tensor:
    """The maxima of the windows of `adaptive_avg_pool` (PyTorch adaptive_max_pool1d, 2d, 3d).

    Of equal elements the first counts, and NaN is greater than all numbers, as in `max_pool`.

    Raises:
        ShapeError: too few axes, or an axis without elements.
        ValueError, TypeError: a size below 1, above 4096 and the extent, or not an int.
    """
    return _adaptive(x, output_size, "adaptive_max_pool", True)

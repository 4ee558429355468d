"""Operations, cached by their attributes, and what many gradient rules share."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import DType, Op
from ..device import report_warnings
from ..tensor import Tensor
from .table import public

#: The inputs, outputs or gradients of an operation; a gradient that there is not is None.
Tensors = tuple[Tensor, ...]
Grads = tuple[Tensor | None, ...]


@functools.lru_cache(maxsize=4096, typed=True)
def op(name: str, **attrs: Any) -> Op:
    """The operation with a name and attributes; equal ones are one object."""
    return _core.Op(name, **attrs)


@functools.lru_cache(maxsize=4096)
def reduce_op(f: str, axes: tuple[int, ...], keepdims: bool) -> Op:
    """The reduction `f` over `axes`, all of them for an empty tuple."""
    return _core.Op("reduce", f=f, axes=axes, keepdims=keepdims)


@functools.lru_cache(maxsize=4096, typed=True)
def _scalar_op(f: str, scalar: float, reverse: bool) -> Op:
    return _core.Op("binary_scalar", f=f, scalar=scalar, reverse=reverse)


def completed(dys: list[Tensor | None], metas: Iterable[Any]) -> Tensors | None:
    """The gradients of all outputs, zeros for unused outputs; None if all are unused.

    Args:
        metas: shape, device and dtype of each.
    """
    found = [dy for dy in dys if dy is not None]
    if len(found) in (0, len(dys)):
        return tuple(found) or None
    to = found[0].device
    return tuple(
        op("fill", device=to, value=0, shape=meta[0], dtype=meta[2].name)() if dy is None else dy
        for dy, meta in zip(dys, metas, strict=True)
    )


def greatest_so_far(axis: int) -> Op:
    """The running maxima along an axis."""
    return op("scan", f="max", axis=axis, exclusive=False, reverse=False)


def scalar_op(f: str, scalar: float, reverse: bool = False) -> Op:
    """`tensor f scalar`, or `scalar f tensor` where `reverse`."""
    if scalar == 0 and math.copysign(1, scalar) < 0:  # -0.0 equals 0.0 as a key of the cache
        return _core.Op("binary_scalar", f=f, scalar=scalar, reverse=reverse)
    return _scalar_op(f, scalar, reverse)


def unary(f: str, x: Tensor) -> Tensor:
    """The function `f` of each element."""
    return op("unary", f=f)(x)


@functools.lru_cache(maxsize=512)
def unary_op(family: str, tag: str, params: tuple[tuple[str, float | None], ...]) -> Op:
    """The parametrised function `tag` (or its gradient) with these attributes."""
    return _core.Op(family, f={tag: dict(params)})


copy = op("copy")
add = op("binary", f="add")
sub = op("binary", f="sub")
mul = op("binary", f="mul")
div = op("binary", f="div")
neg = op("unary", f="neg")
where = op("where")
_matmul = op("matmul")


def _first_product(a: Tensor, b: Tensor) -> Tensor:
    """The first matrix product also shows the engine's warnings about its libraries."""
    global matmul
    matmul = _matmul
    made = _matmul(a, b)
    report_warnings()
    return made


matmul = _first_product


def scale(x: Tensor, factor: float) -> Tensor:
    """`x * factor`."""
    return x if factor == 1 else scalar_op("mul", factor)(x)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """`x` in another dtype; `x` itself if it already has it."""
    return x if x.dtype == dtype else op("cast", dtype=dtype.name)(x)


def convert(x: Tensor, dtype: DType) -> Tensor:
    """`x` in another dtype, which must be able to hold it; `x` itself if it already has it."""
    return x if x.dtype == dtype else op("convert", dtype=dtype.name)(x)


def full(shape: tuple[int, ...], value: float, like: Tensor) -> Tensor:
    """A new tensor of `value` with the dtype of `like`, on its device."""
    return op("fill", device=like.device, value=value, shape=shape, dtype=like.dtype.name)()


def arange(count: int, like: Tensor, start: int = 0, step: int = 1) -> Tensor:
    """`count` int64 numbers at equal distances, on the device of `like`."""
    made = op("arange", device=like.device, start=start, step=step, count=count, dtype="int64")
    return made()


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` in another shape: a view if strides allow one, else a view of a copy."""
    view = x.view_reshape(shape)
    return copy(x).view_reshape(shape) if view is None else view


def ordered_like(x: Tensor, other: Tensor) -> Tensor:
    """`x` in the memory order of another tensor of its shape, copied if its own differs."""
    strides = other.strides
    if x.strides == strides:
        return x
    order = sorted(range(x.rank), key=lambda axis: -abs(strides[axis]))
    return copy(x.view_permute(order)).view_permute([order.index(axis) for axis in range(x.rank)])


def swap(x: Tensor) -> Tensor:
    """A view with the last two axes swapped."""
    rank = x.rank
    return x.view_permute((*range(rank - 2), rank - 1, rank - 2))


def reduce_to(dy: Tensor, shape: tuple[int, ...] | None) -> Tensor:
    """Sums a gradient over the axes along which an input of `shape` was broadcast."""
    if shape is None:
        return dy
    have = dy.shape
    if have == shape:
        return dy
    axes = axis_helper(have, shape)
    if axes:
        dy = op("reduce", f="sum", axes=axes, keepdims=True)(dy)
    return reshape(dy, shape)


@public()
def axis_helper(y_shape: tuple[int, ...], x_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of `y_shape` along which `x_shape` was broadcast (SINGA axis_helper)."""
    added = len(y_shape) - len(x_shape)
    inner = (i + added for i, n in enumerate(x_shape) if n == 1 and y_shape[i + added] != 1)
    return (*range(added), *inner)


def shapes_if_broadcast(xs: tuple[Tensor, ...], y: Tensor) -> tuple[tuple[int, ...], ...] | None:
    """The shapes of the inputs, or None where all have the output's."""
    shape = y.shape
    shapes = tuple(x.shape for x in xs)
    return None if all(s == shape for s in shapes) else shapes


def part(x: Tensor, axis: int, first: int, last: int) -> Tensor:
    """A view of the positions along an axis from `first` to before `last`."""
    ranges = [(0, extent, 1) for extent in x.shape]
    ranges[axis] = (first if last > first else 0, last - first, 1)
    return x.view_slice(ranges)


def turned(x: Tensor, axis: int) -> Tensor:
    """A view with an axis in the opposite order."""
    ranges = [(0, extent, 1) for extent in x.shape]
    if count := x.shape[axis]:
        ranges[axis] = (count - 1, count, -1)
    return x.view_slice(ranges)


def joined(parts: Iterable[Tensor], axis: int) -> Tensor:
    """The parts that have any positions along an axis, one after another."""
    return op("concat", axis=axis)(*(one for one in parts if one.shape[axis]))

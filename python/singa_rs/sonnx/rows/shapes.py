"""Shapes: what they are, other ones for the same elements, and tensors made from shapes alone."""

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
from ..values import NAMES, dtype_name, element_of, to_tensor


@reads("Identity", raw=True)
def identity(x: Any) -> Any:
    """The value itself."""
    return x


@reads("Constant")
def constant(
    *, value: Any = None, value_float: float | None = None, value_int: int | None = None,
    value_floats: Any = None, value_ints: Any = None, value_string: str | None = None,
    value_strings: Any = None, sparse_value: Any = None,
) -> Any:  # fmt: skip
    """A constant, on the host until a node wants it elsewhere."""
    for one, dtype in (
        (value, None), (sparse_value, None), (value_float, np.float32), (value_int, np.int64),
        (value_floats, np.float32), (value_ints, np.int64), (value_string, object),
        (value_strings, object),
    ):  # fmt: skip
        if one is not None:
            return np.array(one, dtype)
    raise ValueError("Constant: got no value")


# ---- what shapes are -----------------------------------------------------------------------------


def extents(x: Any) -> tuple[int, ...]:
    """The shape of a tensor or an array."""
    return x.shape if isinstance(x, Tensor) else np.shape(x)


@reads("Shape", raw=True)
def shape(x: Any, *, start: int = 0, end: int | None = None) -> np.ndarray:
    """The extents of the axes from `start` to `end`."""
    return np.array(extents(x), np.int64)[start:end]


@reads("Size", raw=True)
def size(x: Any) -> np.ndarray:
    """The number of elements."""
    return np.array(math.prod(extents(x)), np.int64)


# ---- other shapes --------------------------------------------------------------------------------


@reads("Reshape", host="shape")
def reshape(x: Tensor, shape: Any, *, allowzero: int = 0) -> Tensor:
    """Another shape: -1 takes what is left, 0 keeps the extent unless `allowzero`."""
    to = list(wholes(shape, "Reshape: shape"))
    kept = set() if allowzero else {i for i, n in enumerate(to) if n == 0}
    if any(n < -1 for n in to) or to.count(-1) > 1 or (allowzero and {0, -1} <= set(to)):
        want = "extents, and one -1 at most, not beside a 0 that is an extent"
        raise ShapeError(f"Reshape: got {to}, want {want}")
    if max(kept, default=-1) >= x.rank:
        raise ShapeError(f"Reshape: got {to} for shape {x.shape}, which has no extent for a 0")
    if -1 in to:
        to[to.index(-1)] = _rest(x.shape, to, kept)
    return x.reshape([x.shape[i] if i in kept else n for i, n in enumerate(to)])


def _rest(have: tuple[int, ...], to: Sequence[int], kept: set[int]) -> int:
    """What is left for -1: kept extents, which may be 0, stand on both sides."""
    elements = math.prod(n for i, n in enumerate(have) if i not in kept)
    others = math.prod(n for i, n in enumerate(to) if i not in kept and n != -1)
    if not others or elements % others:
        raise ShapeError(f"Reshape: got {tuple(to)} for shape {have}, want one that fits")
    return elements // others


@reads("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """A matrix with the axes before `axis` as its rows."""
    return autograd.flatten(x, axis)


@reads("Squeeze", host="axes")
def squeeze(x: Tensor, axes: Any = None) -> Tensor:
    """Without these axes of extent 1; `axes` is an attribute below opset 13."""
    if axes is not None and not len(axes):
        return autograd.identity(x)
    return autograd.squeeze(x, () if axes is None else wholes(axes, "Squeeze: axes"))


@reads("Unsqueeze", host="axes")
def unsqueeze(x: Tensor, axes: Any) -> Tensor:
    """With axes of extent 1 at these places; `axes` is an attribute below opset 13."""
    return autograd.unsqueeze(x, wholes(axes, "Unsqueeze: axes"))


@reads("Transpose")
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """The axes in another order, reversed by default."""
    return autograd.transpose(x, perm)


@reads("Expand", host="shape")
def expand(x: Tensor, shape: Any) -> Tensor:
    """Broadcast with a shape, both ways."""
    return autograd.expand(x, wholes(shape, "Expand: shape"))


# ---- made from shapes and numbers ----------------------------------------------------------------


@reads("ConstantOfShape", host="shape")
def constant_of_shape(shape: Any, *, value: Any = None, frame: Frame) -> Tensor:
    """One value in a shape, float32 zeros by default."""
    single = np.zeros((), np.float32) if value is None else np.reshape(value, ())
    return autograd.expand(to_tensor(single, frame.device), wholes(shape, "ConstantOfShape"))


@reads("Range", host="delta", kept="start limit")
def range_(start: Any, limit: Any, delta: Any, *, frame: Frame) -> Tensor:
    """Numbers from `start` to before `limit`, `delta` apart."""
    is_whole = isinstance(start, Tensor) and not start.dtype.is_float
    if frame.guesses is not None and is_whole and np.ravel(delta)[0] == 1:
        first = autograd.cast(start, "int64")
        # The count is nearly always the same.
        count = frame.read_small(autograd.cast(limit, "int64") - first)
        places = to_tensor(np.arange(int(np.ravel(count)[0])), frame.device)
        return autograd.cast(first.reshape((1,)) + places, start.dtype)
    start, limit = frame.read_small(start), frame.read_small(limit)
    first, last, step = (np.reshape(x, ())[()] for x in (start, limit, delta))
    if not step:
        raise ValueError(f"Range: got delta {step}, want another than 0")
    # In float64, as ONNX's functions and runtimes count.
    count = math.ceil((float(last) - float(first)) / float(step))
    made = np.arange(max(0, count)).astype(first.dtype)
    return to_tensor((first + made * step).astype(first.dtype), frame.device)


@reads("EyeLike", raw=True)
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0, frame: Frame) -> Tensor:
    """Ones on a diagonal, zeros elsewhere, in the shape of `x`."""
    rows = extents(x)
    if len(rows) != 2:
        raise ShapeError(f"EyeLike: got shape {rows}, want a matrix")
    name = NAMES[element_of(x)] if dtype is None else dtype_name(dtype)
    return autograd.cast(to_tensor(np.eye(*rows, k, dtype=bool), frame.device), name)

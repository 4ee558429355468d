"""Nodes that calculate with shapes and positions, in NumPy: those that nearly every model has.

onnx's reference has them all, but copies every version of every operator's schema when it is
imported, 11 MiB of them, and makes an evaluator for each node.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import dtype_of
from .host_positions import OF_POSITIONS

#: Kinds of dtypes that are numbers of NumPy's own.
_NUMBERS = "biuf"
#: Operators that take strings, too.
_OF_STRINGS = {"Unique"}


def evaluated(
    kind: str, xs: Sequence[Any], attrs: Mapping[str, Any]
) -> tuple[np.ndarray, ...] | None:
    """The outputs of an operator for arrays, None for inputs that are left out; None if it is none
    of those here, or its inputs are not such as it usually has.

    Raises:
        IndexError, ValueError: the inputs do not fit one another.
        ZeroDivisionError: whole numbers are divided by 0.
    """
    is_other = any(x is not None and x.dtype.kind not in _NUMBERS for x in xs)
    if is_other and kind not in _OF_STRINGS:
        return None
    if (of_alike := _OF_ALIKE.get(kind)) is not None:
        is_alike = len({x.dtype for x in xs}) == 1 and not attrs
        return (np.asarray(of_alike(*xs)),) if is_alike else None
    run = _OTHERS.get(kind)
    found = None if run is None else run(*xs, **attrs)
    if found is None:
        return None
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two arrays, for any number of them."""
    return lambda *xs: functools.reduce(function, xs)


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotients (ONNX Div), those of whole numbers rounded towards 0."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    if not np.all(y):
        raise ZeroDivisionError("whole numbers are divided by zero")
    floors = np.floor_divide(x, y)
    return floors + ((floors * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


#: Operators without attributes whose inputs have one dtype.
_OF_ALIKE: dict[str, Callable[..., Any]] = {
    "Add": np.add, "And": np.logical_and, "Div": _divide, "Equal": np.equal,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
    "LessOrEqual": np.less_equal, "Max": _each(np.maximum), "Min": _each(np.minimum),
    "Mul": np.multiply, "Neg": np.negative, "Not": np.logical_not, "Or": np.logical_or,
    "Sqrt": np.sqrt, "Sub": np.subtract,
}  # fmt: skip


def _axes(axes: Any) -> tuple[int, ...] | None:
    """Axes of an input or an attribute."""
    return None if axes is None else tuple(map(int, np.ravel(axes)))


def _cast(x: np.ndarray, *, to: int, **_: Any) -> np.ndarray | None:
    try:
        dtype = dtype_of(to)
    except KeyError:
        return None
    return x.astype(dtype) if dtype.kind in _NUMBERS else None


def _constant_of_shape(shape: np.ndarray, *, value: Any = None) -> np.ndarray | None:
    filling = np.zeros(1, np.float32) if value is None else value
    return np.full(tuple(shape), filling.flat[0], filling.dtype) if filling.size == 1 else None


def _expand(x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape)))


def _range(start: np.ndarray, limit: np.ndarray, delta: np.ndarray, **_: Any) -> Any:
    if start.dtype.itemsize < 4:  # floats of 16 bits are summed in another dtype
        return None
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


def _product(x: np.ndarray, axes: Any = None, *, keepdims: int = 1, **others: Any) -> Any:
    over = _axes(axes)
    if others or over == ():  # what no axes mean depends on the opset, and on an attribute
        return None
    return np.multiply.reduce(x, over, x.dtype, keepdims=bool(keepdims))


def _reshape(x: np.ndarray, shape: np.ndarray, *, allowzero: int = 0) -> np.ndarray:
    extents = [n if n or allowzero else x.shape[i] for i, n in enumerate(shape.tolist())]
    return x.reshape(extents)


def _slice(x: np.ndarray, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """ONNX Slice; below opset 10 all but the array are attributes."""
    over = range(len(np.ravel(starts))) if axes is None else _axes(axes)
    each = np.ones(len(over), np.int64) if steps is None else steps
    found = [slice(None)] * x.ndim
    for start, end, axis, step in zip(*map(np.ravel, (starts, ends, over, each)), strict=True):
        # A start before the first element is the first one, also of slices that go backwards.
        found[axis] = slice(max(int(start), -x.shape[axis]), int(end), int(step))
    return x[tuple(found)]


def _squeeze(x: np.ndarray, axes: Any = None) -> np.ndarray:
    return np.squeeze(x, _axes(axes))


def _unsqueeze(x: np.ndarray, axes: Any) -> np.ndarray:
    return np.expand_dims(x, _axes(axes))


#: The others, by what they are called with.
_OTHERS: dict[str, Callable[..., Any]] = {
    **OF_POSITIONS,
    "Cast": _cast,
    "Concat": lambda *xs, axis: np.concatenate(xs, axis),
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Gather": lambda x, places, *, axis=0: np.take(x, places, axis),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Tile": np.tile,
    "Transpose": lambda x, *, perm=None: np.transpose(x, perm),
    "Unsqueeze": _unsqueeze,
    "Where": lambda c, x, y: np.where(c, x, y) if x.dtype == y.dtype else None,
}

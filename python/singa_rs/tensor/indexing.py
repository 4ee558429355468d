"""The meaning of `t[key]` by NumPy's rules, split into slices and one array of positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import GraphError, Handle, bool_
from ..refusals import is_integral
from .numbers import as_array

Range = tuple[int, int, int]


class Selection(NamedTuple):
    """A slice of each axis, then a reshape. With `indices`, then a permutation of the axes, and a
    gather from `axis` on by arrays or tensors that broadcast, one for each of as many axes."""

    ranges: tuple[Range, ...]
    shape: tuple[int, ...]
    indices: tuple[Any, ...] = ()
    axis: int = 0
    order: tuple[int, ...] | None = None


def parse(key: Any, shape: tuple[int, ...]) -> Selection:
    """The selection that `key` makes from a tensor of `shape`.

    Keys are ints, slices with steps of either sign, None, Ellipsis, and integer arrays, lists,
    tensors and boolean masks, which broadcast together.

    Raises:
        IndexError: too many indices, one out of range, arrays that do not broadcast, a mask that
            does not fit.
        TypeError: a key of another type.
    """
    keys = key if type(key) is tuple else (key,)
    items = _expanded(keys, len(shape))
    ranges: list[Range] = []
    made: list[int] = []
    arrays, first = _Arrays(), 0
    chosen = [i for i, item in enumerate(items) if not _is_span(item)]
    for i, item in enumerate(items):
        first = len(made) if chosen and i == chosen[0] else first
        extent = shape[len(ranges)] if len(ranges) < len(shape) else 0
        if item is None or item is Ellipsis:
            made += [1] if item is None else []
        elif isinstance(item, slice):
            ranges.append(span(item, extent))
            made.append(ranges[-1][1])
        elif _is_int(item):
            ranges.append((_place(int(item), extent, len(ranges)), 1, 1))
        else:
            covered = shape[len(ranges) : len(ranges) + _width(item)]
            ranges += [(0, n, 1) for n in covered]
            made += arrays.add(item, len(made), covered)
    if not arrays.indices:
        return Selection(tuple(ranges), tuple(made))
    # As in NumPy, arrays (and ints) with a slice between them put their axes first.
    is_apart = chosen[-1] - chosen[0] >= len(chosen)
    rest = [axis for axis in range(len(made)) if axis not in arrays.axes]
    order = (*arrays.axes, *rest) if is_apart else None
    axis = 0 if is_apart else first
    arrays.check()
    return Selection(tuple(ranges), tuple(made), tuple(arrays.indices), axis, order)


class _Arrays:
    """The arrays of a key, each with the axis of the sliced tensor that it indexes."""

    def __init__(self) -> None:
        self.axes: list[int] = []
        self.indices: list[Any] = []

    def add(self, item: Any, axis: int, covered: tuple[int, ...]) -> tuple[int, ...]:
        """Adds an array that covers these extents; returns those that the sliced tensor gets."""
        if item.dtype != np.bool_:
            found = [item if isinstance(item, Handle) else _checked(item, *covered)]
        elif item.ndim == 0:  # indexes a new axis
            covered, found = (1,), [np.zeros(int(item), np.int64)]
        elif item.shape != covered:
            raise IndexError(f"index: got a mask of shape {item.shape}, want {covered}")
        else:
            found = list(item.nonzero())
        self.indices += found
        self.axes += range(axis, axis + len(found))
        return covered

    def check(self) -> None:
        """Raises unless the arrays broadcast together."""
        if len(self.indices) == 1:
            return
        try:
            np.broadcast_shapes(*(tuple(i.shape) for i in self.indices))
        except ValueError:
            shapes = ", ".join(str(tuple(i.shape)) for i in self.indices)
            raise IndexError(
                f"index: got arrays of shapes {shapes}, want them to broadcast"
            ) from None


def span(item: slice, extent: int) -> Range:
    """(start, count, step) of a slice over `extent` elements."""
    start, stop, step = item.indices(extent)
    count = len(range(start, stop, step))
    # A step that is never taken may exceed the engine's integers.
    return start if count else 0, count, step if count > 1 else 1


def _is_span(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, slice)


def _is_int(item: Any) -> bool:
    return type(item) is int or is_integral(item)


def _expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """The keys with arrays converted, Ellipsis followed by the slices that it stands for, and full
    slices for the remaining axes."""
    keys = tuple(map(_normal, keys))
    used = sum(_width(k) for k in keys)
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("index: got several Ellipsis, want at most one")
    if used > rank:
        raise IndexError(f"index: got {used} indices for {rank} dimensions")
    rest = [slice(None)] * (rank - used)
    if Ellipsis not in [k if k is Ellipsis else None for k in keys]:
        return [*keys, *rest]
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    return [*keys[: at + 1], *rest, *keys[at + 1 :]]


def _normal(key: Any) -> Any:
    if key is None or key is Ellipsis or isinstance(key, slice) or _is_int(key):
        return key
    if isinstance(key, Handle):
        if key.dtype.is_int:
            return key
        if key.numel and key.dtype != bool_:
            raise IndexError(f"index: got a tensor of {key.dtype.name}, want integers or bools")
        key = _read(key)
    if not isinstance(key, (list, np.ndarray, bool, np.bool_, tuple, range)):
        raise TypeError(
            f"index: got {type(key).__name__}, want ints, slices, None, Ellipsis, or arrays"
        )
    array = as_array(key, "index")
    array = array.astype(np.int64) if array.size == 0 and array.dtype.kind == "f" else array
    if array.dtype.kind not in "iub":
        raise IndexError(f"index: got an array of {array.dtype}, want integers or bools")
    return int(array) if array.dtype.kind != "b" and array.ndim == 0 else array


def _read(mask: Any) -> np.ndarray:
    try:
        return mask.to_numpy()
    except GraphError as error:
        raise GraphError(
            "index: got a mask, on which the size depends, and a recording lacks its values; "
            "where, masked_fill and a[mask] = value, the same for all places, do without: in the "
            f"place of a[mask] *= 2 stands a = where(mask, a * 2, a) ({error})"
        ) from None


def _width(key: Any) -> int:
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype == np.bool_ else 1


def _place(i: int, extent: int, axis: int) -> int:
    if not -extent <= i < extent:
        raise IndexError(f"index: {i} is out of range for axis {axis} of size {extent}")
    return i + extent if i < 0 else i


def _checked(array: np.ndarray, extent: int) -> np.ndarray:
    """Indices into an axis, checked and made non-negative."""
    if array.size and not (-extent <= int(array.min()) and int(array.max()) < extent):
        bad = array.min() if -extent > int(array.min()) else array.max()
        raise IndexError(f"index: {bad} is out of range for an axis of size {extent}")
    array = array.astype(np.int64)
    return np.where(array < 0, array + extent, array)

"""What `t[key]` means: NumPy's rules, told apart into slices and one list of places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._core import Handle

Range = tuple[int, int, int]


class Selection(NamedTuple):
    """Slices of each axis, then a shape; or, with `places`, a gather along `axis` after that."""

    ranges: tuple[Range, ...]
    shape: tuple[int, ...]
    axis: int = 0
    places: Any = None


def parse(key: Any, shape: tuple[int, ...]) -> Selection:
    """The selection that `key` makes of a tensor of `shape`.

    Ints, slices with steps of either sign, None, Ellipsis, and one integer array, list, tensor or
    boolean mask; ints beside an array are one-element slices of their axes.

    Raises:
        IndexError: too many indices, an int out of range, two arrays, a mask that does not fit.
        TypeError: a key of another type.
    """
    keys = key if type(key) is tuple else (key,)
    simple = _basic(keys, shape)
    if simple is not None:
        return simple
    keys = _expanded(keys, len(shape))
    ranges: list[Range] = []
    made: list[int] = []
    axis, places = 0, None
    for item in keys:
        if item is None:
            made.append(1)
            continue
        extent = shape[len(ranges)]
        if isinstance(item, slice):
            start, stop, step = item.indices(extent)
            count = len(range(start, stop, step))
            ranges.append((start if count else 0, count, step))
            made.append(count)
        elif _is_int(item):
            ranges.append((_place(int(item), extent, len(ranges)), 1, 1))
        else:
            if places is not None:
                raise IndexError("index: got two arrays, want at most one")
            axis, places = len(made), item
            span = item.ndim if item.dtype == np.bool_ else 1
            covered = shape[len(ranges) : len(ranges) + span]
            places = _places(item, covered)
            ranges += [(0, n, 1) for n in covered]
            made.append(int(np.prod(covered)))
    return Selection(tuple(ranges), tuple(made), axis, places)


def _basic(keys: tuple[Any, ...], shape: tuple[int, ...]) -> Selection | None:
    """The selection by ints and slices alone, which most keys are; else None."""
    if len(keys) > len(shape):
        return None
    ranges, made = [], []
    for axis, item in enumerate(keys):
        extent = shape[axis]
        if type(item) is int:
            ranges.append((_place(item, extent, axis), 1, 1))
        elif type(item) is slice:
            start, stop, step = item.indices(extent)
            count = len(range(start, stop, step))
            ranges.append((start if count else 0, count, step))
            made.append(count)
        else:
            return None
    rest = shape[len(keys) :]
    return Selection((*ranges, *((0, n, 1) for n in rest)), (*made, *rest))


def _is_int(item: Any) -> bool:
    return isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_))


def _expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """The keys with arrays as arrays, and with slices for Ellipsis and for what is left out."""
    keys = tuple(map(_normal, keys))
    used = sum(_width(k) for k in keys)
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("index: got two Ellipsis, want at most one")
    if used > rank:
        raise IndexError(f"index: got {used} indices for {rank} dimensions")
    rest = [slice(None)] * (rank - used)
    if Ellipsis not in [k if k is Ellipsis else None for k in keys]:
        return [*keys, *rest]
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    return [*keys[:at], *rest, *keys[at + 1 :]]


def _normal(key: Any) -> Any:
    if key is None or key is Ellipsis or isinstance(key, slice) or _is_int(key):
        return key
    if isinstance(key, Handle):
        key = key.to_numpy()
    if not isinstance(key, (list, np.ndarray, bool, np.bool_, tuple, range)):
        raise TypeError(
            f"index: got {type(key).__name__}, want ints, slices, None, Ellipsis, or one array"
        )
    array = np.asarray(key)
    array = array.astype(np.int64) if array.size == 0 and array.dtype.kind == "f" else array
    if array.dtype.kind not in "iub":
        raise IndexError(f"index: got an array of {array.dtype}, want integers or bools")
    if array.dtype.kind != "b" and array.ndim == 0:
        return int(array)
    return array


def _width(key: Any) -> int:
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype == np.bool_ else 1


def _place(i: int, extent: int, axis: int) -> int:
    if not -extent <= i < extent:
        raise IndexError(f"index: {i} is out of range for axis {axis} of size {extent}")
    return i + extent if i < 0 else i


def _places(array: np.ndarray, covered: tuple[int, ...]) -> np.ndarray:
    """Indices into the (joined) axes that an array covers, checked."""
    if array.dtype == np.bool_:
        if array.shape != covered:
            raise IndexError(f"index: got a mask of shape {array.shape}, want {covered}")
        return np.flatnonzero(array)
    (extent,) = covered
    if array.size and not (-extent <= array.min() and array.max() < extent):
        bad = array.min() if -extent > array.min() else array.max()
        raise IndexError(f"index: {bad} is out of range for an axis of size {extent}")
    return np.where(array < 0, array + extent, array)

"""Nodes that sort, write and pad positions on the host, in NumPy: onnx's reference is wrong about
ties and repeated indices in some versions, and about negative pads in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: ONNX's reductions of updates with what is there.
_JOINS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def top_k(
    x: np.ndarray, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """ONNX TopK: of equal elements the first."""
    n = x.shape[axis]
    if largest:  # a stable order from the greatest on is that of the reversed array, reversed
        order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    count = int(np.ravel(k)[0])
    if not 0 <= count <= n:
        raise ValueError(f"got k {count} for {n} elements, want at most as many")
    places = np.take(order, range(count), axis)
    return np.take_along_axis(x, places, axis), places


def _written(
    x: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray, reduction: str
) -> np.ndarray:
    """A copy with updates at places, the last one of several, or joined with what is there."""
    made = x.copy()
    if reduction == "none":
        made[places] = updates
    elif reduction in _JOINS:
        _JOINS[reduction].at(made, places, updates)
    else:
        want = ", ".join(("none", *_JOINS))
        raise ValueError(f"got reduction {reduction!r}, want one of {want}")
    return made


def scatter_elements(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int = 0,
    reduction: str = "none",
) -> np.ndarray:  # fmt: skip
    """ONNX ScatterElements."""
    places = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return _written(x, tuple(places), updates, reduction)


def scatter_nd(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, reduction: str = "none"
) -> np.ndarray:
    """ONNX ScatterND."""
    return _written(x, tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


def unique(x: np.ndarray, *, axis: int | None = None, sorted: int = 1) -> tuple[np.ndarray, ...]:
    """ONNX Unique: in order, or each where it stands first."""
    values, first, inverse, counts = np.unique(x, True, True, True, axis)
    inverse = inverse.reshape(-1)
    if sorted:
        return values, first, inverse, counts
    order = np.argsort(first)
    taken = np.take(values, order, 0 if axis is None else axis)
    return taken, first[order], np.argsort(order)[inverse], counts[order]


def pad(
    x: np.ndarray, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant"
) -> np.ndarray:
    """ONNX Pad from opset 11 on: negative pads cut off first."""
    wide = np.zeros((x.ndim, 2), np.int64)
    wide[slice(None) if axes is None else axes] = np.reshape(pads, (2, -1)).T
    kept = tuple(
        slice(max(0, -before), n + min(0, after))
        for n, (before, after) in zip(x.shape, wide.tolist(), strict=True)
    )
    options = {"constant_values": 0 if value is None else np.ravel(value)[0]}
    return np.pad(x[kept], np.maximum(wide, 0), mode, **options if mode == "constant" else {})


#: By ONNX's names.
OF_POSITIONS: dict[str, Callable[..., Any]] = {
    "NonZero": lambda x: np.argwhere(x).T, "Pad": pad, "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd, "TopK": top_k, "Unique": unique,
}  # fmt: skip

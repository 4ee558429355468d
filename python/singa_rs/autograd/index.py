"""Selecting by place: indexing, gathering, embedding, conditions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._core import DTypeError, ShapeError, bool_, int64
from .._creation import from_numpy
from .._dtypes import promote
from .._indexing import parse
from .._numbers import as_array, whole
from ..tensor import Tensor, as_tensor
from . import ops
from .casting import cast
from .tape import Rule
from .views import Select, Transpose, _PlainReshape


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]` by NumPy's rules: a view, or a copy where the key has an array.

    Raises:
        IndexError: as NumPy (ValueError where a tensor as index is out of range).
    """
    found = parse(key, x.shape)
    y = Select(found.ranges, found.shape)(x)[0]
    if found.places is None:
        return y
    if found.order is not None:
        y = Transpose(found.order)(y)[0]
    if found.joined > 1:
        shape, end = y.shape, found.axis + found.joined
        one = math.prod(shape[found.axis : end])
        y = _PlainReshape((*shape[: found.axis], one, *shape[end:]))(y)[0]
    return gather(y, found.axis, found.places)


def as_indices(indices: Any, op: str, device: Any = None) -> Tensor:
    """Indices as a tensor of an int or float dtype; whether they are whole numbers is checked where
    they are used.

    Raises:
        DTypeError: bools, and what is no number.
        ValueError: an array's element that is no whole number.
    """
    if not isinstance(indices, Tensor):
        array = as_array(indices, f"{op}: indices")
        kept = array.size == 0 or array.dtype.kind != "b"
        indices = from_numpy(_whole(array, op), device, int64 if kept else None)
    if indices.dtype == bool_:
        raise DTypeError(f"{op}: got indices of bool, want integers")
    return indices


def _whole(array: np.ndarray, op: str) -> np.ndarray:
    if array.dtype.kind not in "biu":
        broken = array[~(np.isfinite(array) & (array == np.trunc(array)))]
        if broken.size:
            raise ValueError(f"{op}: got index {broken.flat[0]}, want an integer")
    return array


class Gather(Rule):
    """The entries at `indices` along an axis (ONNX Gather)."""

    def __init__(self, axis: int, indices: Any) -> None:
        self.axis, self.indices = whole(axis, "gather: axis"), indices

    def forward(self, x: Tensor) -> Tensor:
        self.places = as_indices(self.indices, "gather", x.device)
        return ops.op("gather", axis=self.axis)(x, self.places)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.size = xs[0].shape[self.axis]
        self.save(self.__dict__.pop("places"))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` added up at each entry."""
        return (ops.op("gather_grad", axis=self.axis, size=self.size)(dys[0], self.load(0)),)


def gather(x: Tensor, axis: int, indices: Any) -> Tensor:
    """The entries at `indices` (tensor, array or nested list; negative ones from the end).

    Shape `x.shape[:axis] + indices.shape + x.shape[axis + 1:]` (ONNX Gather).

    They are integers, of an int or float dtype.

    Raises:
        ValueError: an index out of range or with a fraction.
    """
    return Gather(axis, indices)(x)[0]


class Embedding(Rule):
    """The rows of a table at indices (SINGA Embedding)."""

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        if w.rank != 2:
            raise ShapeError(f"embedding: got a table of shape {w.shape}, want two dimensions")
        self.places = as_indices(x, "embedding", w.device)
        return ops.op("gather", axis=0)(w, self.places)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.size = xs[1].shape[0]
        self.save(self.__dict__.pop("places"))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[None, Tensor | None]:
        """None for the indices; for the table `dy` added up at each row."""
        grad = ops.op("gather_grad", axis=0, size=self.size)
        return None, grad(dys[0], self.load(0)) if wanted[1] else None


def embedding(x: Tensor, w: Tensor) -> Tensor:
    """The rows of `w` (n, m) at the indices `x` of any shape: shape `x.shape + (m,)`.

    Indices are integers, of an int or float dtype; negative ones count from the end.

    Raises:
        ValueError: an index out of range or with a fraction.
    """
    return Embedding()(as_indices(x, "embedding", w.device), w)[0]


class Where(Rule):
    """`x` where the condition holds, else `y` (ONNX Where)."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        condition = self.condition
        if not isinstance(condition, Tensor):
            condition = _core.from_numpy(
                as_array(condition, "where: condition").astype(bool), x.device
            )
        self.flags = ops.cast(condition, bool_)
        return ops.where(self.flags, x, y)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.shapes = ops.shapes_if_broadcast(xs, ys[0]) or (None, None)
        self.save(self.__dict__.pop("flags"))

    def gradients(
        self, dys: tuple[Tensor, ...], wanted: Any
    ) -> tuple[Tensor | None, Tensor | None]:
        """`dy` where each was taken, else 0."""
        (dy,), flags = dys, self.load(0)
        none, (a, b) = ops.full((), 0, dy), self.shapes
        return (
            ops.reduce_to(ops.where(flags, dy, none), a) if wanted[0] else None,
            ops.reduce_to(ops.where(flags, none, dy), b) if wanted[1] else None,
        )


def where(x: Any, y: Any, condition: Any) -> Tensor:
    """`x` where `condition` (third, as in SINGA) holds, else `y`; broadcasts (ONNX Where)."""
    like = next((t for t in (x, y) if isinstance(t, Tensor) and t.dtype.is_float), None)
    x, y = (as_tensor(t, dtype=None if like is None else like.dtype) for t in (x, y))
    if x.dtype != y.dtype:
        want = promote(x.dtype, y.dtype)
        x, y = cast(x, want), cast(y, want)
    return Where(condition)(x, y)[0]

"""Selecting by position: indexing, gathering, embedding, conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core
from .._core import DTypeError, ShapeError, bool_, int64
from ..compat.raw import raw_if
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_operand, device_of, from_numpy
from ..tensor.dtypes import promote
from ..tensor.indexing import parse
from ..tensor.numbers import as_array, whole
from ..tensor.placing import row_major
from . import ops
from .casting import cast, with_numbers
from .mode import mode
from .ops import Grads, Tensors
from .rule import Rule, function
from .table import public
from .tape import note
from .views import Index, PlainReshape, Select, Transpose, is_followed, note_view

if TYPE_CHECKING:
    from ..tensor.takers import TensorLike


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]` by NumPy's rules: a view, or a copy if the key has an array or a tensor.

    Raises:
        IndexError: as NumPy (ValueError if a tensor as index is out of range).
    """
    y = x.view_index(key)
    if y is not None:
        if mode.tape:
            _note(Index(key), x, y)
        return y
    found = parse(key, x.shape)
    y = Select(found.ranges, found.shape)(x)[0]
    if not found.indices:
        return y
    if found.order is not None:
        y = Transpose(found.order)(y)[0]
    shape, end = y.shape, found.axis + len(found.indices)
    extents = shape[found.axis : end]
    if len(extents) == 1:
        return gather(y, found.axis, *_beside(found.indices, x.device))
    merged = (*shape[: found.axis], math.prod(extents), *shape[end:])
    y = PlainReshape(merged)(y)[0]
    return gather(y, found.axis, positions(found.indices, extents, x.device))


def positions(indices: Sequence[Any], extents: Sequence[int], device: Any) -> Tensor:
    """Arrays or tensors of indices, one for each of these axes, as indices into the axes merged.
    Those of tensors are checked when they are used."""
    indices = _beside(indices, device)
    if not any(isinstance(one, Tensor) for one in indices):
        pairs = zip(indices, row_major(extents), strict=True)
        made = sum(one * step for one, step in pairs)
        return as_indices(made, "index", device)
    return joined("index", (as_indices(one, "index", device) for one in indices), extents)


def _beside(indices: Sequence[Any], device: Any) -> list[Any]:
    """Indices of a key, of which tensors are copied to the device of the tensor that it is for."""
    apart = (isinstance(one, Tensor) and one.device != device for one in indices)
    return [one.to(device) if is_ else one for one, is_ in zip(indices, apart, strict=True)]


def joined(of: str, indices: Iterable[Tensor], extents: Sequence[int]) -> Tensor:
    """Indices of several axes, which broadcast, as indices into the axes merged, for an operation;
    each is checked when it is used."""
    made = None
    for one, extent in zip(indices, extents, strict=True):
        own = checked(of, one, extent)
        made = own if made is None else ops.add(ops.scalar_op("mul", extent)(made), own)
    made.requires_grad = False
    return made


def checked(of: str, indices: Tensor, size: int) -> Tensor:
    """Indices of an axis, counted from its start, for an operation; they are checked when they are
    used."""
    return ops.op("places", of=of, size=size)(indices)


def _note(node: Index, x: Tensor, y: Tensor) -> None:
    """`record` of a view of one tensor, quicker."""
    if is_followed(x):
        note_view(x, y, node)
    if not x.requires_grad:
        y.requires_grad = False
        return
    creator = x._creator
    node.shape, node.edges = x.shape, (x if creator is None else creator,)
    y._creator = node
    note(node, (y,))


def as_indices(indices: Any, op: str, device: Any = None) -> Tensor:
    """Indices as a tensor of an int or float dtype; whether they are whole numbers is checked where
    they are used.

    Raises:
        DTypeError: bools, and values that are not numbers.
        ValueError: an element of an array that is not a whole number.
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
    """The entries at `indices` (tensor, array or nested list; negative ones from the end) along an
    axis (ONNX Gather).

    Shape `x.shape[:axis] + indices.shape + x.shape[axis + 1:]`. Indices are integers,
    of an int or float dtype.

    Raises:
        ValueError: an index out of range or with a fraction.
    """

    keeps = constants = ("places",)

    def __init__(self, axis: int, indices: Any) -> None:
        self.axis, self.indices = whole(axis, "gather: axis"), indices

    def forward(self, x: Tensor) -> Tensor:
        self.places = as_indices(self.indices, "gather", x.device)
        y = ops.op("gather", axis=self.axis)(x, self.places)
        self.size = x.shape[self.axis]
        return y

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` added up at each entry."""
        (dy,), places = dys, self.load(0)
        # Whole rows are added faster than single elements.
        if places.rank == 1 < dy.rank and self.axis in (-1, dy.rank - 1):
            grad = ops.op("gather_grad", axis=-2, size=self.size)
            return (ops.swap(grad(ops.swap(dy), places)),)
        return (ops.op("gather_grad", axis=self.axis, size=self.size)(dy, places),)


gather = function(Gather, "gather")


class Embedding(Rule):
    """The rows of a table at indices (SINGA Embedding)."""

    keeps = constants = ("places",)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        if w.rank != 2:
            raise ShapeError(f"embedding: got a table of shape {w.shape}, want two dimensions")
        self.places, self.size = as_indices(x, "embedding", w.device), w.shape[0]
        return ops.op("gather", axis=0)(w, self.places)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[None, Tensor | None]:
        """None for the indices; for the table `dy` added up at each row."""
        grad = ops.op("gather_grad", axis=0, size=self.size)
        return None, grad(dys[0], self.load(0)) if wanted[1] else None

    def backward(self, *dys: Tensor) -> Any:
        """The gradients, when called by hand: zeros for the indices, and that of the table."""
        _, to_table = super().backward(*dys)
        return *raw_if([ops.full(self.load(0).shape, 0, dys[0])], dys), to_table


@public(Embedding)
def embedding(x: Tensor, w: Tensor) -> Tensor:
    """The rows of `w` (n, m) at the indices `x` of any shape: shape `x.shape + (m,)` (SINGA
    embedding).

    Indices are integers, of an int or float dtype; negative ones count from the end.

    Raises:
        ValueError: an index out of range or with a fraction.
    """
    return Embedding()(as_indices(x, "embedding", w.device), w)[0]


class Where(Rule):
    """`x` where the condition holds, else `y` (ONNX Where)."""

    keeps = ("flags",)

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
        super().keep(xs, ys)

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """`dy` where each was taken, else 0."""
        (dy,), flags = dys, self.load(0)
        none, (a, b) = ops.full((), 0, dy), self.shapes
        return (
            ops.reduce_to(ops.where(flags, dy, none), a) if wanted[0] else None,
            ops.reduce_to(ops.where(flags, none, dy), b) if wanted[1] else None,
        )


def is_mask(value: Any, op: str = "where") -> bool:
    """Whether a tensor, an array, a nested list or a single value is of bools."""
    if isinstance(value, Tensor):
        return value.dtype == bool_
    return as_array(value, op).dtype.kind == "b"


def _ordered(operands: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    """x, y and the condition, which is recognised by its name or dtype."""
    if not named and len(operands) == 3 and getattr(operands[0], "dtype", None) is bool_:
        condition, x, y = operands  # the usual case
        return x, y, condition
    is_named = "condition" in named
    is_first = not is_named and operands and isinstance(operands[0], (Tensor, np.ndarray))
    is_first = is_first and is_mask(operands[0])
    order = ("condition", "x", "y") if is_first else ("x", "y", "condition")
    given = {**dict(zip(order, operands, strict=False)), **named}
    if len(operands) + len(named) != 3 or set(given) != set(order):
        got = ", ".join([f"{len(operands)} in order", *named])
        raise TypeError(f"where: got {got}, want x, y and condition")
    condition = given["condition"]
    if not (is_first or is_named or is_mask(condition)):
        raise TypeError(
            "where: got no condition, want a bool tensor or array first, or bools third; "
            "condition= may be of any dtype"
        )
    return given["x"], given["y"], condition


@overload
def where(condition: TensorLike, x: Any, y: Any) -> Tensor:
    """NumPy's order."""


@overload
def where(x: Any, y: Any, condition: Any) -> Tensor:
    """SINGA's order."""


@public(Where)
def where(*operands: Any, **named: Any) -> Tensor:
    """`x` where `condition` holds, else `y`; broadcasts (ONNX Where).

    `where(condition, x, y)` with a bool tensor or array first, as in NumPy;
    `where(x, y, condition)`, as in SINGA, with bools third: a tensor, an array, a nested list.
    Given by name, the condition may be of any dtype; it holds where it is not zero.

    Numbers take the dtype of a tensor as in arithmetic.

    Raises:
        TypeError: an order that is neither.
        ValueError: an int that the integer type of the tensor cannot hold.
    """
    x, y, condition = _ordered(operands, named)
    like = next((t for t in (x, y) if isinstance(t, Tensor) and t.dtype.is_float), None)
    if like is not None:
        x, y = (as_tensor(t, like.device, like.dtype) for t in (x, y))
    else:
        x, y = with_numbers("where", (x, y))
        dtypes = [t.dtype for t in (x, y) if isinstance(t, Tensor)]
        to = device_of((x, y, condition))
        x, y = as_operand(x, dtypes, to), as_operand(y, dtypes, to)
    if x.dtype != y.dtype:
        want = promote(x.dtype, y.dtype)
        x, y = cast(x, want), cast(y, want)
    return Where(condition)(x, y)[0]

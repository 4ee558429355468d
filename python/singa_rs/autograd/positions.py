"""Tensors of positions and shapes, and writing at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError
from ..tensor import Tensor, as_tensor
from ..tensor.creation import filled, from_numpy
from ..tensor.numbers import as_array, number, whole, wholes
from . import ops
from .index import as_indices
from .reduce import as_axes
from .rule import Opaque, Rule, function
from .table import public

Extents = tuple[int, ...]


def _single(value: Any, what: str) -> Any:
    """The element of a number or an array of one."""
    array = as_array(value, what)
    if array.size != 1:
        raise ValueError(f"{what}: got shape {array.shape}, want one element")
    return array.reshape(()).item()


class OneHot(Opaque):
    """`values[1]` at the place of each index along a new axis, else `values[0]` (ONNX OneHot)."""

    _keeps_inputs = True

    def __init__(self, axis: int, depth: Any, values: Any = (0.0, 1.0)) -> None:
        self.axis = whole(axis, "onehot: axis")
        self.depth = whole(_single(depth, "onehot: depth"), "onehot: depth")
        if self.depth < 0:
            raise ValueError(f"onehot: got depth {self.depth}, want at least 0")
        self.values = as_array(values, "onehot: values").ravel()
        if self.values.size != 2:
            raise ValueError(f"onehot: got {self.values.size} values, want two: off and on")

    def forward(self, indices: Tensor) -> Tensor:
        hit = ops.op("binary", f="eq")(*self._compared(indices))
        like = from_numpy(self.values, indices.device)
        off, on = (ops.full((), number(v, "onehot: values"), like) for v in self.values)
        return ops.where(hit, on, off)

    def _compared(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The indices with an axis of extent 1, and the classes along that axis."""
        shape = indices.shape
        (place,) = as_axes(self.axis, len(shape) + 1, "onehot")
        wide = ops.op("places", of="onehot", size=None)(indices)
        wrapped = ops.scalar_op("add", self.depth)(wide)
        wide = ops.where(ops.scalar_op("lt", 0)(wide), wrapped, wide)
        classes = ops.arange(self.depth, indices)
        column = (self.depth,) + (1,) * (len(shape) - place)
        return ops.reshape(wide, (*shape[:place], 1, *shape[place:])), ops.reshape(classes, column)


@public(OneHot)
def onehot(axis: int, indices: Any, depth: Any, values: Any = (0.0, 1.0)) -> Tensor:
    """`values[1]` at the place of each index along a new axis, else `values[0]` (ONNX OneHot).

    Args:
        axis: the new axis in the result, which has one axis more than the indices.
        indices: integers, of an int or float dtype; negative ones count from the end, and those
            out of range give only off values.
        depth: the extent of the new axis.
        values: the off and the on value; bool or int32 if both are, else float32.

    Raises:
        ValueError: an index with a fraction, an axis that the result does not have, a negative
            depth, or any number of values but two.
    """
    return OneHot(axis, depth, values)(as_indices(indices, "onehot"))[0]


class NonZero(Opaque):
    """The positions of the non-zero elements (ONNX NonZero)."""

    def forward(self, x: Tensor) -> Tensor:
        found = np.stack(np.nonzero(x.to_numpy())) if x.rank else np.zeros((0, int(bool(x))))
        return from_numpy(found.astype(np.int64), x.device)


@public(NonZero)
def nonzero(x: Tensor) -> Tensor:
    """The positions of the non-zero elements, (rank, count), int32 (ONNX NonZero). Reads values."""
    return NonZero()(x)[0]


class Shape(Opaque):
    """The extents (ONNX Shape)."""

    def forward(self, x: Tensor) -> Tensor:
        return from_numpy(np.asarray(x.shape, np.int64), x.device)


@public(Shape)
def shape(x: Tensor) -> Tensor:
    """The extents as an int32 tensor (ONNX Shape)."""
    return Shape()(x)[0]


class ConstantOfShape(Opaque):
    """A tensor of `value` whose extents are the elements of `x` (ONNX ConstantOfShape).

    The dtype is that of the value if it is bool or int32, else float32.

    Raises:
        ShapeError: a negative extent.
        ValueError: an extent with a fraction; a value that is not one element, or that the dtype
            cannot hold.
    """

    _keeps_inputs = True

    def __init__(self, value: float = 0.0) -> None:
        self.value = _single(value, "constant_of_shape: value")

    def forward(self, x: Tensor) -> Tensor:
        sizes = wholes(x.to_numpy().ravel(), "constant_of_shape: sizes")
        dtype = {bool: "bool", int: "int32"}.get(type(self.value), "float32")
        return filled("constant_of_shape", sizes, self.value, dtype, x.device)


constant_of_shape = function(ConstantOfShape, "constant_of_shape")


class ScatterElements(Rule):
    """A copy of `x` with `updates` at `indices` along an axis (ONNX ScatterElements).

    Gradients go to `x` alone, as in SINGA.

    Args:
        x: any shape but ().
        indices: as many axes as `x`; along `axis` any extent, along the others at most that of
            `x`. Nothing broadcasts.
        updates: the shape of `indices`.
        axis: the axis that the indices refer to.

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction.
        DTypeError: an update that the dtype of `x` cannot hold.
    """

    keeps = constants = ("places",)

    def __init__(self, indices: Any, updates: Any, axis: int = 0) -> None:
        self.indices, self.updates = indices, updates
        self.axis = whole(axis, "scatter_elements: axis")

    def forward(self, x: Tensor) -> Tensor:
        (self.along,) = as_axes(self.axis, x.rank, "scatter_elements")
        indices = as_indices(self.indices, "scatter_elements", x.device)
        updates = ops.convert(as_tensor(self.updates, x.device), x.dtype)
        self._check(x.shape, indices.shape, updates.shape)
        size = x.shape[self.along]
        self.places = ops.op("places", of="scatter_elements", size=size)(indices)
        return self._written(x, self.places, updates)

    def _check(self, have: Extents, indices: Extents, updates: Extents) -> None:
        """Nothing broadcasts: along the other axes the indices cover the first elements."""
        fits = len(indices) == len(have) and all(
            n <= m or axis == self.along
            for axis, (n, m) in enumerate(zip(indices, have, strict=True))
        )
        if not fits:
            raise ShapeError(
                f"scatter_elements: got indices of shape {indices} for axis {self.along} of "
                f"{have}, want as many axes, none larger except that one"
            )
        if updates != indices:
            shapes = f"updates of shape {updates} for indices of {indices}"
            raise ShapeError(f"scatter_elements: got {shapes}, want equal shapes")

    def _written(self, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
        return ops.op("scatter", axis=self.along, join="none")(x, places, updates)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Sequence[bool]) -> tuple[Tensor]:
        """`dy` where nothing was written."""
        places, none = self.load(0), ops.full((), 0, dys[0])
        return (self._written(dys[0], places, none.view_expand(places.shape)),)


scatter_elements = function(ScatterElements, "scatter_elements")

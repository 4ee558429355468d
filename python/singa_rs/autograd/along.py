"""Taking elements along an axis, and adding them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import ops
from .index import as_indices, gather
from .reduce import as_axes
from .rule import Rule
from .scan import flattened
from .table import public


class TakeAlongAxis(Rule):
    """The elements at indices of each row along an axis (ONNX GatherElements)."""

    keeps = constants = ("places",)

    def __init__(self, indices: Any, axis: int) -> None:
        self.indices, self.axis = indices, whole(axis, "take_along_axis: axis")

    def forward(self, x: Tensor) -> Tensor:
        have = x.shape
        (self.along,) = as_axes(self.axis, len(have), "take_along_axis")
        indices = as_indices(self.indices, "take_along_axis", x.device)
        self.wide, places = self._broadcast(have, indices.shape)
        found = ops.op("places", of="take_along_axis", size=have[self.along])(indices)
        self.places, self.shape = found.view_expand(places), have
        take = ops.op("gather_elements", axis=self.along)
        return take(x.view_expand(self.wide), self.places)

    def _broadcast(
        self, have: tuple[int, ...], indices: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes that both broadcast to: the same but for the axis."""
        along, shapes = self.along, (have, indices)
        try:
            if len(have) != len(indices):
                raise ValueError
            rest = np.broadcast_shapes(*((*s[:along], 1, *s[along + 1 :]) for s in shapes))
        except ValueError:
            raise ShapeError(
                f"take_along_axis: got indices of shape {indices} for axis {along} of {have}, want "
                "as many axes, which broadcast but for that one"
            ) from None
        wide, places = ((*rest[:along], s[along], *rest[along + 1 :]) for s in shapes)
        return wide, places

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` added up at each element."""
        add = ops.op("gather_elements_grad", axis=self.along, size=self.wide[self.along])
        made = add(dys[0], self.load(0))
        return (ops.reduce_to(made, self.shape),)


@public(TakeAlongAxis, methods="take_along_axis")
def take_along_axis(x: Tensor, indices: Any, axis: int | None = -1) -> Tensor:
    """The elements at indices of each row along an axis (NumPy take_along_axis, ONNX
    GatherElements, PyTorch gather), as `argsort` and `topk` give them.

    Args:
        x: any shape but ().
        indices: integers, of an int or float dtype; as many axes as `x`, which broadcast but for
            `axis`. Negative ones count from the end.
        axis: the flattened tensor if None.

    Raises:
        ShapeError: indices of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have.
    """
    x, axis = flattened(x, axis)
    return TakeAlongAxis(indices, axis)(x)[0]


@public(methods="take")
def take(x: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    """The entries at `indices` along an axis, of the flattened tensor by default (NumPy take).

    Indices, shapes and errors are as in `gather`.
    """
    x, axis = flattened(x, axis)
    return gather(x, axis, indices)


@public(methods="index_select")
def index_select(x: Tensor, axis: int, indices: Any) -> Tensor:
    """The entries at `indices`, of one dimension, along an axis (PyTorch index_select).

    Raises:
        ShapeError: indices of another rank.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have.
    """
    places = as_indices(indices, "index_select", x.device)
    if places.rank != 1:
        raise ShapeError(f"index_select: got indices of shape {places.shape}, want one dimension")
    return gather(x, axis, places)

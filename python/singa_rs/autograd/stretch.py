"""A stretch of the tape that backward goes through by itself: from given inputs to one result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import GraphError, ShapeError
from ..tensor import Tensor
from .engine import backward_from
from .ops import Tensors, convert
from .rule import Rule
from .tape import record


class _Entrance(Rule):
    """The beginning of a stretch: an edge to the input itself would keep its memory, which the
    operations behind it may not need."""

    def gradients(self, dys: Tensors, wanted: Any) -> Tensors:
        """The gradient of the input."""
        return dys


class Stretch:
    """What is recorded between `enter` and `leave`. Operations in between keep what they need for
    their gradients; the inputs and the result themselves are not kept."""

    def __init__(self, name: str) -> None:
        """`name`: of what is recorded, with which errors begin."""
        self._name = name
        #: Stands for each input as a leaf of the tape; None for one through which no gradient
        #: flows.
        self._ends: list[Tensor | None] = []
        self._creator: Any = None

    def enter(self, x: Tensor) -> Tensor:
        """An input as operations of the stretch are to be given it. `autograd.training` is True."""
        inside = x.detach()
        if not x.dtype.is_float:
            self._ends.append(None)
            return inside
        end = Tensor((), x.device, x.dtype, stores_grad=True)
        inside.requires_grad = True
        record(_Entrance(), (end,), (inside,))
        self._ends.append(end)
        return inside

    def leave(self, y: Tensor) -> Tensor:
        """The result, from which no gradient flows back by itself."""
        self._creator, self._shape, self._dtype = y._creator, y.shape, y.dtype
        return y.detach()

    def backward(
        self, dy: Tensor, parameters: Sequence[Tensor] = (), wanted: bool = True
    ) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """The gradients of the inputs, if they are wanted, and of parameters, which have
        `stores_grad`; None where there is none. Releases the stretch.

        Raises:
            GraphError: nothing is recorded, or a tensor that is needed was changed in place.
            ShapeError: `dy` is not of the result's shape.
        """
        if dy.shape != self._shape:
            got = f"got dy of shape {dy.shape}, want {self._shape}"
            raise ShapeError(f"{self._name}: backward: {got}")
        if self._creator is None:
            why = "no_grad was in force, or backward has been through it"
            raise GraphError(f"{self._name}: backward: nothing is recorded: {why}")
        for end in self._ends:
            if end is not None:
                end.stores_grad = wanted
        creator, self._creator = self._creator, None
        seed = convert(dy, self._dtype).alias()
        found = {id(tensor): grad for tensor, grad in backward_from(creator, seed)}
        return [found.get(id(end)) for end in self._ends], [found.get(id(p)) for p in parameters]

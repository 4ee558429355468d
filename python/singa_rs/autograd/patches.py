"""Tensors of which a part got a new value, as nodes of the tape."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import ops
from .mode import handled_by
from .ops import Grads, Tensors
from .rule import Rule
from .tape import edge, note
from .views import View


class Run:
    """Consecutive elements in row-major order, as a view."""

    def __init__(self, start: int, count: int) -> None:
        self.start, self.count = start, count

    def forward(self, x: Tensor) -> Tensor:
        """The elements of `x`, of one dimension."""
        return ops.reshape(x, (x.numel,)).view_slice(((self.start, self.count, 1),))


class Through:
    """A view of a view."""

    def __init__(self, outer: View, inner: Part) -> None:
        self.outer, self.inner = outer, inner

    def forward(self, x: Tensor) -> Tensor:
        """The elements of `x`."""
        return self.inner.forward(self.outer.forward(x))


#: What shows a part of a tensor.
Part = View | Run | Through


class Patch(Rule):
    """A tensor of which a part got a new value through a view."""

    def __init__(self, view: Part) -> None:
        self.view = view

    def forward(self, old: Tensor, part: Tensor) -> Tensor:
        """The old value with the part in it."""
        made = ops.copy(old)
        ops.copy.into([part], [self.view.forward(made)])
        return made

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """Those of the rest of the old value, None if nothing is left of it, and of the part."""
        (dy,) = dys
        part = self.view.forward(dy)
        if not wanted[0] or part.numel == dy.numel:
            return None, part
        rest = ops.copy(dy)
        _clear(self.view.forward(rest))
        return rest, part if wanted[1] else None

    def gradients_again(self, dys: Tensors, wanted: Any) -> Grads:
        """Those, without writing into what has a gradient."""
        (dy,) = dys
        part = self.view.forward(dy)
        if not wanted[0] or part.numel == dy.numel:
            return None, part
        with handled_by(None):
            is_left = ops.op("fill", device=dy.device, value=1, shape=dy.shape, dtype="bool")()
            _clear(self.view.forward(is_left))
            is_left.requires_grad = False
        return ops.where(is_left, dy, ops.full((), 0, dy)), part if wanted[1] else None


def _clear(part: Tensor) -> None:
    ops.op("fill", value=0, shape=part.shape, dtype=part.dtype.name).into([], [part])


class Constant(Rule):
    """The creator of a value that passes no gradient on, in a tensor that stays on the tape."""

    differentiable = False
    edges = ()


def patched(base: Tensor, part: Part, creator: Any) -> Patch:
    """The node of a tensor's value after a write into a part of it."""
    node = Patch(part)
    node.edges = (edge(base), creator)
    note(node, ())
    return node

"""Gradients of parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ..tensor import Tensor
from . import ops


class Part:
    """The gradient of some of a tensor's elements, `count` from `start`, `step` apart along each
    axis; that of the others is zero."""

    __slots__ = ("values", "ranges", "shape")

    def __init__(
        self, values: Tensor, ranges: Sequence[tuple[int, int, int]], shape: tuple[int, ...]
    ) -> None:
        self.values, self.ranges, self.shape = values, ranges, shape

    def whole(self) -> Tensor:
        """The gradient of all elements, in separate memory."""
        made = ops.full(self.shape, 0, self.values)
        part = made.view_slice(self.ranges)
        ops.copy.into([ops.reshape(self.values, part.shape)], [part])
        return made

    def add_to(self, grad: Tensor) -> None:
        """Adds to the gradient of all elements, in place."""
        part = grad.view_slice(self.ranges)
        ops.add.into([part, ops.reshape(self.values, part.shape)], [part])

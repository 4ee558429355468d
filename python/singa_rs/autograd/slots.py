"""Where backward accumulates gradients: of tensors, of parameters, of parts of either."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import ops
from .mode import mode
from .tape import Released, pass_through
from .views import Index, Select

#: How many parts are joined, and up to which size in bytes: calls and cache misses cost more than
#: small parts themselves, and large ones would take up memory.
COUNT, SMALL = 128, 1 << 15


class Slot:
    """A gradient that is being accumulated."""

    __slots__ = ("grad", "owned", "run", "missing")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        #: Whether nothing else holds the gradient's memory.
        self.owned = False
        #: Parts that are yet to be added.
        self.run: Run | None = None
        #: Of a parameter: how many nodes have yet to add to it.
        self.missing = 0

    def put(self, grad: Tensor, owned: bool) -> None:
        """Adds to the sum, in place only if nothing else holds its memory."""
        if self.run is not None:
            self.settle()
        if self.grad is None:
            self.grad, self.owned = grad, owned
        elif self.owned:
            ops.add.into([self.grad, grad], [self.grad])
        else:
            self.grad, self.owned = ops.add(self.grad, grad), True

    def put_part(self, node: Select, grad: Tensor) -> None:
        """Adds the gradient of the elements that a node selected, in their places."""
        if self.grad is None:
            self.grad, self.owned = ops.full(node.shape, 0, grad), True
            node.put(grad, self.grad, is_first=True)
            return
        self.settle()
        if not self.owned:
            self.grad, self.owned = ops.copy(self.grad), True
        axis = node.single()
        if axis is None or grad.nbytes > SMALL:
            node.put(grad, self.grad)
        else:
            self.run = Run(node, axis, grad)

    def settle(self) -> None:
        """Adds the parts that are yet to be added."""
        if self.run is not None:
            self.run.add_to(self.grad)
            self.run = None

    def passed(self) -> Leaf | None:
        """Notes that a node has added to it; returns the parameter whose gradient is final now."""
        return None

    def take(self) -> Tensor:
        """The sum, in memory that belongs to the caller."""
        grad = self.grad if self.owned else ops.copy(self.grad)
        self.grad = None
        grad.requires_grad = False
        return grad


class Leaf(Slot):
    """The gradient of a parameter."""

    __slots__ = ("tensor", "block")

    def __init__(self, tensor: Tensor) -> None:
        self.grad, self.owned, self.run = None, False, None  # quicker than by super()
        self.tensor, self.block, self.missing = tensor, tensor.block_id, 0

    def passed(self) -> Leaf | None:
        self.missing -= 1
        if self.missing:
            return None
        self.settle()
        return self


class Part(Slot):
    """The gradient of a part of a tensor, which is added to that of the whole at once, so that the
    node that selected the part needs no visit, unless others select from the part."""

    __slots__ = ("node", "whole", "own")

    def __init__(self, node: Select, whole: Slot) -> None:
        self.node, self.whole = node, whole
        #: The sum of what is added to parts of this part.
        self.own: Slot | None = None
        whole.missing -= 1

    def slot(self, index: int) -> Part:
        """The part itself, for one more node that adds to it."""
        self.whole.missing += 1
        return self

    def put(self, grad: Tensor, owned: bool) -> None:
        """Adds to the sum of the whole."""
        run = self.whole.run
        if run is None or not run.takes(self.node, grad):
            self.whole.put_part(self.node, grad)

    def passed(self) -> Leaf | None:
        node = self.node
        if type(node.edges) is not Released:
            if mode.nodes is not None:
                mode.nodes.keep(node)
            pass_through(node)
        return self.whole.passed()


class Run:
    """Small parts side by side along an axis, `x[:, t]` for one `t` after another, which are joined
    and added at once."""

    __slots__ = ("node", "axis", "low", "high", "below", "above", "grads")

    def __init__(self, node: Index, axis: int, grad: Tensor) -> None:
        self.node, self.axis, self.grads = node, axis, [grad]
        self.low = self.high = place = node.at(axis)
        self.below, self.above = self._key(place - 1), self._key(place + 1)

    def _key(self, place: int | slice) -> Any:
        """The key of another part."""
        key = self.node.key
        if place == -1:
            return None
        if type(key) is not tuple:
            return place
        return (*key[: self.axis], place, *key[self.axis + 1 :])

    def takes(self, node: Select, grad: Tensor) -> bool:
        """Whether a part is next to these; it is one of them then."""
        key = node.key
        if key is None or len(self.grads) == COUNT:
            return False
        if key == self.below:
            self.low -= 1
            self.below = self._key(self.low - 1)
            self.grads.insert(0, grad)
            return True
        if key == self.above:
            self.high += 1
            self.above = self._key(self.high + 1)
            self.grads.append(grad)
            return True
        return False

    def add_to(self, whole: Tensor) -> None:
        """Adds the gradients in their places."""
        grads, shape = self.grads, self.grads[0].shape
        if len(grads) == 1:
            self.node.put(grads[0], whole)
            return
        part = whole.view_index(self._key(slice(self.low, self.high + 1)))
        if self.axis == len(shape):
            grads = [ops.reshape(grad, (*shape, 1)) for grad in grads]
        joined = ops.op("concat", axis=self.axis)(*grads)
        ops.add.into([part, ops.reshape(joined, part.shape)], [part])

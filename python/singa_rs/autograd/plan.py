"""What backward has to do, decided before it does anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _core
from ..tensor import Tensor
from . import ops
from .tape import Operator, Port, Rule, alive


class Slot:
    """A gradient that is being summed up."""

    __slots__ = ("grad", "owned")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        #: Whether nobody else holds the gradient's memory.
        self.owned = False

    def put(self, grad: Tensor, owned: bool) -> None:
        """Adds to the sum; in place only into a sum that nobody else holds."""
        if self.grad is None:
            self.grad, self.owned = grad, owned
        elif self.owned:
            ops.add.into([self.grad, grad], [self.grad])
        else:
            self.grad, self.owned = ops.add(self.grad, grad), True

    def take(self) -> Tensor:
        """The sum, in memory that belongs to whoever takes it."""
        grad = self.grad if self.owned else ops.copy(self.grad)
        self.grad = None
        grad.requires_grad = False
        return grad


class Leaf(Slot):
    """The gradient of a parameter."""

    __slots__ = ("tensor", "block", "missing")

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.tensor, self.block = tensor, tensor.block_id
        #: How many nodes have yet to add to it.
        self.missing = 0


class Plan:
    """Which nodes lead to a gradient that somebody wants, in an order that goes back."""

    def __init__(self, root: Operator) -> None:
        #: The nodes to run, the last one first: each after all that use its outputs.
        self.order: list[Operator] = []
        #: For each of them (by id), which inputs' gradients are wanted.
        self.wanted: dict[int, tuple[bool, ...]] = {}
        self.leaves: dict[int, Leaf] = {}
        for node in postorder(root):
            self._visit(node)
        #: How many nodes have yet to read what they kept of a parameter's block.
        self.readers = {leaf.block: 0 for leaf in self.leaves.values()}
        for node in self.order:
            for block in self.blocks(node):
                self.readers[block] += 1

    def _visit(self, node: Operator) -> None:
        wanted = tuple(map(self._wants, node.edges)) if node.differentiable else ()
        if not any(wanted) and node.retained is None:
            return
        for edge, want in zip(node.edges, wanted, strict=False):
            if want and isinstance(edge, Tensor):
                self.leaves.setdefault(id(edge), Leaf(edge)).missing += 1
        self.wanted[id(node)] = wanted
        self.order.append(node)

    def _wants(self, edge: Any) -> bool:
        if isinstance(edge, Tensor):
            return edge.stores_grad and edge.requires_grad
        return id(edge.node if type(edge) is Port else edge) in self.wanted

    def blocks(self, node: Operator) -> list[int]:
        """The parameters' blocks that a node keeps views of."""
        if not self.readers:
            return []
        return [b for b in dict.fromkeys(t.block_id for t in kept(node)) if b in self.readers]


def kept(node: Operator) -> Iterable[Tensor | _core.Saved]:
    """What a node kept for its gradient."""
    if isinstance(node, Rule):
        return [saved for saved in node.saved if saved is not None]
    return node._held()


def postorder(root: Operator) -> list[Operator]:
    """Every node that `root` leads to, each before those that use its outputs.

    Raises:
        GraphError: backward has been through one of them.
    """
    order: list[Operator] = []
    seen: set[int] = set()
    stack: list[tuple[Operator, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            alive(node)
            stack.append((node, True))
            edges = (e for e in reversed(node.edges) if not isinstance(e, Tensor))
            stack.extend((e.node if type(e) is Port else e, False) for e in edges)
    return order

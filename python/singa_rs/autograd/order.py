"""Walks over the tape: the order of backward, and the end of a recording's tape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import GraphError
from ..tensor import Tensor
from .mode import Nodes
from .slots import Leaf, Part, Slot
from .tape import Edge, Operator, Port, Released, alive, made_by, release
from .views import Select


class Visit:
    """A node that backward passes through."""

    __slots__ = ("node", "targets", "slots", "blocks")

    def __init__(self, node: Operator, targets: list[Slot | None]) -> None:
        self.node = node
        #: Where the gradient of each input goes; None if it is not wanted.
        self.targets = targets
        #: The gradients of its outputs, by index, for those that are used.
        self.slots: dict[int, Slot] = {}
        #: The parameters' blocks that it keeps views of.
        self.blocks: list[int] = []

    def slot(self, index: int) -> Slot:
        """Where the gradient of output `index` is accumulated."""
        slot = self.slots.get(index)
        if slot is None:
            slot = self.slots[index] = Slot()
        return slot


class Order:
    """The nodes that lead to a wanted gradient, in the order of backward."""

    def __init__(self, root: Operator) -> None:
        #: The visits to run, the last one first: each after all that use its outputs.
        self.visits: list[Visit] = []
        #: The parameters whose gradients are wanted.
        self.leaves: dict[int, Leaf] = {}
        known: dict[int, Visit | Part] = {}
        for node in postorder(root):
            targets = self._targets(node, known) if node.differentiable else []
            is_read = node.retained is not None or node.watched is not None
            if any(targets) and _selects(node):
                part = Part(node, self._whole(targets[0]))
                if not is_read and node is not root:
                    known[id(node)] = part
                    continue
                targets = [part.slot(0)]
            if is_read or any(targets):
                visit = known[id(node)] = Visit(node, targets)
                self.visits.append(visit)
        #: The visit of the root, if a gradient leads through it.
        self.root = known.get(id(root))
        #: For each parameter's block, how many nodes still have to read what they saved of it.
        self.readers = {leaf.block: 0 for leaf in self.leaves.values()}
        for visit in self.visits if self.readers else ():
            self._count_readers(visit)

    def _targets(self, node: Operator, known: dict[int, Visit | Part]) -> list[Slot | None]:
        targets: list[Slot | None] = []
        for edge in node.edges:
            if isinstance(edge, Tensor):
                wants = edge._stores_grad and edge.requires_grad
                check_uncut(edge)
                targets.append(self._leaf(edge) if wants else None)
            elif type(edge) is Port:
                visit = known.get(id(edge.node))
                targets.append(None if visit is None else visit.slot(edge.index))
            else:
                visit = known.get(id(edge))
                targets.append(None if visit is None else visit.slot(0))
        return targets

    def _whole(self, target: Slot) -> Slot:
        """Where a part of what `target` is the gradient of is added; a part of a part gets a visit
        of its own, so that it is added to the whole once."""
        if type(target) is not Part:
            return target
        if target.own is None:
            visit = Visit(target.node, [target.slot(0)])
            target.own = visit.slot(0)
            self.visits.append(visit)
        target.whole.missing -= 1
        return target.own

    def _leaf(self, tensor: Tensor) -> Leaf:
        leaf = self.leaves.get(id(tensor))
        if leaf is None:
            leaf = self.leaves[id(tensor)] = Leaf(tensor)
        leaf.missing += 1
        return leaf

    def _count_readers(self, visit: Visit) -> None:
        readers = self.readers
        found = [block for t in kept(visit.node) if (block := t.block_id) in readers]
        visit.blocks = found if len(found) < 2 else list(dict.fromkeys(found))
        for block in visit.blocks:
            readers[block] += 1


def check_uncut(leaf: Tensor) -> None:
    """Rejects a tensor through which a gradient would have flowed on."""
    if leaf._is_cut and leaf.requires_grad:
        raise GraphError(
            f"backward: a tensor of shape {leaf.shape} was made by a step that ran as a graph, "
            "through which no gradient flows back; detach() it, or compile with use_graph=False"
        )


def _selects(node: Operator) -> bool:
    """Whether the gradient of a node's input is that of its output, in its place."""
    return isinstance(node, Select) and type(node).gradients is Select.gradients


def kept(node: Operator) -> Iterable[Tensor | _core.Saved]:
    """What a node kept for its gradient."""
    saved = [saved for saved in node.saved if saved is not None]
    return saved + node._held() if type(node).gradients is Operator.gradients else saved


def postorder(root: Operator) -> list[Operator]:
    """Every node that `root` leads to, each before those that use its outputs.

    Raises:
        GraphError: backward has been through one of them.
    """
    order: list[Operator] = []
    #: Nodes in progress; a None on `stack` ends the latest of them.
    open_: list[Operator] = []
    stack: list[Operator | None] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if node is None:
            order.append(open_.pop())
        elif id(node) not in seen:
            seen.add(id(node))
            alive(node)
            open_.append(node)
            stack.append(None)
            for edge in reversed(node.edges):
                if isinstance(edge, Tensor):
                    continue
                stack.append(edge.node if type(edge) is Port else edge)
    return order


def cut(nodes: Nodes) -> None:
    """Ends the tape of a recording: its nodes are released, and no tensor has one of them as its
    creator, so that the tape keeps nothing alive that was made in the recording. Tensors through
    which a gradient would have flowed back to a parameter are marked."""
    leading: set[int] = set()
    for node, ys in nodes.made:
        was_passed = type(node.edges) is Released
        leads = was_passed or any(_leads(edge, leading) for edge in node.edges or ())
        if leads:
            leading.add(id(node))
        for y in ys:
            if leads and y._creator is not None:
                nodes.cut_off(y)
    for node, ys in nodes.made:
        release(node)
        for y in ys:
            y._creator = y._base = None
            y._views = ()
    nodes.made.clear()


def _leads(edge: Edge, leading: set[int]) -> bool:
    """Whether a gradient along an edge reaches a parameter; `leading` nodes lead to one."""
    node = _node(edge)
    return _is_end(edge) if node is None else id(node) in leading


def _node(edge: Edge) -> Operator | None:
    """The node that an edge leads to; None if it leads to a tensor that no node made."""
    return edge.node if type(edge) is Port else edge if isinstance(edge, Operator) else None


def _is_end(x: Tensor) -> bool:
    """Whether a tensor that no node made ends a gradient: it stores its own, or was cut off."""
    return x.requires_grad and (x._stores_grad or x._is_cut)


def is_traced(value: Any) -> bool:
    """Whether a value, such as a target, gets a gradient: an operation has made it, or it stores
    its gradient. One that a graph has made is refused by the backward pass. Batches do neither,
    although they require gradients by default, as in SINGA."""
    is_wanted = isinstance(value, Tensor) and value.requires_grad
    return is_wanted and (value._creator is not None or value._is_cut or value._stores_grad)


def has_gradient(x: Tensor) -> bool:
    """Whether a backward pass from a tensor would give a gradient: that of a parameter, or of a
    tensor on the way that stores its own. None would once backward has been through what made it.
    """
    if not x.requires_grad or x._creator is None:
        return False
    open_, seen = [made_by(x)[0]], set()
    while open_:
        node = open_.pop()
        if id(node) in seen or type(node.edges) is Released:
            continue
        seen.add(id(node))
        if node.retained is not None or node.watched is not None:
            return True
        for edge in node.edges or ():
            before = _node(edge)
            if before is not None:
                open_.append(before)
            elif edge.requires_grad and edge._stores_grad:
                return True
    return False


def has_history(x: Tensor) -> bool:
    """Whether a gradient flows back through a tensor to a parameter that it was made from."""
    if not x.requires_grad or x._creator is None:
        return x._is_cut and x.requires_grad
    open_, seen = [made_by(x)[0]], set()
    while open_:
        node = open_.pop()
        if type(node.edges) is Released:
            return True
        seen.add(id(node))
        for edge in node.edges or ():
            before = _node(edge)
            if before is None:
                if _is_end(edge):
                    return True
            elif id(before) not in seen:
                open_.append(before)
    return False

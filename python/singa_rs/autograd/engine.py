"""Backward: gradients of a loss, parameter by parameter, in the order in which they are final."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .. import _core
from .._core import (
    DTypeError,
    GraphError,
    ShapeError,
    begin_gradient,
    begin_step,
    begin_update,
    resume,
)
from ..shown import misgiven
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import as_number
from . import ops
from .casting import cast
from .higher import gradients_of, stored
from .mode import mode
from .order import Order, Visit
from .slots import Leaf, Part
from .table import as_method, public
from .tape import Operator, output_of, release, watched_leaves

Pairs = Iterator[tuple[Tensor, Tensor]]
_NOT_TRAINING = (
    "autograd.training is False, so nothing was recorded; want autograd.training = True, or "
    "train() of the model, before the loss is computed"
)


@public(quiet=True)
def backward(y: Tensor, dy: Any = None) -> Pairs:
    """The gradients of `y` with respect to every tensor with `stores_grad` (SINGA backward).

    A generator of (tensor, gradient) pairs, each as soon as the gradient is final and no operation
    yet to come needs the tensor's old value, so that it may be updated at once. What an operation
    saved is released when backward has been through it; a second backward raises.

    Args:
        y: the loss, of one element unless `dy` is given.
        dy: the gradient of `y`, of its shape, or a number if that has one element; ones by default.

    Raises:
        GraphError: `autograd.training` is False, `y` was not recorded, backward has been through
            it, or a tensor that is needed was changed in place.
        ShapeError: `y` has several elements and `dy` is not given, or the shapes differ.
    """
    if not mode.training:
        raise GraphError(f"backward: {_NOT_TRAINING}")
    seed = _seed(y, dy)
    begin_step()
    if y._creator is not None:
        return backward_from(y._creator, seed)
    if y.stores_grad:
        return iter([(y, ops.copy(seed))])
    raise GraphError(
        f"backward: the tensor of shape {y.shape} was not recorded: no operation made it from "
        "tensors that require a gradient while autograd.training was True"
    )


def backward_from(creator: Any, dy: Tensor) -> Pairs:
    """The pairs of `backward` from a tensor's creator alone, whose tensor need not be in memory any
    longer. `dy` has its shape and dtype."""
    node, index = output_of(creator)
    return _Walk(Order(node)).run(index, dy)


class Gradients(dict):
    """Gradients by `id(tensor)`, which may also be looked up by the tensor itself."""

    #: Empty in results of a graph.
    _tensors: Sequence[Tensor] = ()

    def __init__(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self._tensors = []
        for tensor, grad in pairs:
            self[id(tensor)] = grad
            self._tensors.append(tensor)  # so that no other tensor gets its id

    def __copy__(self) -> Gradients:
        made = Gradients(())
        made.update(self)
        made._tensors = list(self._tensors)
        return made

    def __reduce__(self) -> Any:
        """A deep copy's tensors have other ids."""
        return Gradients, ([(tensor, self[tensor]) for tensor in self._tensors],)

    def __getitem__(self, key: Any) -> Tensor:
        return super().__getitem__(_key(key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(_key(key))

    def get(self, key: Any, default: Any = None) -> Any:
        """The gradient of a tensor, or `default`."""
        return super().get(_key(key), default)


def _key(key: Any) -> Any:
    return id(key) if isinstance(key, Tensor) else key


@public(Gradients, quiet=True)
def gradients(
    y: Tensor,
    dy: Any = None,
    *,
    xs: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
) -> Any:
    """All gradients that `backward` yields, by tensor or `id(tensor)` (SINGA gradients), or those
    of chosen tensors (PyTorch autograd.grad).

    `gradients(y, xs, create_graph=True)` is `gradients(y, xs=xs, create_graph=True)`: in the second
    place, tensors are `xs` if they are in a list or `create_graph` is set.

    Args:
        y: the loss, of one element unless `dy` is given.
        dy: the gradient of `y`, of its shape, or a number if that has one element; ones by default.
        xs: tensors that `y` was made from, whether an operation made them or not. Every tensor with
            `stores_grad` if None.
        create_graph: whether the gradients are themselves recorded, to be differentiated again; the
            tape is not released then. Rules whose gradients are made of operations with gradients
            can be; others say so.

    Returns:
        A dict without `xs`; else the gradient of each, in a tuple if `xs` is a sequence: zeros if
        `y` was made from it and does not depend on it, as the slope of `relu` does not.

    Raises:
        GraphError: as `backward`; one of `xs` does not lead to `y`; a rule that cannot be
            differentiated again.
    """
    if not isinstance(create_graph, int):
        raise TypeError(f"gradients: got {create_graph!r} for create_graph, want a bool")
    are_xs = _are_tensors(dy) or (create_graph and as_number(dy) is None)
    if xs is None and dy is not None and are_xs:
        xs, dy = dy, None
    if xs is None and not create_graph:
        return Gradients(backward(y, dy))
    if not mode.training:
        raise GraphError(f"gradients: {_NOT_TRAINING}")
    seed = _seed(y, dy)
    if create_graph and isinstance(dy, Tensor):  # through which a gradient may flow
        seed = cast(dy, y.dtype)
    if xs is None:
        leaves = stored(y)
        pairs = zip(leaves, gradients_of(y, seed, leaves, create_graph), strict=True)
        return Gradients((leaf, grad) for leaf, grad in pairs if grad is not None)
    chosen = (xs,) if isinstance(xs, Tensor) else tuple(xs)
    if not all(isinstance(x, Tensor) for x in chosen):
        raise TypeError(f"gradients: got {xs!r} for xs, want tensors")
    found = gradients_of(y, seed, chosen, create_graph)
    for i, (x, grad) in enumerate(zip(chosen, found, strict=True)):
        if grad is None:
            raise GraphError(f"gradients: xs[{i}], of shape {x.shape}, does not lead to y")
    return found[0] if isinstance(xs, Tensor) else tuple(found)


def _are_tensors(dy: Any) -> bool:
    return isinstance(dy, (tuple, list)) and all(isinstance(x, Tensor) for x in dy)


@as_method("backward")
def leave_gradients(y: Tensor, dy: Any = None) -> None:
    """Runs `backward` and adds each gradient to the tensor's `grad` (PyTorch Tensor.backward)."""
    for tensor, grad in backward(y, dy):
        if tensor.grad is None:
            tensor.grad = grad
        else:
            ops.add.into([tensor.grad, grad], [tensor.grad])
    mode.has_left_gradients = True


def _seed(y: Tensor, dy: Any) -> Tensor:
    if not isinstance(y, Tensor):
        raise TypeError(f"backward: {misgiven(y)}")
    if not y.dtype.is_float:
        raise DTypeError(f"backward: got a loss of dtype {y.dtype.name}, want a float")
    if dy is None:
        if y.numel != 1:
            raise ShapeError(
                f"backward: got a loss of shape {y.shape}, want one element, or its gradient dy"
            )
        return ops.full(y.shape, 1, y)
    number = as_number(dy) if y.numel == 1 else None
    if number is not None:
        return ops.full(y.shape, number, y)
    dy = ops.convert(as_tensor(dy, y.device, y.dtype), y.dtype)
    if dy.shape != y.shape:
        raise ShapeError(f"backward: got dy of shape {dy.shape}, want {y.shape}")
    return dy.alias()


class _Walk:
    """One run of backward."""

    def __init__(self, order: Order) -> None:
        self.order = order
        #: By block: parameters whose old value is still needed.
        self.late: dict[int, list[Leaf]] = {}

    def run(self, index: int, seed: Tensor) -> Pairs:
        """All pairs, from the gradient of output `index` of the root."""
        if self.order.root is not None:
            self.order.root.slot(index).put(seed, False)
        return self._pairs() if mode.nodes is None else self._recorded_pairs()

    def _recorded_pairs(self) -> Pairs:
        """While a step is recorded, attributes operations for a node to the line of its forward:
        its gradients, and as updates what the consumer of its pairs does."""
        before = begin_gradient(0)
        try:
            for pair in self._pairs(begin_gradient):
                ready = [pair]
                del pair
                visited = begin_update(None)
                yield ready.pop()
                resume(visited)
        finally:
            resume(before)

    def _pairs(self, enter: Callable[[int], int] | None = None) -> Pairs:
        self.order.root = None  # so that nothing outlives its visit
        while self.order.visits:
            visit = self.order.visits.pop()
            for slot in visit.slots.values():
                slot.settle()
            if enter is not None:
                enter(visit.node.origin)
                if mode.nodes is not None:
                    mode.nodes.keep(visit.node)
            if visit.node.retained:
                yield from _retained(visit)
            if visit.node.watched:
                _tell(visit)
            final = self._through(visit)
            del visit  # nothing that it kept may outlive it
            for leaf in final:
                yield leaf.tensor, _told(leaf) if watched_leaves else leaf.take()

    def _through(self, visit: Visit) -> list[Leaf]:
        """Runs a node's gradient; returns the parameters whose gradients become final."""
        node, targets = visit.node, visit.targets
        grads = owned = [None] * len(targets)
        dys = _complete(visit) if any(targets) else None
        if dys is not None:
            if type(targets[0]) is Part and targets[0].node is node:
                grads = dys
            else:
                grads = node.gradients(dys, [target is not None for target in targets])
                owned = _owned(visit, grads, dys)
        release(node)
        final = []
        for i, target in enumerate(targets):
            if target is None:
                continue
            if grads[i] is not None:
                target.put(grads[i], owned[i])
            leaf = target.passed()
            if leaf is not None:
                final.append(leaf)
        return self._unlocked(final, visit.blocks)

    def _unlocked(self, final: list[Leaf], blocks: list[int]) -> list[Leaf]:
        """The final parameters whose old value no pending node needs."""
        if not final and not blocks:
            return final
        readers, now = self.order.readers, []
        for leaf in final:
            self.late.setdefault(leaf.block, []).append(leaf)
        for block in blocks:
            readers[block] -= 1
        for block in dict.fromkeys([*[leaf.block for leaf in final], *blocks]):
            if readers[block] == 0:
                now += self.late.pop(block, ())
        return [leaf for leaf in now if leaf.grad is not None]


def _retained(visit: Visit) -> Pairs:
    for index, tensor in visit.node.retained.items():
        slot = visit.slots.get(index)
        if tensor.stores_grad and slot is not None and slot.grad is not None:
            grad = ops.copy(slot.grad)
            grad.requires_grad = False
            yield tensor, grad


def _tell(visit: Visit) -> None:
    """Passes gradients to their watchers; after that their memory must not be written."""
    for index, tell in visit.node.watched:
        slot = visit.slots.get(index)
        if slot is not None and slot.grad is not None:
            slot.owned = False
            tell(slot.grad)


def _told(leaf: Leaf) -> Tensor:
    """A parameter's gradient, in separate memory if it is watched."""
    for method in tuple(watched_leaves.get(id(leaf.tensor), ())):
        tell = method()
        if tell is not None:
            leaf.owned = False
            tell(leaf.grad)
    return leaf.take()


def _complete(visit: Visit) -> tuple[Tensor, ...] | None:
    slots, metas = visit.slots, visit.node.metas
    if metas is None:  # nearly all nodes
        slot = slots.get(0)
        return None if slot is None or slot.grad is None else (slot.grad,)
    return ops.completed([slots[i].grad if i in slots else None for i in range(len(metas))], metas)


def _owned(visit: Visit, grads: Any, dys: tuple[Tensor, ...]) -> list[bool]:
    """Which gradients are in memory that nothing else holds."""
    if type(visit.node).gradients is Operator.gradients:  # what the program may hold
        return [False] * len(grads)
    slot = visit.slots.get(0)
    only = len(dys) == 1 and slot is not None and slot.owned
    return _core.separate(grads, () if only else dys)

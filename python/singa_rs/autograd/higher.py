"""Gradients of chosen tensors, which can be differentiated again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from .. import _core
from .._core import GraphError, Op, begin_gradient, resume
from ..tensor import Tensor
from . import binary, ops
from .differentiable import RECOMPUTES, of_op, of_view, selected
from .mode import handled_by, mode, no_grad
from .order import check_uncut, postorder
from .rule import Rule
from .tape import Edge, Operator, Port, edge, made_by, note, output_of, release
from .views import Select

#: A tensor as a vertex of the tape: an output of a node, or a leaf.
Key = tuple[int, int]


def _key(edge: Edge) -> Key:
    if isinstance(edge, Tensor):
        return id(edge), -1
    node, index = output_of(edge)
    return id(node), index


def _vertex(x: Tensor) -> Key:
    """The vertex that a tensor is."""
    if x._creator is None:
        return id(x), -1
    node, index = made_by(x)
    return id(node), index


def gradients_of(
    y: Tensor, seed: Tensor, xs: Sequence[Tensor], create_graph: bool
) -> list[Tensor | None]:
    """The gradients of `y` with respect to `xs`: None where one does not lead to `y`, zeros where
    `y` does not depend on one that leads to it. The tape is released unless `create_graph` is
    set."""
    order, keys = _order(y), [_vertex(x) for x in xs]
    with _lines() if create_graph else no_grad():
        found = _walk(order, set(keys), {_vertex(y): seed}, create_graph)
    grads = [found.get(key) for key in keys]
    if create_graph or any(g is None for g in grads):
        below = Below(order)
        grads = [_zeros(x, below) if g is None else g for x, g in zip(xs, grads, strict=True)]
    if create_graph:
        return [g if g is None else _derivative(g, below) for g in grads]
    for node in order:
        if mode.nodes is not None:
            mode.nodes.keep(node)
        release(node)
    return _separated(grads, seed)


def _order(y: Tensor) -> list[Operator]:
    return [] if y._creator is None else postorder(made_by(y)[0])


class Below:
    """The nodes and leaves that lead to a tensor, and so to its gradient, which may be gone; what
    leads to a gradient among them is looked up when it is asked for."""

    def __init__(self, order: list[Operator]) -> None:
        found: dict[int, ref[Any]] = {}
        inner: dict[int, Below] = {}
        for node in order:
            found[id(node)] = ref(node)
            for leaf in node.edges:
                if isinstance(leaf, Tensor):
                    found[id(leaf)] = ref(leaf)
            if isinstance(node, Derivative):
                inner[id(node.below)] = node.below
        self._found, self._inner = found, inner

    def has(self, vertex: Any) -> bool:
        """Whether a node or leaf leads to the tensor."""
        open_: dict[int, Below] = {id(self): self}
        seen: set[int] = set()
        while open_:
            key, one = open_.popitem()
            known = one._found.get(id(vertex))
            if known is not None and known() is vertex:
                return True
            seen.add(key)
            open_ |= {k: inner for k, inner in one._inner.items() if k not in seen}
        return False


class Derivative(Rule):
    """A gradient: what the tensor was made of that it is the gradient of leads to it, too, also
    where it is constant."""

    def __init__(self, below: Below) -> None:
        self.below = below

    def forward(self, x: Tensor) -> Tensor:
        """The gradient itself."""
        return x.alias()

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy`."""
        return dys


def _zeros(x: Tensor, below: Below) -> Tensor | None:
    """The gradient of what leads to a tensor that does not depend on it; None if it does not."""
    vertex = x if x._creator is None else made_by(x)[0]
    return _constant(ops.full(x.shape, 0, x)) if below.has(vertex) else None


def _derivative(grad: Tensor, below: Below) -> Tensor:
    """A gradient that can be differentiated again."""
    if not mode.tape:
        return grad
    node = Derivative(below)
    made = node.forward(grad)
    made.requires_grad, made._creator = True, node
    node.edges = (edge(grad),)
    note(node, (made,))
    return made


def _separated(grads: list[Tensor | None], seed: Tensor) -> list[Tensor | None]:
    """Gradients that own their memory, and take no gradient."""
    made = [grad for grad in grads if grad is not None]
    alone = iter(_core.separate(made, (seed,)))
    own = (None if g is None else g if next(alone) else ops.copy(g) for g in grads)
    return [_constant(grad) for grad in own]


def stored(y: Tensor) -> list[Tensor]:
    """The tensors that lead to `y` and store their gradient."""
    edges = (edge for node in _order(y) for edge in node.edges)
    leaves = (e for e in edges if isinstance(e, Tensor) and e.requires_grad and e._stores_grad)
    return list({id(leaf): leaf for leaf in leaves}.values())


@contextlib.contextmanager
def _lines() -> Iterator[None]:
    """While a step is recorded, operations for a node belong to the line of its forward."""
    before = begin_gradient(0)
    try:
        yield
    finally:
        resume(before)


def _walk(
    order: list[Operator], wanted: set[Key], grads: dict[Key, Tensor], create_graph: bool
) -> dict[Key, Tensor]:
    """Adds the gradients of all vertices that lead to the wanted ones to those in `grads`."""
    leads = _leading(order, wanted)
    add = binary.FUNCTIONS["add"]
    for node in reversed(order):
        if id(node) not in leads:
            continue
        if mode.nodes is not None:
            begin_gradient(node.origin)
        metas = node.metas or (None,)
        dys = ops.completed([grads.get((id(node), i)) for i in range(len(metas))], metas)
        if dys is None:
            continue
        flags = [_key(to) in wanted or _of(to) in leads for to in node.edges]
        made = _again(node, dys, flags) if create_graph else node.gradients(dys, flags)
        for to, grad, flag in zip(node.edges, made, flags, strict=True):
            if flag and grad is not None:
                key = _key(to)
                grads[key] = add(grads[key], grad) if key in grads else grad
    return grads


def _of(edge: Edge) -> int | None:
    """The id of the node that an edge leads to; None for a leaf."""
    return None if isinstance(edge, Tensor) else _key(edge)[0]


def _leading(order: list[Operator], wanted: set[Key]) -> set[int]:
    """The nodes from which an edge leads on to a wanted vertex."""
    leads: set[int] = set()
    for node in order:
        if not node.differentiable:
            continue
        for to in node.edges:
            if isinstance(to, Tensor):
                check_uncut(to)
            if _key(to) in wanted or _of(to) in leads:
                leads.add(id(node))
    return leads


class _Connected:
    """A tensor that a node saved, as a tensor of the tape."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.shape = tensor, tensor.shape

    def load(self) -> Tensor:
        """The tensor."""
        return self.tensor


class _Again:
    """The gradient of one node, computed by operations that have gradients."""

    def __init__(self, node: Rule) -> None:
        self.node = node
        #: Tensors that depend on the inputs in a way that the tape does not know.
        self.unknown: list[Tensor] = []
        self.copy = node._again()
        self.copy.edges, self.copy.metas = node.edges, node.metas
        saved = zip(range(len(node.saved)), node.origins(), strict=True)
        self.copy.saved = tuple(self._connected(i, origin) for i, origin in saved)

    def _connected(self, i: int, origin: str) -> _Connected | None:
        """Saved tensor `i` as what it is to the tape."""
        node = self.node
        if node.saved[i] is None:
            return None
        if origin[:1] == "x" and isinstance(node.edges[int(origin[1:])], Tensor):
            node.load(i)  # raises if it was written since
            return _Connected(node.edges[int(origin[1:])])
        made = node.load(i)
        if origin[:1] == "x":
            made._creator = node.edges[int(origin[1:])]
        elif origin[:1] == "y":
            index = int(origin[1:])
            made._creator = Port(node, index) if index else node
        else:
            made.requires_grad = False
            if not origin and made.dtype.is_float:
                self.unknown.append(made)
        return _Connected(made)

    def gradients(self, dys: tuple[Tensor, ...], wanted: list[bool]) -> Any:
        """As those of the node."""
        noted = mode.noted
        with handled_by(self._run) as handler:
            self.around = (handler, noted)
            return self.copy.gradients_again(dys, wanted)

    def _run(self, what: Any, inputs: tuple[Tensor, ...], outputs: Any = None) -> Any:
        """Runs an operation or a view, which whoever traces all of it sees, too."""
        if self.around[0] is None:
            return self._made(what, inputs, outputs)
        with handled_by(*self.around):
            return self._made(what, inputs, outputs)

    def _made(self, what: Any, inputs: tuple[Tensor, ...], outputs: Any) -> Any:
        """What an operation or a view makes, if it must by what has a gradient."""
        if outputs is not None:
            raise self._refusal(what)
        is_op = isinstance(what, Op)
        if not is_op and what[0] == "from_numpy":
            return _constant(_core.from_numpy(*what[1]))
        name = what.attrs["op"] if is_op else what[0]
        if name not in RECOMPUTES and any(x is u for x in inputs for u in self.unknown):
            raise self._refusal(what)
        if not any(x.requires_grad for x in inputs):
            return _constant(what(*inputs) if is_op else getattr(inputs[0], name)(what[1]))
        function = of_op(what) if is_op else of_view(*what)
        if function is None:
            if _is_flat(what):
                return _constant(what(*inputs))
            raise self._refusal(what)
        return function(*inputs)

    def _refusal(self, what: Any) -> GraphError:
        uses = what.name if isinstance(what, Op) else what[0]
        return GraphError(
            f"gradients: {self.node.name} cannot be differentiated again: its gradient is "
            f"computed by {uses}, which has no gradient here; create_graph=False does without"
        )


def _constant(made: Any) -> Any:
    """What takes no gradient."""
    for y in made if isinstance(made, tuple) else (made,):
        if y is not None:
            y.requires_grad = False
    return made


def _is_flat(op: Any) -> bool:
    """Whether the results of an operation are positions, truth values or constant pieces."""
    attrs = op.attrs if isinstance(op, Op) else {}
    f = attrs.get("f")
    return (attrs.get("op"), f) in {("reduce", one) for one in ("any", "all", "argmax", "argmin")}


def _again(node: Operator, dys: tuple[Tensor, ...], wanted: list[bool]) -> Any:
    """The gradients of a node's inputs, on the tape."""
    if isinstance(node, Select):
        return (selected(node, dys[0]),)
    if type(node).gradients is Operator.gradients:
        raise GraphError(
            f"gradients: {node.name} cannot be differentiated again: the tape does not know what "
            "its backward is made of; create_graph=False does without"
        )
    return _Again(node).gradients(dys, wanted)

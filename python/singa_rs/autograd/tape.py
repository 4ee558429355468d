"""The tape: which operation made a tensor, from what, and what it kept for backward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakMethod, ref

import numpy as np

from .. import _core
from .._core import GraphError, ShapeError
from ..shown import misgiven, shown
from ..tensor import Tensor, as_tensor
from ..tensor.arrays import operands
from ..tensor.keys import key_of
from . import ops
from .mode import mode, no_grad
from .ops import Grads, Tensors

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..device import Device
    from ..tensor.takers import TensorLike


class Port:
    """Output `index` of a node, if it is not the first one."""

    __slots__ = ("node", "index")

    def __init__(self, node: Operator, index: int) -> None:
        self.node, self.index = node, index


class Source(NamedTuple):
    """What has made a tensor through which no gradient flows: output `index` of a node, and its
    inputs, most for as long as something else keeps them alive. Exporting looks at it."""

    node: Operator
    index: int
    inputs: tuple[Tensor | ref[Tensor], ...]


#: A callback that gets a final gradient.
Tell = Callable[[Tensor], None]

#: Where a gradient goes: a leaf, a node's first output, or another of its outputs.
Edge = Tensor | Any

_numbers = itertools.count()


class Operator:
    """A node of the tape, and the class to derive new operations from (SINGA Operator).

    A subclass writes `forward(*xs)` and `backward(*dys)` with tensor operations: `forward` gets
    tensors and returns one or a tuple; `backward` gets a gradient for each output and returns one
    for each input, a tuple if there are several, None where there is none. `MyOp(args)(*xs)`
    returns a tuple. A class with `host = True` and `infer(*metas)` gets NumPy arrays instead.
    """

    #: One for each input; None until the operation is recorded.
    edges: tuple[Edge, ...] | None = None
    #: The tensors that the gradient needs.
    saved: tuple[_core.Saved | None, ...] = ()
    #: Shape, device and dtype of each output, if there are several.
    metas: tuple[Any, ...] | None = None
    #: Outputs whose gradients the user wants, by their index.
    retained: dict[int, Tensor] | None = None
    #: Indices of outputs, and the callbacks that get their gradients.
    watched: list[tuple[int, Tell]] | None = None
    differentiable = True
    #: Whether the node is known after backward; a user's may hold values in its attributes.
    lasts = False
    host = False
    #: Whether an output without a gradient keeps its inputs alive for exports, as they are small.
    _keeps_inputs = False
    #: Whether the output may share the input's memory, so that writes into one are into both.
    is_view = False
    #: The line of the user's program that it was recorded under; 0 outside of recordings.
    origin = 0
    _name: str | None = None

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self._name = name

    @property
    def name(self) -> str:
        """The given name, or the class and a number."""
        if self._name is None:
            self._name = f"{type(self).__name__}#{next(_numbers)}"
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    def output_name(self, idx: int) -> str:
        """The name of output `idx`."""
        return f"{self.name}:{idx}"

    def grad_name(self, idx: int) -> str:
        """The name of the gradient of output `idx`."""
        return f"{self.name}_g:{idx}"

    def get_params(self) -> list[Tensor]:
        """The parameters among the inputs."""
        leaves = (edge for edge in self.edges or () if isinstance(edge, Tensor))
        return [leaf for leaf in leaves if leaf.stores_grad]

    def __call__(self, *xs: TensorLike) -> tuple[Tensor, ...]:
        """Runs `forward` without recording inside it; returns the outputs, always as a tuple."""
        node = self if self.edges is None else self._again()
        xs = operands(xs, node.name)
        for x in xs:
            if not isinstance(x, Tensor):
                raise TypeError(f"{node.name}: {misgiven(x)}")
        with no_grad():
            made = node._on_host(xs) if self.host else node.forward(*(x.data for x in xs))
            ys = _own(_tuple(made), xs, node.name)
        node._inputs = tuple((x.shape, x.dtype) for x in xs)
        if mode.tape:
            node._versions = tuple((t, t.version) for t in node._held())
            record(node, xs, ys)
        return ys

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        """Does nothing: a user's operation keeps what its `forward` puts into attributes."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy is an operation, not a node of the tape."""
        return {k: v for k, v in vars(self).items() if k == "_name" or k not in _OF_THE_TAPE}

    def _again(self) -> Self:
        """A node with the same attributes for another call."""
        node = object.__new__(type(self))
        node.__dict__.update(Operator.settings(self))
        return node

    def _held(self) -> list[Tensor]:
        """The tensors in the attributes, including those in tuples and lists."""
        own = (v for k, v in vars(self).items() if k not in _NOT_HELD)
        flat = (v if isinstance(v, (tuple, list)) else (v,) for v in own)
        return [t for items in flat for t in items if isinstance(t, Tensor)]

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """The gradient of each input, from those of the outputs, checked; None if there is none."""
        for held, version in self._versions:
            if held.version != version:
                raise stale(self, held.shape)
        with no_grad():
            made = self._back_on_host(dys) if self.host else self.backward(*(dy.data for dy in dys))
        made = _tuple(made)
        if len(made) != len(self._inputs):
            raise GraphError(
                f"{self.name}: backward returned {len(made)} gradients, want {len(self._inputs)}"
            )
        pairs, to = zip(made, self._inputs, strict=True), dys[0].device
        return tuple(None if g is None else self._checked(g, to, *meta) for g, meta in pairs)

    def _checked(self, grad: Any, to: Device, shape: tuple[int, ...], dtype: Any) -> Tensor:
        grad = as_tensor(grad, to, dtype).alias()
        if grad.shape != shape or grad.dtype != dtype:
            raise ShapeError(
                f"{self.name}: backward returned a gradient of shape {grad.shape} and dtype "
                f"{grad.dtype.name}, want {shape} and {dtype.name}"
            )
        return grad

    def _on_host(self, xs: tuple[Tensor, ...]) -> Any:
        op = _core.HostOp(type(self).__name__, self.infer, self.forward, self._key("forward"))
        return op(*xs)

    def _back_on_host(self, dys: tuple[Tensor, ...]) -> Any:
        def backward(*arrays: Any) -> Any:
            made = _tuple(self.backward(*arrays))
            pairs = zip(made, self._inputs, strict=True)
            return [np.zeros(s, d.name) if g is None else g for g, (s, d) in pairs]

        def infer(*_: Any) -> Any:
            return list(self._inputs)

        name = f"{type(self).__name__}.backward"
        return _core.HostOp(name, infer, backward, self._key("backward"))(*dys)

    def _key(self, method: str) -> Any:
        """Equal for operations that recordings equate: of one class, with equal attributes."""
        settings = ((name, key_of(value)) for name, value in Operator.settings(self))
        return (type(self), method, *settings)

    def settings(self) -> list[tuple[str, Any]]:
        """The attributes, except those of the tape."""
        return [pair for pair in vars(self).items() if pair[0] not in _OF_THE_TAPE]


#: The attributes of an operation that belong to the tape.
_OF_THE_TAPE = frozenset(
    {"edges", "saved", "metas", "retained", "watched", "origin", "_name", "_inputs", "_versions"}
)
#: The attributes of an operation with tensors that its gradient does not need.
_NOT_HELD = frozenset({"edges", "retained", "watched", "_versions"})


def _tuple(made: Any) -> tuple[Any, ...]:
    return tuple(made) if isinstance(made, (tuple, list)) else (made,)


def _own(made: tuple[Any, ...], xs: tuple[Tensor, ...], name: str) -> tuple[Tensor, ...]:
    """The outputs of a user's `forward`, each in memory that no input and no other output shares:
    the tape could not tell which of their elements are the same."""
    if not made or not all(isinstance(y, Tensor) for y in made):
        got = ", ".join(map(shown, made)) or "()"
        raise TypeError(f"{name}: forward returned {got}, want a Tensor or a tuple of Tensors")
    held, ys = {x.block_id for x in xs}, []
    for y in made:
        ys.append(ops.copy(y) if y.block_id in held else y.alias())
        held.add(y.block_id)
    return tuple(ys)


class Dummy(Operator):
    """Stands for the creator of a leaf (SINGA Dummy)."""

    differentiable = False

    def __init__(self, tensor: Tensor, name: str | None = None) -> None:
        super().__init__(name)
        self.tensor = tensor

    def output_name(self, idx: int) -> str:
        """The tensor's name."""
        return self.name

    def grad_name(self, idx: int) -> str:
        """The name of the tensor's gradient."""
        return f"{self.name}_g"


def stale(node: Operator, shape: tuple[int, ...]) -> GraphError:
    """The error for a saved tensor that was written since."""
    return GraphError(
        f"{node.name}: a tensor of shape {shape} that it needs for its gradient was changed in "
        "place after it was used"
    )


def retain(tensor: Tensor) -> None:
    """Lets backward yield the gradient of a tensor that an operation made."""
    node, index = made_by(tensor)
    if node.retained is None:
        node.retained = {}
    node.retained[index] = tensor


def forget(tensor: Tensor) -> None:
    """Undoes `retain`."""
    node, index = made_by(tensor)
    if node.retained is None or node.retained.get(index) is not tensor:
        return
    if mode.nodes is not None:
        mode.nodes.keep(node)
    node.retained = {i: t for i, t in node.retained.items() if i != index} or None


def remake(tensor: Tensor, creator: Any) -> None:
    """Makes `creator` (a node, a Port, or None) the creator of a tensor's present value. If the
    tensor's gradient is wanted, it is that of this value, not of the one before."""
    if tensor._creator is not None:
        forget(tensor)
    tensor._creator = creator
    if creator is None:
        return
    note(made_by(tensor)[0], (tensor,))
    if tensor._stores_grad:
        retain(tensor)


def watch(tensor: Tensor, tell: Tell) -> None:
    """Has backward call `tell` with the gradient of a tensor that an operation made, once it is
    final. It is never called for a tensor without a creator."""
    if tensor._creator is None:
        return
    node, index = made_by(tensor)
    node.watched = [*(node.watched or ()), (index, tell)]


#: By `id` of parameters, the methods that get their gradients.
watched_leaves: dict[int, list[WeakMethod[Tell]]] = {}


def watch_leaf(parameter: Tensor, tell: Tell) -> Callable[[], None]:
    """Has every backward call a method with the gradient of a parameter, as long as the method's
    object lives, which must hold the parameter. Returns a function that ends this."""
    key = id(parameter)

    def end(told: Any = None) -> None:
        # By identity, as references to one method are equal; `end` may be called twice.
        left = [one for one in watched_leaves.pop(key, []) if one is not method]
        if left:
            watched_leaves[key] = left

    method = WeakMethod(tell, end)
    watched_leaves.setdefault(key, []).append(method)
    return end


def made_by(tensor: Tensor) -> tuple[Operator, int]:
    """The node that made a tensor, and the index of the output."""
    return output_of(tensor._creator)


def output_of(edge: Any) -> tuple[Any, int]:
    """The node that an edge leads to, or what else is there, and the index of its output."""
    return (edge.node, edge.index) if type(edge) is Port else (edge, 0)


def record(node: Operator, xs: Sequence[Tensor], ys: tuple[Tensor, ...]) -> None:
    """Makes `node` the creator of `ys`, unless no gradient can flow through it."""
    if not node.differentiable or not _wanted(xs):
        for i, y in enumerate(ys):
            y.requires_grad = False
            if mode.nodes is None:
                y._source = Source(node, i, tuple(xs if node._keeps_inputs else map(ref, xs)))
        if node.is_view and node.differentiable:
            node.keep(xs, ys)  # a later write into either gives both a gradient
        return
    node.keep(xs, ys)
    node.edges = (edge(xs[0]),) if len(xs) == 1 else tuple(map(edge, xs))
    ys[0]._creator = node
    if len(ys) > 1:
        node.metas = tuple((y.shape, y.device, y.dtype) for y in ys)
        for i in range(1, len(ys)):
            ys[i]._creator = Port(node, i)
    note(node, ys)


def note(node: Operator, ys: tuple[Tensor, ...]) -> None:
    """Keeps a node that made `ys` until the recording ends, if the thread is recording."""
    tape = mode.tape
    if tape is not True and tape:
        tape.note(node, ys)


def _wanted(xs: Sequence[Tensor]) -> bool:
    for x in xs:  # several times faster than any() of a generator
        if x.requires_grad:
            return True
    return False


def edge(x: Tensor) -> Edge:
    """Where the gradient of `x` goes."""
    creator = x._creator
    return x if creator is None or not x.requires_grad else creator


class Released(tuple):
    """The edges of a node that backward has been through, of which the computation can still be
    exported: parameters and this package's nodes, references to other tensors, and None."""

    __slots__ = ()


def pass_through(node: Operator) -> None:
    """Notes that backward has been through a node."""
    if type(node.edges) is not Released:
        node.edges = Released(map(_loose, node.edges or ()))


def _loose(edge: Edge) -> Any:
    """An edge that keeps no values alive but parameters."""
    if isinstance(edge, Tensor):
        return edge if edge._stores_grad else ref(edge)
    node, _ = output_of(edge)
    return edge if node.lasts else None


def alive(node: Operator) -> None:
    """Raises GraphError if a node was never recorded, or backward has already been through it."""
    if node.edges is None:
        want = "autograd.training must be True when it runs"
        if mode.training:
            want = "call op(x)[0] or its function; forward alone, or in another, records nothing"
        raise GraphError(f"{node.name}: backward: the operation was not recorded; {want}")
    if type(node.edges) is Released:
        raise GraphError(
            f"{node.name}: backward has already passed through it and released what it had saved; "
            "compute the loss again"
        )


def release(node: Operator) -> None:
    """Drops what a processed node held."""
    pass_through(node)
    node.saved, node.retained, node.watched = (), None, None

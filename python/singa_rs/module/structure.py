"""The operations of a model, and the shapes that they make of its inputs': `Module.graph`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import record
from ..errors import GraphError
from ..record import Event, place
from ..tensor import Placeholder, Tensor
from ..tensor.creation import as_shape

if TYPE_CHECKING:
    from . import Module

Shape = tuple[int, ...]


class Node:
    """An operation of a model: what it takes and what it makes (`Node` of SINGA's proposal).

    Attributes:
        name: the operation and its number, such as "conv:3".
        op: the operation, such as "conv" or "relu".
        attrs: its attributes.
        inputs: by input, the node that makes it; or a name: of a parameter, of a state, "input 0"
            and so on for those of the model, "constant".
        input_shapes, shapes: of the inputs, and of the results.
        dtypes: of the results.
    """

    def __init__(self, event: Event, number: int, inputs: tuple[Node | str, ...], root: Any):
        self.op = _title(event)
        self.name = f"{self.op}:{number}"
        self.attrs = event.attrs
        self.inputs = inputs
        self.input_shapes = tuple(t.shape for t in event.inputs)
        self.shapes = tuple(t.shape for t in event.outputs)
        self.dtypes = tuple(t.dtype for t in event.outputs)
        self._input_types = [(t.device, t.dtype) for t in event.inputs]
        self._what = None if event.writes else event.what
        self._root = root

    def infer_shape(self, *shapes: Any) -> Shape | tuple[Shape, ...]:
        """The shape of the result, or those of several, for inputs of these shapes, by default of
        those that it was compiled for. Nothing is computed.

        Raises:
            ShapeError: shapes that the operation does not take.
            ValueError: another number of shapes, or shapes for an operation that writes into
                tensors which are there already.
        """
        found = self.shapes if not shapes else self._inferred([as_shape(one) for one in shapes])
        return found[0] if len(found) == 1 else found

    def _inferred(self, shapes: list[Shape]) -> tuple[Shape, ...]:
        if self._what is None or len(shapes) != len(self._input_types):
            want = len(self._input_types) if self._what else "none, as it writes into tensors"
            raise ValueError(f"{self.name}: infer_shape: got {len(shapes)} shapes, want {want}")
        pairs = zip(shapes, self._input_types, strict=True)
        given = [Placeholder(shape, *kind) for shape, kind in pairs]
        return _inferred(lambda _, *tensors: record.perform(self._what, tensors), self._root, given)

    def __repr__(self) -> str:
        made = " ".join(map(str, self.shapes))
        return f"{self.name} {made} <- {', '.join(map(_label, self.inputs))}"


class Graph:
    """The operations of a model's `forward` in evaluation, for the inputs that it was compiled with
    or, without, first called with (`Graph` of SINGA's proposal). Printing it lists them.

    Called, it is SINGA's `Model.graph`, which turns recording on and off.
    """

    def __init__(self, module: Module) -> None:
        self._module = module

    def __call__(
        self,
        mode: bool = True,
        sequential: bool = False,
        *,
        exact: bool = True,
        parallel: bool = False,
    ) -> None:
        """Turns `train_one_batch`, and `forward` in evaluation, into graph functions, or back into
        plain methods (SINGA Model.graph). `sequential` has no effect: operations run in recorded
        order, unless they are `parallel`, which is the `graph_alg` of that name of `compile`.
        `exact` is that of `compile`."""
        self._module._switch(mode, exact, parallel)

    @property
    def inputs(self) -> list[tuple[Shape, str]]:
        """The shape and the dtype of each input.

        Raises:
            GraphError: they are not known yet.
        """
        found = self._module._inputs
        if found is None:
            name = type(self._module).__name__
            raise GraphError(f"graph: {name} was neither compiled nor called with tensors alone")
        return list(found)

    @cached_property
    def nodes(self) -> list[Node]:
        """The operations in the order in which they run.

        Raises:
            GraphError: the inputs are not known yet; `forward` reads a value.
        """
        return list(_nodes(self._module, self._placeholders()))

    def infer_shape(self, *shapes: Any) -> Shape | tuple[Shape, ...]:
        """The shape of the model's result, or those of several, for inputs of these shapes, by
        default of those that it was compiled for. Nothing is computed.

        Raises:
            ShapeError: shapes that the model does not take.
            ValueError: another number of shapes.
        """
        if shapes and len(shapes) != len(self.inputs):
            want = len(self.inputs)
            raise ValueError(f"graph: infer_shape: got {len(shapes)} shapes, want {want}")
        given = self._placeholders([as_shape(one) for one in shapes])
        found = _inferred(type(self._module).forward, self._module, given)
        return found[0] if len(found) == 1 else found

    def _placeholders(self, shapes: Sequence[Shape] = ()) -> list[Placeholder]:
        kinds = self.inputs
        wanted = shapes or [shape for shape, _ in kinds]
        pairs = zip(wanted, kinds, strict=True)
        return [Placeholder(shape, self._module.device, dtype) for shape, (_, dtype) in pairs]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        name = type(self._module).__name__
        if self._module._inputs is None:
            return f"Graph({name}): neither compiled nor called with tensors alone"
        given = ", ".join(f"{shape} {dtype}" for shape, dtype in self.inputs)
        return "\n".join([f"Graph({name}): {len(self)} nodes of {given}", *map(_line, self.nodes)])


class GraphOf:
    """The attribute `graph` of a model; models may have one of their own instead."""

    def __get__(self, module: Any, owner: type) -> Any:
        """The graph of the model, or this object for the class."""
        return self if module is None else Graph(module)


def _inferred(function: Any, root: Any, given: Sequence[Placeholder]) -> tuple[Shape, ...]:
    """The shapes of the tensors that `function(root, *given)` returns."""
    found: list[Shape] = []

    def call(root: Any, *tensors: Any) -> None:
        results: list[Tensor] = []
        record.flatten(function(root, *tensors), results)
        found.extend(t.shape for t in results)

    record.infer(call, root, False, tuple(given), {}, op="graph")
    return tuple(found)


def _nodes(module: Module, given: Sequence[Placeholder]) -> Iterator[Node]:
    made = record.operations(type(module).forward, module, given)
    names = {state.block_id: name for name, state in module.get_states().items()}
    known: dict[Any, Node | str] = {place(t): f"input {i}" for i, t in enumerate(made.arguments)}
    for number, event in enumerate(made.events):
        inputs = (known.get(place(t)) or names.get(t.block_id, "constant") for t in event.inputs)
        node = Node(event, number, tuple(inputs), module)
        known.update((place(t), node) for t in event.outputs)
        yield node


def _title(event: Event) -> str:
    """The function that an operation computes element by element or along axes, else its name."""
    f = event.attrs.get("f")
    return next(iter(f)) if isinstance(f, dict) else f or event.name.removeprefix("view_")


def _label(one: Node | str) -> str:
    return one if isinstance(one, str) else one.name


def _line(node: Node) -> str:
    return f"  {node!r}"

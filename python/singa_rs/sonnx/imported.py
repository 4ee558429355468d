"""Imported models: a graph of ONNX whose weights are parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx

from .. import autograd, record
from .. import device as devices
from ..device import Device
from ..errors import CheckpointError, GraphError
from ..layer.base import Layer
from ..module import Module
from ..tensor import Tensor
from .body import Body, body, read_graph, scope_of
from .declared import as_declared
from .hoisting import hoisted
from .idioms import recognised
from .reading import constant, opened
from .running import Frame
from .stretches import Stretches
from .values import Value, to_tensor


def loaded(model: Any) -> tuple[onnx.ModelProto, Body]:
    """A model, or that of a file, which ONNX checks, and its graph, whose constants may be on the
    mapped memory of the file.

    Raises:
        CheckpointError: constants are not what the file says.
        onnx.checker.ValidationError: it is no model of ONNX; data of other files leave its folder.
        OSError: the file cannot be opened.
        TypeError: neither a model nor a path.
    """
    if isinstance(model, onnx.ModelProto):
        return model, hoisted(recognised(read_graph(model.graph, scope_of(model))))
    if not isinstance(model, (str, os.PathLike)):
        kind = type(model).__name__
        raise TypeError(f"sonnx: got {kind} for a model, want an onnx.ModelProto or a path")
    try:
        with opened(os.fspath(model)) as (proto, source):
            graph = read_graph(proto.graph, scope_of(proto, source), is_mapped=True)
            return proto, hoisted(recognised(graph))
    except (onnx.checker.ValidationError, OSError):
        raise
    except Exception as error:  # whatever protobuf and NumPy say of bytes
        raise CheckpointError(f"sonnx: {model}: {type(error).__name__}: {error}") from error


class SONNXModel(Module):
    """An imported model, which computes, and can be trained further (SINGA SONNXModel).

    Its weights, which are the graph's constants of floats, are parameters under their names in the
    file. Subclasses may add layers and define `train_one_batch`.
    """

    _unwatched = Module._unwatched | {"_body", "_cut", "_declared", "_stretches", "_types"}

    def __init__(self, onnx_model: Any, device: Device | None = None) -> None:
        super().__init__()
        proto, self._body = loaded(onnx_model)
        #: By input, the element type that it is declared to have; 0 for what is no tensor.
        self._types = {x.name: x.type.tensor_type.elem_type for x in proto.graph.input}
        #: The same in the order of the inputs.
        self._declared = tuple(self._types.get(name, 0) for name in self._body.inputs)
        self._to = device or devices.get_default_device()
        names = _weights(proto.graph, self._body)
        del proto  # it holds all weights, too
        self.weights = Weights(self._body, names, self._to)
        _detach(self._body.constants)
        self._cut: dict[Any, Body] = {}
        #: What records and replays parts of it in evaluation; None runs node by node.
        self._stretches: Stretches | None = None

    def forward(
        self, *inputs: Any, last_layers: int | None = None, aux_output: Iterable[str] = ()
    ) -> list[Any]:
        """The graph's outputs for its inputs, in order.

        Args:
            last_layers: the number of nodes to run, from the end if negative; the outputs are then
                those of the last one.
            aux_output: names of further values, which follow the outputs.

        Raises:
            ValueError: another number of inputs than the graph has.
        """
        return self.outputs(inputs, last_layers, aux_output)

    def outputs(
        self, inputs: Sequence[Any], last_layers: int | None = None, aux_output: Iterable[str] = ()
    ) -> list[Any]:
        """As `forward`, in the mode of `autograd.training`, whatever that of the model is. Threads
        may call it at the same time; those that record and replay take turns."""
        part = self._part(last_layers, tuple(aux_output))
        if len(inputs) != len(part.inputs):
            want = f"{len(part.inputs)}: {', '.join(part.inputs)}"
            raise ValueError(f"{part.name or 'graph'}: got {len(inputs)} inputs, want {want}")
        given = [
            as_declared(name, x, self._types.get(name, 0))
            for name, x in zip(part.inputs, inputs, strict=True)
        ]
        stretches = self._stretches
        if stretches is None or autograd.training or record.is_recording():
            return self._run(part, given)
        with stretches.lock:
            found = stretches.replayed(part, given)
            return self._run(part, given, stretches) if found is None else found

    def _run(
        self, part: Body, inputs: Sequence[Value], stretches: Stretches | None = None
    ) -> list[Value]:
        """The outputs of nodes that are run one by one, or in stretches."""
        frame = Frame(part, self._to, None, stretches, self.weights)
        return frame.run(dict(zip(part.inputs, inputs, strict=True)))

    def _part(self, count: int | None, extra: tuple[str, ...]) -> Body:
        """The nodes that are to run."""
        key = (count, extra)
        if key not in self._cut:
            self._cut[key] = cut(self._body, count, extra)
        return self._cut[key]

    def compile(
        self,
        inputs: Sequence[Any],
        is_train: bool = True,
        use_graph: bool = True,
        graph_alg: str | bool = "sequence",
        **options: Any,
    ) -> None:
        """As `Module.compile`. In evaluation a graph that reads values back (conditions on them,
        shapes that depend on them) is recorded in the parts between."""
        self._stretches = None
        try:
            super().compile(inputs, is_train, use_graph, graph_alg, **options)
        except GraphError:
            if is_train:
                raise
            self.record_parts()

    def record_parts(self, exact: bool = True) -> None:
        """From here on, evaluation records and replays the parts of the graph that read no values
        back; `exact` is that of `compile`."""
        self._stretches = Stretches(self.weights, exact)


class Weights(Layer):
    """The constants of a graph that are computed with, as parameters under their names in the
    file; the running averages of batch normalisation, as states."""

    _unwatched = Layer._unwatched | {"_names"}  # which stay as they are

    def __init__(self, graph: Body, names: Sequence[str], device: Device) -> None:
        super().__init__()
        #: Attributes by names in the file.
        self._names: dict[str, str] = {}
        averages = _averages(graph)
        for name in names:
            made = to_tensor(graph.constants.pop(name), device)
            made.requires_grad = made.stores_grad = name not in averages
            made.set_account("states" if name in averages else "parameters")
            made.name = name
            self._names[name] = attribute = f"{name}_" if hasattr(self, name) else name
            setattr(self, attribute, made)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Tensor:
        """A parameter by its name in the file."""
        return getattr(self, self._names[name])

    def tensors(self) -> dict[str, Tensor]:
        """The parameters by their names in the file."""
        return {name: self[name] for name in self._names}


def _weights(proto: onnx.GraphProto, graph: Body) -> list[str]:
    """The constants that are parameters: initialisers of floats, those in nodes where a file has
    no such initialisers, as some converters write them."""
    initialisers, settings = {one.name for one in proto.initializer}, _settings(graph)
    constants = graph.constants.items()
    floats = [name for name, one in constants if _is_weight(one) and name not in settings]
    return [name for name in floats if name in initialisers] or floats


def _settings(graph: Body) -> set[str]:
    """What nodes want on the host, such as the scales of images."""
    nodes = [node for node in graph.nodes if node.row is not None]
    return {x for node in nodes for i, x in enumerate(node.inputs) if i in node.row.host}


def _is_weight(array: np.ndarray) -> bool:
    return array.dtype.name in ("float32", "float64", "float16") and array.ndim > 0


def _detach(constants: dict[str, np.ndarray]) -> None:
    """Gives arrays on the memory of something else their own, so that nothing else is kept."""
    for name, one in constants.items():
        if not one.flags.owndata:
            constants[name] = constant(one)


def _averages(graph: Body) -> set[str]:
    """The running means and variances, also those that functions are given."""
    found: set[str] = set()
    for node in graph.nodes:
        if node.function is not None:
            inside = _averages(node.function)
            pairs = zip(node.inputs, node.function.inputs, strict=False)
            found |= {outside for outside, name in pairs if name in inside}
        elif node.proto.op_type == "BatchNormalization":
            found |= set(node.inputs[3:5])
    return found


def cut(whole: Body, count: int | None, extra: Sequence[str] = ()) -> Body:
    """The first `count` nodes of a body, those up to the last `-count` for a negative number; the
    outputs are those of the last node. With all nodes, those of the graph."""
    nodes = whole.nodes if count is None else whole.nodes[:count]
    is_whole = len(nodes) == len(whole.nodes)
    outputs = whole.outputs if is_whole else tuple(y for y in nodes[-1].outputs if y)
    if is_whole and not extra:
        return whole
    return body(whole.name, whole.inputs, (*outputs, *extra), nodes, whole.constants)


__all__ = ["SONNXModel", "Value", "Weights", "cut", "loaded"]

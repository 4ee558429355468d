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
from ..tensor.numbers import whole as whole_number
from .body import Body, Scope, body, read_graph, scope_of
from .declared import as_array, as_declared
from .hoisting import hoisted
from .idioms import recognised
from .order import Disordered
from .reading import constant, opened
from .running import Frame
from .stretches import Stretches
from .values import Value, is_text, to_tensor


def loaded(model: Any) -> tuple[onnx.ModelProto, Body, Body]:
    """A model, or that of a file, which ONNX checks, its graph as it is, without constants, and as
    it is run; constants may be on the mapped memory of the file.

    Raises:
        CheckpointError: the file is no model of ONNX, or damaged; constants are not what it says;
            data of other files leave its folder.
        OSError: the file cannot be opened.
        TypeError: neither a model nor a path.
        ValueError: there is no order for the nodes of a model.
    """
    if isinstance(model, onnx.ModelProto):
        return model, *_read(model, scope_of(model))
    if not isinstance(model, (str, os.PathLike)):
        kind = type(model).__name__
        raise TypeError(f"sonnx: got {kind} for a model, want an onnx.ModelProto or a path")
    try:
        with opened(os.fspath(model)) as (proto, source):
            return proto, *_read(proto, scope_of(proto, source), is_mapped=True)
    except OSError:
        raise
    except (onnx.checker.ValidationError, Disordered) as error:
        raise CheckpointError(f"sonnx: {model}: no model of ONNX, or damaged: {error}") from error
    except Exception as error:  # whatever protobuf and NumPy say of bytes
        raise CheckpointError(f"sonnx: {model}: {type(error).__name__}: {error}") from error


def _read(proto: onnx.ModelProto, scope: Scope, is_mapped: bool = False) -> tuple[Body, Body]:
    """A graph as it is, without its constants, and as it is run."""
    graph = read_graph(proto.graph, scope, is_mapped)
    return graph._replace(constants={}), hoisted(recognised(graph))


class SONNXModel(Module):
    """An imported model, which computes, and can be trained further (SINGA SONNXModel).

    Its weights, which are the graph's constants of floats, are parameters under their names in the
    file. Subclasses may add layers and define `train_one_batch`.
    """

    _unwatched = Module._unwatched | {"_body", "_cut", "_full", "_stretches", "_types", "_wanted"}

    def __init__(self, onnx_model: Any, device: Device | None = None) -> None:
        super().__init__()
        proto, plain, self._body = loaded(onnx_model)
        #: By input, the element type that it is declared to have; 0 for what is no tensor.
        self._types = {x.name: x.type.tensor_type.elem_type for x in proto.graph.input}
        #: The same as names and types in the order of the inputs.
        self._wanted = tuple((name, self._types.get(name, 0)) for name in self._body.inputs)
        self._to = device or devices.get_default_device()
        names = _weights(proto.graph, self._body)
        del proto  # it holds all weights, too
        self.weights = Weights(self._body, names, self._to)
        _detach(self._body.constants)
        #: The graph for calls that also give the inputs which have values in the file, if any has.
        self._full = _full(plain, tuple(self._types), self._body.constants)
        self._cut: dict[Any, Body] = {}
        #: What records and replays parts of it in evaluation; None runs node by node.
        self._stretches: Stretches | None = None

    def forward(
        self, *inputs: Any, last_layers: int | None = None, aux_output: Iterable[str] = ()
    ) -> list[Any]:
        """The graph's outputs for its inputs, in order: those without values in the file, or all
        that it lists.

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
        whole = self._whole(len(inputs))
        part = self._part(whole, last_layers, tuple(aux_output))
        if len(inputs) != len(part.inputs):
            known = (self._body,) if self._full is None else (self._body, self._full)
            want = " or ".join(f"{len(one.inputs)}: {', '.join(one.inputs)}" for one in known)
            raise ValueError(f"{part.name or 'graph'}: got {len(inputs)} inputs, want {want}")
        given = list(map(self._given, part.inputs, inputs))
        stretches = self._stretches
        is_plain = whole is not self._body or autograd.training or record.is_recording()
        if stretches is None or is_plain:
            return self._run(part, given)
        with stretches.lock:
            found = stretches.replayed(part, given)
            return self._run(part, given, stretches) if found is None else found

    def _given(self, name: str, x: Any) -> Value:
        """A value of the graph for an argument."""
        element = self._types.get(name, 0)
        made = as_array(name, x, element)
        if made is not x and not is_text(made):
            made = to_tensor(made, self._to)
        return as_declared(name, made, element)

    def _run(
        self, part: Body, inputs: Sequence[Value], stretches: Stretches | None = None
    ) -> list[Value]:
        """The outputs of nodes that are run one by one, or in stretches."""
        frame = Frame(part, self._to, None, stretches, self.weights)
        return frame.run(dict(zip(part.inputs, inputs, strict=True)))

    def _whole(self, count: int) -> Body:
        """The graph for so many inputs."""
        full = self._full
        return self._body if full is None or count != len(full.inputs) else full

    def _wanted_of(self, count: int) -> Sequence[tuple[str, int]]:
        """The names of the inputs, where so many are given, and their declared element types."""
        whole = self._whole(count)
        return self._wanted if whole is self._body else tuple(self._types.items())

    def _part(self, whole: Body, count: int | None, extra: tuple[str, ...]) -> Body:
        """The nodes that are to run."""
        key = (whole is self._body, count, extra)
        if key not in self._cut:
            self._cut[key] = cut(whole, count, extra)
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
        super().compile(inputs, is_train, use_graph, graph_alg, **options)
        if self._stretches is not None:
            self.graph_mode = False

    def _infer(self, given: tuple[Any, ...], is_train: bool, may_read: bool) -> None:
        """As `Module.compile` does."""
        self._stretches = None
        try:
            super()._infer(given, is_train, may_read)
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


def _full(plain: Body, names: tuple[str, ...], constants: dict[str, np.ndarray]) -> Body | None:
    """A graph as it was read, which takes all inputs of these names; None if it has no others."""
    if len(names) == len(plain.inputs):
        return None
    own = {name: one for name, one in constants.items() if name not in names}
    made = body(plain.name, names, plain.outputs, plain.nodes, own)
    return made._replace(kinds=plain.kinds)


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
    total = len(whole.nodes)
    at = total if count is None else whole_number(count, "sonnx: last_layers")
    if count is not None and not (-total < at < 0 or 0 < at <= total):
        want = f"1 to {total}, or less than {total} to leave out at the end as a negative number"
        raise ValueError(f"sonnx: last_layers: got {count}, want {want}")
    nodes = whole.nodes[:at]
    is_whole = len(nodes) == len(whole.nodes)
    outputs = whole.outputs if is_whole else tuple(y for y in nodes[-1].outputs if y)
    if is_whole and not extra:
        return whole
    return body(whole.name, whole.inputs, (*outputs, *extra), nodes, whole.constants)


__all__ = ["SONNXModel", "Value", "Weights", "cut", "loaded"]

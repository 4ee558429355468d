"""Graphs as they are read from ONNX: nodes with their rows, attributes and names of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from .arrays import dtype_of
from .calls import fault
from .order import order_of
from .reading import MESSAGES, Source
from .table import Row, reader

#: Domains that are ONNX's own.
_PLAIN = {"", "ai.onnx"}


class Node(NamedTuple):
    """An operator's call."""

    proto: NodeProto
    row: Row | None
    opset: int
    attrs: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: What it runs, if it calls a function of the model.
    function: Body | None = None
    #: What about it its row does not know; "" if nothing.
    fault: str = ""
    #: What has written the model, as it says itself.
    producer: str = ""

    @property
    def label(self) -> str:
        """What errors call it."""
        name = f" ({self.proto.name})" if self.proto.name else ""
        return f"{self.proto.op_type}{name}"


class Body(NamedTuple):
    """A graph, or a part of one that a node runs."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    #: Constants by name.
    constants: dict[str, np.ndarray]
    #: After each node: the values that no later one needs.
    dead: tuple[tuple[str, ...], ...]
    #: What it takes from around it.
    outer: frozenset[str]
    #: The declared dtypes and extents of the outputs, 0 for an extent that is not; None without.
    kinds: tuple[tuple[np.dtype, tuple[int, ...]] | None, ...] = ()


class Scope(NamedTuple):
    """What operators are in a graph: opset versions by domain, and the functions of the model by
    domain, name and overload; where its tensors are, and what has written it."""

    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str, str], FunctionProto] = MappingProxyType({})
    source: Source = MESSAGES
    producer: str = ""


def domain_of(name: str) -> str:
    """A domain by its short name."""
    return "" if name in _PLAIN else name


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Opset versions by domain."""
    return {domain_of(one.domain): one.version for one in imports}


def scope_of(model: onnx.ModelProto, source: Source = MESSAGES) -> Scope:
    """What operators are in a model, where its tensors are, and what has written it."""
    functions = {(domain_of(one.domain), one.name, one.overload): one for one in model.functions}
    return Scope(opsets_of(model.opset_import), functions, source, model.producer_name)


def read_graph(graph: GraphProto, scope: Scope, is_mapped: bool = False) -> Body:
    """A graph's body, whose initialisers may be left on the mapped memory of the model's file. Its
    nodes need not be in order.

    Raises:
        order.Disordered: there is no order for them.
    """
    constants = {one.name: scope.source.array(one, is_mapped) for one in graph.initializer}
    for sparse in graph.sparse_initializer:
        constants[sparse.values.name] = dense(sparse, scope.source)
    inputs = tuple(one.name for one in graph.input if one.name not in constants)
    nodes = [read_node(one, scope) for one in graph.node]
    ordered = _in_order(graph.name, nodes, {*inputs, *constants})
    outputs = tuple(one.name for one in graph.output)
    kinds = tuple(_declared(one.type) for one in graph.output)
    return body(graph.name, inputs, outputs, ordered, constants)._replace(kinds=kinds)


def _in_order(name: str, nodes: list[Node], known: set[str]) -> tuple[Node, ...]:
    order = order_of(name, [*map(reads_of, nodes)], [one.outputs for one in nodes], known)
    return tuple(nodes) if order is None else tuple(nodes[at] for at in order)


def _declared(kind: onnx.TypeProto) -> tuple[np.dtype, tuple[int, ...]] | None:
    """The dtype and the extents, none without a shape, of a tensor as a graph declares them."""
    if not kind.tensor_type.elem_type:
        return None
    dtype = dtype_of(kind.tensor_type.elem_type)
    return dtype, tuple(one.dim_value for one in kind.tensor_type.shape.dim)


def body(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    nodes: tuple[Node, ...],
    constants: dict[str, np.ndarray],
) -> Body:
    """A body of these nodes, with what dies in it and what it takes from outside. Constants among
    the nodes are values that are there from the start."""
    fixed = {node.outputs[0]: _fixed(node) for node in nodes if _is_constant(node)}
    nodes = tuple(node for node in nodes if not _is_constant(node))
    constants = {**constants, **fixed}
    made = {*inputs, *constants, *(y for node in nodes for y in node.outputs)}
    outer = {x for node in nodes for x in reads_of(node)} | set(outputs)
    return Body(
        name, inputs, outputs, nodes, constants, _dead(nodes, outputs), frozenset(outer - made)
    )


def _is_constant(node: Node) -> bool:
    return node.proto.op_type == "Constant" and node.row is not None


def _fixed(node: Node) -> np.ndarray:
    """The value of a constant, which nobody writes."""
    if node.fault:
        raise ValueError(f"{node.label}: {node.fault}")
    value = node.row.run(**node.attrs)
    value.setflags(write=False)
    return value


def reads_of(node: Node) -> set[str]:
    """The values that a node reads, those of its bodies' surroundings among them."""
    return {x for x in node.inputs if x}.union(*(one.outer for one in bodies_of(node)))


def bodies_of(node: Node) -> Iterator[Body]:
    """The bodies among a node's attributes."""
    return (one for one in node.attrs.values() if isinstance(one, Body))


def with_bodies(node: Node, change: Callable[[Body], Body]) -> Node:
    """A node with other bodies among its attributes."""
    attrs = node.attrs.items()
    return node._replace(attrs={k: change(x) if isinstance(x, Body) else x for k, x in attrs})


def own_names(whole: Body) -> set[str]:
    """The names of the values that are in a body itself."""
    return {*whole.inputs, *whole.constants, *(y for node in whole.nodes for y in node.outputs)}


def is_indivisible(whole: Body) -> bool:
    """Whether a node works on the others of its body, which then have to be in one body."""
    return any(node.row is not None and node.row.name == "Gradient" for node in whole.nodes)


def _dead(nodes: tuple[Node, ...], outputs: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    seen, found = set(outputs), []
    for node in reversed(nodes):
        names = (reads_of(node) | {y for y in node.outputs if y}) - seen
        found.append(tuple(sorted(names)))
        seen |= names
    return tuple(reversed(found))


def read_node(proto: NodeProto, scope: Scope) -> Node:
    """A node with the row that reads it, or with the function that it calls."""
    domain = domain_of(proto.domain)
    opset, names = scope.opsets.get(domain, 1), (tuple(proto.input), tuple(proto.output))
    function = scope.functions.get((domain, proto.op_type, proto.overload))
    if function is not None:
        inner = scope._replace(opsets=opsets_of(function.opset_import))
        return Node(proto, None, opset, {}, *names, read_function(function, proto, inner))
    attrs = {one.name: attribute(one, scope) for one in proto.attribute}
    if not domain:  # by which old opsets asked for memory to be shared
        attrs.pop("consumed_inputs", None)
    row = reader(domain, proto.op_type, opset)
    wrong = "" if row is None else fault(row, attrs, proto.input)
    detached = _detached(proto)
    return Node(detached, row, opset, attrs, *names, fault=wrong, producer=scope.producer)


def _detached(proto: NodeProto) -> NodeProto:
    """A node of its own, without bodies: a part of a message keeps all of it, with its weights."""
    if proto.op_type == "Constant":  # is not kept
        return proto
    made = NodeProto(name=proto.name, op_type=proto.op_type, domain=proto.domain)
    made.input.extend(proto.input)
    made.output.extend(proto.output)
    graphs = AttributeProto.GRAPH, AttributeProto.GRAPHS
    made.attribute.extend(one for one in proto.attribute if one.type not in graphs)
    return made


def attribute(proto: AttributeProto, scope: Scope) -> Any:
    """An attribute's value: numbers, strings and tuples of them, arrays, bodies."""
    kind = proto.type
    if kind == AttributeProto.GRAPH:
        return read_graph(proto.g, scope)
    if kind == AttributeProto.GRAPHS:
        return tuple(read_graph(one, scope) for one in proto.graphs)
    if kind == AttributeProto.SPARSE_TENSOR:
        return dense(proto.sparse_tensor, scope.source)
    value = onnx.helper.get_attribute_value(proto)
    if kind == AttributeProto.TENSOR:
        return scope.source.array(value)
    if kind == AttributeProto.STRING:
        return value.decode()
    if kind == AttributeProto.STRINGS:
        return tuple(one.decode() for one in value)
    return tuple(value) if isinstance(value, list) else value


def dense(sparse: onnx.SparseTensorProto, source: Source) -> np.ndarray:
    """A sparse tensor's elements in a whole array."""
    values, places = source.array(sparse.values), source.array(sparse.indices)
    made = np.zeros(tuple(sparse.dims), values.dtype)
    at = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), made.shape)
    made.reshape(-1)[at] = values
    return made


# ---- functions -----------------------------------------------------------------------------------


def read_function(
    function: FunctionProto,
    call: NodeProto,
    scope: Scope,
    usual: Iterable[AttributeProto] = (),
) -> Body:
    """A function's body with the attributes of a call; others have their defaults, the function's
    or usual ones."""
    given = {one.name: one for one in (*usual, *function.attribute_proto, *call.attribute)}
    nodes = [read_node(_with_attributes(one, given), scope) for one in function.node]
    ordered = _in_order(function.name, nodes, {*function.input})
    # Outputs that a call leaves out need not be computed in the body.
    wanted = [*call.output, *[""] * len(function.output)]
    outputs = tuple(y if want else "" for y, want in zip(function.output, wanted, strict=False))
    return body(function.name, tuple(function.input), outputs, ordered, {})


def _with_attributes(node: NodeProto, given: dict[str, AttributeProto]) -> NodeProto:
    """A node whose references to attributes of its function are replaced by their values."""
    made = NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for one in node.attribute:
        if not one.ref_attr_name:
            made.attribute.append(_with_attributes_within(one, given))
        elif one.ref_attr_name in given:
            value = made.attribute.add()
            value.CopyFrom(given[one.ref_attr_name])
            value.name = one.name
    return made


def _with_attributes_within(
    attribute: AttributeProto, given: dict[str, AttributeProto]
) -> AttributeProto:
    """An attribute in whose graphs references are replaced, too."""
    if attribute.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return attribute
    made = AttributeProto()
    made.CopyFrom(attribute)
    for graph in (*made.graphs, *([made.g] if made.HasField("g") else ())):
        nodes = [_with_attributes(node, given) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
    return made

"""Operators that ONNX defines by others: where there is no row, their bodies are run."""

from __future__ import annotations

import functools

import numpy as np
import onnx
from onnx import defs, helper

from ..tensor import Tensor
from .body import Body, Node, body, domain_of, opsets_of, read_node
from .values import Coded, Value, element_of


def expanded(node: Node, inputs: list[Value]) -> Body:
    """The body by which ONNX defines an operator.

    Raises:
        NotImplementedError: it has none, so that the operator cannot be run.
    """
    types = tuple(_type(x) for x in inputs)
    return _expanded(node.proto.SerializeToString(), node.opset, types)


def _type(x: Value) -> bytes:
    if x is None:
        return b""
    shape = x.shape if isinstance(x, (Tensor, Coded, np.ndarray)) else None
    return helper.make_tensor_type_proto(element_of(x), shape).SerializeToString()


@functools.lru_cache(maxsize=1024)
def _expanded(given: bytes, opset: int, types: tuple[bytes, ...]) -> Body:
    node = onnx.NodeProto.FromString(given)
    domain = domain_of(node.domain)
    try:
        schema = defs.get_schema(node.op_type, opset, domain)
    except defs.SchemaError as error:
        raise _refusal(node, opset) from error
    if schema.has_function:
        made = schema.function_body
    elif schema.has_context_dependent_function:
        known = [one for one in types if one]
        made = onnx.FunctionProto.FromString(schema.get_context_dependent_function(given, known))
    else:
        raise _refusal(node, opset)
    return _bound(made, node, opset, schema)


def _refusal(node: onnx.NodeProto, opset: int) -> NotImplementedError:
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return NotImplementedError(
        f"ONNX operator {name} of opset {opset}: there is no row that reads it"
    )


def _bound(
    function: onnx.FunctionProto, call: onnx.NodeProto, opset: int, schema: defs.OpSchema
) -> Body:
    """A function's body with the attributes of a call, and the operator's defaults of others."""
    opsets = opsets_of(function.opset_import) or {domain_of(call.domain): opset}
    usual = [one.default_value for one in schema.attributes.values()]
    given = {one.name: one for one in (*usual, *function.attribute_proto, *call.attribute)}
    nodes = tuple(read_node(_with_attributes(one, given), opsets) for one in function.node)
    # Outputs that a call leaves out need not be computed in the body.
    wanted = [*call.output, *[""] * len(function.output)]
    outputs = tuple(y if want else "" for y, want in zip(function.output, wanted, strict=False))
    return body(function.name, tuple(function.input), outputs, nodes, {})


def _with_attributes(node: onnx.NodeProto, given: dict[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """A node whose references to attributes of its function are replaced by their values."""
    made = onnx.NodeProto()
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
    attribute: onnx.AttributeProto, given: dict[str, onnx.AttributeProto]
) -> onnx.AttributeProto:
    """An attribute in whose graphs references are replaced, too."""
    if attribute.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return attribute
    made = onnx.AttributeProto()
    made.CopyFrom(attribute)
    for graph in (*made.graphs, *([made.g] if made.HasField("g") else ())):
        nodes = [_with_attributes(node, given) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
    return made

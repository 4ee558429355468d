"""Operators that ONNX defines by others: where there is no row, their bodies are run."""

from __future__ import annotations

import functools

import numpy as np
import onnx
from onnx import defs, helper

from ..tensor import Tensor
from .body import Body, Node, Scope, domain_of, opsets_of, read_function
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
    usual = [one.default_value for one in schema.attributes.values()]
    opsets = opsets_of(made.opset_import) or {domain: opset}
    return read_function(made, node, Scope(opsets), usual)


def _refusal(node: onnx.NodeProto, opset: int) -> NotImplementedError:
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return NotImplementedError(
        f"ONNX operator {name} of opset {opset}: there is no row that reads it"
    )

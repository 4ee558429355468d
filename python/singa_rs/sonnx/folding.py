"""Folding: nodes whose inputs are all on the host are evaluated there, by onnx's own reference."""

from __future__ import annotations

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from .body import Body, Node
from .values import Value

#: The most elements that a result on the host may have: more belong on the device.
_LIMIT = 1 << 16
#: Operators whose results may be much larger than their inputs, or random.
_GROWING = {
    "ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial",
    "Resize", "Tile", "Upsample", "HannWindow", "HammingWindow", "BlackmanWindow",
    "MelWeightMatrix", "Col2Im", "MaxUnpool", "ImageDecoder", "Dropout",
}  # fmt: skip
#: Those of them whose results on the host describe shapes.
_SHAPES = {"ConstantOfShape", "Expand", "Range", "Tile", "Pad"}


def folds(node: Node, inputs: list[Value]) -> bool:
    """Whether a node is evaluated on the host."""
    given = [x for x in inputs if x is not None]
    if not given or not all(isinstance(x, (np.ndarray, np.generic)) for x in given):
        return False
    if any(isinstance(one, Body) for one in node.attrs.values()):
        return False
    if any(np.size(x) > _LIMIT for x in given):
        return False
    if node.proto.op_type not in _GROWING:
        return True
    return node.proto.op_type in _SHAPES and _size(node, given) <= _LIMIT


def _size(node: Node, given: list[Value]) -> float:
    """About how many elements the result of a growing operator has."""
    kind = node.proto.op_type
    if kind == "Range":
        start, limit, delta = (float(np.ravel(x)[0]) for x in given[:3])
        return abs((limit - start) / delta) if delta else np.inf
    if kind == "ConstantOfShape":
        return float(np.prod(np.ravel(given[0]).astype(float)))
    if kind == "Pad":
        return np.inf if len(given) < 2 else float(np.size(given[0]) + np.abs(given[1]).sum())
    return float(np.size(given[0])) * float(np.prod(np.ravel(given[1]).astype(float)))


def fold(node: Node, inputs: list[Value]) -> tuple[Value, ...]:
    """The outputs of a node whose inputs are on the host."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    alone = helper.make_node(
        node.proto.op_type,
        names,
        [f"y{i}" for i in range(len(node.outputs))],
        domain=node.row.domain,
    )
    alone.attribute.extend(node.proto.attribute)
    runner = _runner(alone, node.row.domain, node.opset)
    feeds = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True) if name}
    return tuple(np.asarray(one) for one in runner.run(None, feeds))


def _runner(node: object, domain: str, opset: int) -> ReferenceEvaluator:
    """An evaluator of one node."""
    graph = helper.make_graph(
        [node],
        "folded",
        [helper.make_empty_tensor_value_info(x) for x in node.input if x],
        [helper.make_empty_tensor_value_info(y) for y in node.output],
    )
    opsets = [helper.make_opsetid(domain, opset)]
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets))

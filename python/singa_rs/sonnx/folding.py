"""Folding: nodes whose inputs are all on the host are evaluated there, by NumPy or by onnx's own
reference."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, helper

from . import host
from .body import Node
from .values import Value

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

#: The most elements that a result on the host may have: more belong on the device.
_LIMIT = 1 << 16
#: The opset from which the reference is right about these operators.
_FIRST = 7
#: Operators that calculate with shapes and sizes, also between integers, as scales of images do.
_OF_SIZES = set(
    """Abs Add Cast Ceil Concat ConstantOfShape Div Equal Expand Flatten Floor Gather Greater
    GreaterOrEqual Less LessOrEqual Max Min Mul Neg Pow Range Reciprocal Reshape Round Sign Slice
    Split Sqrt Squeeze Sub Tile Transpose Unsqueeze Where""".split()
)
#: Those that calculate with positions and conditions.
_OF_INTEGERS = _OF_SIZES | set(
    """And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CastLike Clip Compress
    CumSum GatherND Mod NonZero Not OneHot Or Pad ReduceMax ReduceMin ReduceProd
    ReduceSum ScatterElements ScatterND TopK Trilu Unique Xor""".split()
)
#: Those of them whose results may be much larger than their inputs.
_GROWING = {"ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Tile"}
#: Those of them whose second input, one number, may be a list of it, too, in files but not in the
#: reference.
_OF_ONE = {"CumSum", "OneHot"}


def folds(node: Node, inputs: list[Value]) -> bool:
    """Whether a node is evaluated on the host: one that calculates with shapes and positions."""
    given = [x for x in inputs if x is not None]
    kind = node.proto.op_type
    if not given or node.row.domain or node.opset < _FIRST:
        return False
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in given):
        return False
    known = _OF_INTEGERS if all(x.dtype.kind in "biu" for x in given) else _OF_SIZES
    if kind not in known or not all(x.dtype.kind in "biuf" for x in given):
        return False
    if kind in ("ConstantOfShape", "Expand") and _is_filled(node, given):
        return False
    sizes = [np.size(x) for x in given] + ([_size(node, given)] if kind in _GROWING else [])
    return max(sizes) <= _LIMIT


def _is_filled(node: Node, given: list[Value]) -> bool:
    """Whether a result is of floats, which are computed with, not a size or a list of them."""
    of = given[0] if node.proto.op_type == "Expand" else node.attrs.get("value", np.float32(0))
    rank = max(np.size(given[-1]), np.ndim(given[0]))
    return np.asarray(of).dtype.kind == "f" and rank > 1


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
    if kind == "OneHot":
        return float(np.size(given[0])) * float(np.ravel(given[1])[0])
    return float(np.size(given[0])) * float(np.prod(np.ravel(given[1]).astype(float)))


def fold(node: Node, inputs: list[Value]) -> tuple[Value, ...]:
    """The outputs of a node whose inputs are on the host: arrays that may be written, since those
    that may not are taken for constants, which live as long as their graph."""
    given, kind = [None if x is None else np.asarray(x) for x in inputs], node.proto.op_type
    if kind in _OF_ONE:
        given[1] = given[1].reshape(())
    with np.errstate(all="ignore"):  # NaN and infinity are results as others are
        made = None if node.row.domain else host.evaluated(kind, given, node.attrs)
        found = _referred(node, given) if made is None else made
    return tuple(one if one.flags.writeable else one.copy() for one in found)


def _referred(node: Node, inputs: list[Value]) -> tuple[Value, ...]:
    """What onnx's reference makes of arrays."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    alone = helper.make_node(
        node.proto.op_type,
        names,
        [f"y{i}" for i in range(len(node.outputs))],
        domain=node.row.domain,
    )
    alone.attribute.extend(node.proto.attribute)
    runner = _runner(alone.SerializeToString(), node.row.domain, node.opset)
    feeds = {name: x for name, x in zip(names, inputs, strict=True) if name}
    return tuple(np.asarray(one) for one in runner.run(None, feeds))


@functools.lru_cache(maxsize=1024)
def _runner(given: bytes, domain: str, opset: int) -> ReferenceEvaluator:
    """An evaluator of one node."""
    from onnx.reference import ReferenceEvaluator

    node = NodeProto.FromString(given)
    graph = helper.make_graph(
        [node],
        "folded",
        [helper.make_empty_tensor_value_info(x) for x in node.input if x],
        [helper.make_empty_tensor_value_info(y) for y in node.output],
    )
    opsets = [helper.make_opsetid(domain, opset)]
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets))

"""Batch normalisation as part of the convolution before it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from onnx import GraphProto, NodeProto, helper

from .arrays import from_array, to_array


def folded(graph: GraphProto) -> GraphProto:
    """A graph in which convolutions whose only use is a batch normalisation by averages have its
    factors in their weights."""
    made = GraphProto()
    made.CopyFrom(graph)
    arrays = {one.name: to_array(one) for one in made.initializer}
    uses = _uses(made)
    makers = {y: node for node in made.node for y in node.output}
    for norm in [node for node in made.node if node.op_type == "BatchNormalization"]:
        conv = makers.get(norm.input[0])
        is_alone = conv is not None and uses[norm.input[0]] == 1
        if is_alone and conv.op_type == "Conv" and _are_known(conv, norm, arrays):
            _fold(made, conv, norm, arrays)
    kept = {x for node in made.node for x in node.input} | {y.name for y in made.output}
    constants = [one for one in made.initializer if one.name in kept]
    del made.initializer[:]
    made.initializer.extend(constants)
    return made


def _uses(graph: GraphProto) -> Counter[str]:
    """How often each value is read."""
    found = Counter(x for node in graph.node for x in node.input)
    found.update(one.name for one in graph.output)
    return found


def _are_known(conv: NodeProto, norm: NodeProto, arrays: dict[str, np.ndarray]) -> bool:
    return all(x in arrays for x in (*conv.input[1:], *norm.input[1:]))


def _fold(
    graph: GraphProto, conv: NodeProto, norm: NodeProto, arrays: dict[str, np.ndarray]
) -> None:
    """Scales the filters, and moves the bias."""
    scale, bias, mean, var = (arrays[x].astype(np.float64) for x in norm.input[1:5])
    eps = next((one.f for one in norm.attribute if one.name == "epsilon"), 1e-5)
    factor = scale / np.sqrt(var + eps)
    weights = arrays[conv.input[1]]
    filters = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    before = arrays[conv.input[2]] if len(conv.input) > 2 else 0.0
    added = (before - mean) * factor + bias
    inputs = [conv.input[0], f"{conv.output[0]}_filters", f"{conv.output[0]}_bias"]
    for name, one in zip(inputs[1:], (filters, added), strict=True):
        graph.initializer.append(from_array(one.astype(weights.dtype), name))
    new = helper.make_node("Conv", inputs, list(norm.output), conv.name)
    new.attribute.extend(conv.attribute)
    conv.CopyFrom(new)
    graph.node.remove(norm)

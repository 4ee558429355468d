"""Idioms: nodes that together stand for one operator, as converters to older opsets write them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from onnx import NodeProto

from .body import Body, Node, Scope, body, is_indivisible, read_node, with_bodies

#: Operators whose results have axes.
_WITH_AXES = {"BatchNormalization", "Conv", "ConvTranspose"}
#: The opset that has HardSwish and Gelu.
_SINCE = Scope({"": 20})


def recognised(graph: Body) -> Body:
    """A graph whose idioms end in the operators that they stand for, in bodies, too. The nodes
    before that stay: others may read what they make, and it may be asked for."""
    if is_indivisible(graph):
        return graph
    nodes = tuple(map(_Known(graph).replaced, graph.nodes))
    made = body(graph.name, graph.inputs, graph.outputs, nodes, graph.constants)
    return made._replace(kinds=graph.kinds)


class _Known:
    """What makes the values of a graph."""

    def __init__(self, graph: Body) -> None:
        self._constants = graph.constants
        self._makers = {y: node for node in graph.nodes for y in node.outputs}

    def replaced(self, node: Node) -> Node:
        """The node, or the operator that ends here."""
        node = with_bodies(node, recognised)
        for kind, find in (
            ("HardSwish", self._hard_swish),
            ("Gelu", self._gelu),
            ("Mul", self._square),
        ):
            x = find(node)
            if x is not None:
                proto = NodeProto(name=node.proto.name, op_type=kind)
                proto.input.extend([x, x] if kind == "Mul" else [x])
                proto.output.extend(node.outputs)
                return read_node(proto, _SINCE)
        return node

    def _square(self, node: Node) -> str | None:
        """The `x` of `x ** 2`, which a product computes faster."""
        if node.proto.op_type != "Pow" or node.proto.domain or len(node.inputs) != 2:
            return None
        x, power = node.inputs
        return x if self._number(power, x) == 2 else None

    def _gelu(self, node: Node) -> str | None:
        """The `x` of `x * (1 + erf(x / sqrt(2))) / 2`, multiplied in any order, that ends with a
        node."""
        factors = self._factors(node, 2)
        for x, half, factor in itertools.permutations(factors) if len(factors) == 3 else ():
            added = self._made(factor, "Add")
            if added is not None and self._number(half, x) == 0.5:
                for one, erf in (added.inputs, added.inputs[::-1]):
                    if self._number(one, x) == 1 and self._is_erf(erf, x):
                        return x
        return None

    def _factors(self, node: Node, most: int) -> list[str]:
        """The factors of a product of so many products at most."""
        if node.proto.op_type != "Mul" or node.proto.domain or len(node.inputs) != 2:
            return []
        for product, other in (node.inputs, node.inputs[::-1]):
            inner = self._made(product, "Mul") if most > 1 else None
            if inner is not None:
                return [other, *self._factors(inner, most - 1)]
        return list(node.inputs)

    def _is_erf(self, name: str, x: str) -> bool:
        """Whether a value is `erf(x / sqrt(2))`."""
        erf = self._made(name, "Erf")
        if erf is None:
            return False
        for kind, wanted in (("Div", math.sqrt(2)), ("Mul", math.sqrt(0.5))):
            maker = self._made(erf.inputs[0], kind)
            if maker is not None and x in maker.inputs:
                one, other = maker.inputs if maker.inputs[0] == x else maker.inputs[::-1]
                value = self._number(other, x)
                is_turned = kind == "Div" and one != maker.inputs[0]
                return value is not None and not is_turned and abs(value - wanted) < 1e-6
        return False

    def _hard_swish(self, node: Node) -> str | None:
        """The `x` of `x * clip(x + 3, 0, 6) / 6`, or `x * (clip(x + 3, 0, 6) / 6)`, that ends
        with a node."""
        whole = self._sixth(node)
        product = node if whole is None else self._made(whole, "Mul")
        if product is None or product.proto.op_type != "Mul" or len(product.inputs) != 2:
            return None
        for x, factor in (product.inputs, product.inputs[::-1]):
            clipped: str | None = factor
            if whole is None:
                divided = self._makers.get(factor)
                clipped = None if divided is None else self._sixth(divided)
            if clipped is not None and self._clips(clipped, x) and self._has_axes(x):
                return x
        return None

    def _sixth(self, node: Node) -> str | None:
        """What a node divides by 6."""
        kind, inputs = node.proto.op_type, node.inputs
        if kind == "Div" and self._number(inputs[1]) == 6:
            return inputs[0]
        if kind == "Mul" and len(inputs) == 2:
            for x, factor in (inputs, inputs[::-1]):
                value = self._number(factor)
                if value is not None and abs(value - 1 / 6) < 1e-7:
                    return x
        return None

    def _clips(self, clipped: str, x: str) -> bool:
        """Whether a value is `x + 3` clipped to 0 and 6."""
        clip = self._made(clipped, "Clip")
        if clip is None:
            return False
        bounds = [clip.attrs.get("min"), clip.attrs.get("max")]
        if len(clip.inputs) == 3:
            bounds = [self._number(one) for one in clip.inputs[1:]]
        added = self._made(clip.inputs[0], "Add")
        if bounds != [0, 6] or added is None:
            return False
        return any(
            one == x and self._number(other) == 3
            for one, other in (added.inputs, added.inputs[::-1])
        )

    def _made(self, name: str, kind: str) -> Node | None:
        """What makes a value, if that is such an operator of ONNX."""
        node = self._makers.get(name)
        is_such = node is not None and node.proto.op_type == kind and not node.proto.domain
        return node if is_such and node.function is None else None

    def _number(self, name: str, x: str | None = None) -> float | None:
        """The value of a constant of one element, which broadcasts to `x`, or else to whatever has
        an axis."""
        value = self._constants.get(name)
        is_one = isinstance(value, np.ndarray) and value.size == 1 and value.ndim <= 1
        if not is_one or value.dtype.kind != "f":
            return None
        fits = x is None or value.ndim == 0 or self._has_axes(x)
        return float(value.ravel()[0]) if fits else None

    def _has_axes(self, name: str) -> bool:
        """Whether a value is known to have axes: one that a convolution makes, or what follows it
        element by element."""
        for _ in range(4):
            node = self._makers.get(name)
            if node is None:
                return False
            if node.proto.op_type in _WITH_AXES:
                return True
            if node.proto.op_type not in ("Add", "Mul") or len(node.inputs) != 2:
                return False
            name = next((x for x in node.inputs if x in self._makers), "")
        return False

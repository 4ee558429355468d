"""Loops: what every round is given by the loop is taken from around it, and nodes that make the
same in every round are run once, before the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .body import (
    Body,
    Node,
    bodies_of,
    body,
    is_indivisible,
    own_names,
    reads_of,
    with_bodies,
)


def hoisted(graph: Body) -> Body:
    """A graph whose loops, at any depth, run in each round what a round may change alone. What they
    run once, when there is a first round, is their attribute `before`: it takes what the body
    takes, and its outputs are the last inputs of the new body."""
    return graph._replace(nodes=tuple(map(_node, graph.nodes)))


def _node(node: Node) -> Node:
    node = with_bodies(node, hoisted)
    attrs = dict(node.attrs)
    if node.row is not None and node.row.name in ("Loop", "Scan") and "body" in attrs:
        same = set(_unchanged(node.row.name, attrs))
        attrs |= _split(_bound(node, attrs["body"], same), same)
    function = None if node.function is None else hoisted(node.function)
    return node._replace(attrs=attrs, function=function)


def _unchanged(kind: str, attrs: dict[str, Any]) -> Iterator[str]:
    """The inputs of a loop's body that each round passes on as they are."""
    whole = attrs["body"]
    if kind == "Loop":
        pairs = zip(whole.inputs[2:], whole.outputs[1:], strict=False)
    else:
        count = len(whole.inputs) - attrs.get("num_scan_inputs", len(whole.inputs))
        pairs = zip(whole.inputs[:count], whole.outputs, strict=False)
    same: dict[str, str] = {}
    for node in filter(_is_identity, whole.nodes):  # in the order of their values
        same.update((y, same.get(x, x)) for y, x in zip(node.outputs, node.inputs, strict=False))
    return (name for name, made in pairs if same.get(made, made) == name)


def _is_identity(node: Node) -> bool:
    return node.row is not None and node.row.name == "Identity" and not node.row.domain


def _bound(node: Node, whole: Body, same: set[str]) -> Body:
    """A loop's body whose nodes read what no round changes as the value that the loop is given: of
    a weight, a recording knows more than of an input."""
    # Scan of opset 8 has one more input, and takes its values apart by samples.
    if len(node.inputs) != len(whole.inputs) or is_indivisible(whole):
        return whole
    inner = _made(whole)
    pairs = zip(whole.inputs, node.inputs, strict=True)
    return _renamed(whole, {x: by for x, by in pairs if x in same and by and by not in inner})


def _made(whole: Body) -> set[str]:
    """The names of the values in a body, and in those that its nodes run."""
    inner = (_made(one) for node in whole.nodes for one in bodies_of(node))
    return own_names(whole).union(*inner)


def _renamed(whole: Body, names: dict[str, str]) -> Body:
    """A body whose nodes read other values."""
    nodes = tuple(_reading(node, names) for node in whole.nodes)
    made = body(whole.name, whole.inputs, whole.outputs, nodes, whole.constants)
    return made._replace(kinds=whole.kinds)


def _reading(node: Node, names: dict[str, str]) -> Node:
    def inside(one: Body) -> Body:
        own = own_names(one)
        return _renamed(one, {x: by for x, by in names.items() if x not in own})

    inputs = tuple(names.get(x, x) for x in node.inputs)
    return with_bodies(node._replace(inputs=inputs), inside)


def _split(whole: Body, fixed: set[str]) -> dict[str, Body]:
    """A loop's body, and what is run before it."""
    if is_indivisible(whole):
        return {"body": whole}
    known = fixed | set(whole.constants) | whole.outer
    first: list[Node] = []
    others: list[Node] = []
    for node in whole.nodes:
        if _is_same_for_same(node) and known.issuperset(filter(None, node.inputs)):
            first.append(node)
            known.update(node.outputs)
        else:
            others.append(node)
    later = {x for node in others for x in reads_of(node)} | set(whole.outputs)
    made = tuple(y for node in first for y in node.outputs if y in later)
    if not made:
        return {"body": whole}
    before = body(whole.name, whole.inputs, made, tuple(first), whole.constants)
    rest = body(whole.name, (*whole.inputs, *made), whole.outputs, tuple(others), whole.constants)
    return {"before": before, "body": rest._replace(kinds=whole.kinds)}


def _is_same_for_same(node: Node) -> bool:
    """Whether a node makes the same of the same inputs, and does nothing else."""
    if node.row is None or node.row.varies or not any(node.inputs):
        return False
    return not any(bodies_of(node))

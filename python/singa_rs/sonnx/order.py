"""Nodes in an order in which each follows those whose values it reads: ONNX asks for it, but not
all tools write it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto


class Disordered(ValueError):
    """Nodes that no order suits."""


def order_of(
    graph: str,
    reads: Sequence[Collection[str]],
    made: Sequence[Collection[str]],
    known: Collection[str],
) -> list[int] | None:
    """The positions of nodes in their order; None if they are in it. Names that no node makes are
    values from outside.

    Args:
        graph: what errors call the graph.
        reads: the names that each node reads, those in its bodies among them.
        made: the names of each node's outputs.
        known: those of inputs and constants.

    Raises:
        Disordered: nodes that are not in order wait for each other, or make a value twice.
    """
    if _are_in_order(reads, made, known):
        return None
    makers = _makers(graph, made, known)
    waits = [{makers[x] for x in names if x in makers} for names in reads]
    found = _first_come(waits)
    if len(found) < len(waits):
        lost = sorted({*range(len(waits))} - {*found})
        names = ", ".join(repr(next(iter(made[at]))) for at in lost[:5])
        text = f"no order of its nodes makes each of {names} before it is read"
        raise Disordered(f"{graph or 'graph'}: {text}")
    return found


def _are_in_order(
    reads: Sequence[Collection[str]], made: Sequence[Collection[str]], known: Collection[str]
) -> bool:
    later = {y for names in made for y in names if y}.difference(known)
    for needed, outputs in zip(reads, made, strict=True):
        if not later.isdisjoint(needed):
            return False
        later.difference_update(outputs)
    return True


def _makers(graph: str, made: Sequence[Collection[str]], known: Collection[str]) -> dict[str, int]:
    """The positions of nodes by what they make, which has to be clear where they are moved."""
    makers: dict[str, int] = {}
    for at, names in enumerate(made):
        for y in filter(None, names):
            if y in makers or y in known:
                raise Disordered(f"{graph or 'graph'}: got {y!r} twice, among nodes in no order")
            makers[y] = at
    return makers


def _first_come(waits: Sequence[set[int]]) -> list[int]:
    """Positions, each after those that it waits for, else in their order; without what never can
    be next."""
    left = [len(one) for one in waits]
    readers: list[list[int]] = [[] for _ in waits]
    for at, others in enumerate(waits):
        for other in others:
            readers[other].append(at)
    ready, found = [at for at, count in enumerate(left) if not count], []
    while ready:
        found.append(heapq.heappop(ready))
        for at in readers[found[-1]]:
            left[at] -= 1
            if not left[at]:
                heapq.heappush(ready, at)
    return found


# ---- messages ------------------------------------------------------------------------------------


def sort(model: ModelProto) -> bool:
    """Brings the nodes of a model, its functions and their bodies into order; returns whether any
    was moved.

    Raises:
        Disordered: as `order_of`.
    """
    moved = [_sort(one)[0] for one in (model.graph, *model.functions)]
    return any(moved)


def _sort(graph: GraphProto | FunctionProto) -> tuple[bool, set[str]]:
    """Whether nodes were moved, and the names that are from around a graph."""
    inner = [_bodies(node) for node in graph.node]
    reads = [outer.union(node.input) for (_, outer), node in zip(inner, graph.node, strict=True)]
    made, known = [list(node.output) for node in graph.node], _known(graph)
    order = order_of(graph.name, reads, made, known)
    if order is not None:
        ranks = iter(sorted(range(len(order)), key=order.__getitem__))
        graph.node.sort(key=lambda _: next(ranks))
    outer = _names(graph.output).union(*reads).difference(known, *made)
    return order is not None or any(moved for moved, _ in inner), outer


def _bodies(node: NodeProto) -> tuple[bool, set[str]]:
    """As `_sort`, of the bodies among a node's attributes."""
    kinds = AttributeProto.GRAPH, AttributeProto.GRAPHS
    found = [_sort(graph) for one in node.attribute if one.type in kinds
             for graph in (*one.graphs, *([one.g] if one.HasField("g") else ()))]  # fmt: skip
    return any(moved for moved, _ in found), {x for _, outer in found for x in outer}


def _known(graph: GraphProto | FunctionProto) -> set[str]:
    """The names of a graph's inputs and constants."""
    if isinstance(graph, FunctionProto):
        return _names(graph.input)
    sparse = {one.values.name for one in graph.sparse_initializer}
    return _names(graph.input) | _names(graph.initializer) | sparse


def _names(values: Iterable[Any]) -> set[str]:
    """The names of values, which functions list alone."""
    return {one if isinstance(one, str) else one.name for one in values}

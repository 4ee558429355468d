"""The origins of a graph's operations, from those of the operations that they were made of."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .locating import Noted

_Node = Mapping[str, Any]
#: By block, the operations that use it.
_Users = Mapping[int, Sequence[int]]


class Origin(NamedTuple):
    """What asked for an operation."""

    #: The path of the layer; empty for the model itself, and None if it is not known.
    layer: str | None
    #: "forward", "backward" or "update"; None if it is not known.
    phase: str | None


UNKNOWN = Origin(None, None)


def origins(
    recorded: Mapping[str, Any], made: Mapping[str, Any], noted: Sequence[Noted]
) -> list[Origin]:
    """The origins of a graph's operations.

    Args:
        recorded, made: the operations as recorded and those of the graph, as JSON. They share the
            numbers of blocks and lines; blocks that rewriting added have numbers of their own.
        noted: the operations of the recording whose origins are known, in their order.
    """
    nodes = recorded["nodes"]
    known = _updates(recorded, _aligned(nodes, noted))
    writers, readers = _users(nodes, "outputs"), _users(nodes, "inputs")

    def of(node: _Node) -> Origin:
        written = _candidates(nodes, node, writers, "outputs")
        if written and "links" in node["attributes"]:
            parts = _parts(nodes, node, written[-1], writers)
            if len(parts) == _count(node["attributes"]):
                return known[max(parts, key=lambda n: (nodes[n]["flops"], n))]
        return _common(known[n] for n in written or _candidates(nodes, node, readers, "inputs"))

    return _with_repeated(made["nodes"], len(recorded["blocks"]), of)


def _with_repeated(
    made: Sequence[_Node], known: int, of: Callable[[_Node], Origin]
) -> list[Origin]:
    """The origins of operations; one that computes anew what an earlier one has computed, into a
    block that the recording does not have (it has `known` ones), has that one's."""
    first: dict[Any, tuple[Origin, list[int]]] = {}
    same: dict[int, int] = {}
    found = []
    for node in made:
        key = _key(node, same)
        blocks = [place["block"] for place in node["outputs"]]
        earlier = first.get(key) if min(blocks, default=0) >= known else None
        origin = earlier[0] if earlier is not None else of({**node, "inputs": _reads(node, same)})
        if earlier is not None:
            same.update(zip(blocks, earlier[1], strict=True))
        first.setdefault(key, (origin, [same.get(block, block) for block in blocks]))
        found.append(origin)
    return found


def _reads(node: _Node, same: Mapping[int, int]) -> list[_Node]:
    """What an operation reads, in the blocks that were computed first."""
    return [{**x, "block": same.get(x["block"], x["block"])} for x in node["inputs"]]


def _key(node: _Node, same: Mapping[int, int]) -> Any:
    """What two operations have in common that compute the same."""
    reads = [(x["block"], x["offset"], x["shape"]) for x in _reads(node, same)]
    return json.dumps([node["name"], node["attributes"], node["origin"], reads])


def _users(nodes: Sequence[_Node], places: str) -> _Users:
    """By block, the operations that have it among these places."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for n, node in enumerate(nodes):
        for place in node[places]:
            found[place["block"]].append(n)
    return found


def _candidates(nodes: Sequence[_Node], node: _Node, users: _Users, places: str) -> list[int]:
    """The recorded operations that may have become a node: of its line, with the most blocks in
    common; among several, those of its name."""
    shared = Counter(n for place in node[places] for n in users.get(place["block"], ()))
    here = {n: count for n, count in shared.items() if nodes[n]["origin"] == node["origin"]}
    most = [n for n in sorted(here) if here[n] == max(here.values())]
    return [n for n in most if nodes[n]["name"] == node["name"]] or most


def _parts(nodes: Sequence[_Node], node: _Node, last: int, writers: _Users) -> set[int]:
    """The recorded operations that were fused into a node: the last one, and those that made what
    it reads, up to what the node reads."""
    given = {place["block"] for place in node["inputs"]}
    parts, rest = set(), [last]
    while rest:
        n = rest.pop()
        parts.add(n)
        for block in {place["block"] for place in nodes[n]["inputs"]} - given:
            rest += [m for m in writers.get(block, ()) if m < n and m not in parts][-1:]
    return parts


def _count(region: Mapping[str, Any]) -> int:
    """How many operations a fused one is made of."""
    return len(region["links"]) + sum(bool(region.get(end)) for end in ("producer", "consumer"))


def _aligned(nodes: Sequence[_Node], noted: Sequence[Noted]) -> list[Origin]:
    """The origins of recorded operations. Those that nothing in Python asked for, such as zeros for
    memory that nothing has written, belong with their neighbours."""
    found: list[Origin | None] = []
    at = 0
    for node in nodes:
        shapes = [place["shape"] for place in node["inputs"]]
        is_next = at < len(noted) and noted[at][:3] == (node["name"], node["origin"], shapes)
        found.append(noted[at].origin if is_next else None)
        at += is_next
    if at < len(noted):
        return [UNKNOWN] * len(nodes)
    after = _last_known(found[::-1])[::-1]
    both = zip(found, _last_known(found), after, strict=True)
    return [own or _common(filter(None, (one, other))) for own, one, other in both]


def _last_known(found: Sequence[Origin | None]) -> list[Origin | None]:
    return list(accumulate(found, lambda last, own: own or last))


def _updates(recorded: Mapping[str, Any], known: Sequence[Origin]) -> list[Origin]:
    """The same, with what a program does with gradients, outside of layers, as update."""
    made, gradients = [], set()
    for node, origin in zip(recorded["nodes"], known, strict=True):
        reads = any(place["block"] in gradients for place in node["inputs"])
        if reads and origin == Origin("", "forward"):
            origin = Origin("", "update")
        made.append(origin)
        if origin.phase in ("backward", "update"):
            blocks = (place["block"] for place in node["outputs"])
            gradients |= {b for b in blocks if recorded["blocks"][b]["role"] == "temporary"}
    return made


def _common(found: Iterable[Origin]) -> Origin:
    """What all of them agree on: the innermost layer around them, and the phase."""
    all_ = [one for one in found if one.layer is not None]
    if not all_:
        return UNKNOWN
    paths = [one.layer.split(".") if one.layer else [] for one in all_]
    same = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    phases = {one.phase for one in all_}
    layer = ".".join(names[0] for names in same)
    return Origin(layer, phases.pop() if len(phases) == 1 else None)

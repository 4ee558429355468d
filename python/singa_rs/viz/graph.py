"""A graph as `Module.graphs` lists it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files import path_of, replacing
from .layers import OfLayer, grouped
from .pictures import dot_text, html_text, trace_text
from .profile import Profile, profile

#: Finds the layer and the phase of each node, None where they are not known; None if none is.
Locate = Callable[[Sequence[Mapping[str, Any]]], Sequence[tuple[str | None, str | None]] | None]


class _Work(NamedTuple):
    flops: int
    bytes: int


class Graph:
    """A recorded, planned step: its figures (`nodes`, `blocks`, `peak_bytes`,
    `lower_bound_bytes`, `arena_bytes`, `runs`), and pictures of it."""

    #: The engine's figures.
    nodes: int
    blocks: int
    peak_bytes: int
    lower_bound_bytes: int
    arena_bytes: int
    undo_bytes: int
    runs: int
    moves: int
    departures: int
    constants: tuple[int, int, int]
    fault: str | None
    #: What `profile` measured last.
    last_profile: Profile | None = None

    def __init__(
        self,
        graph: Any,
        title: str = "graph",
        names: Mapping[int, str] | None = None,
        locate: Locate | None = None,
    ):
        """`graph` is the engine's; `names` are those of parameters and states by `block_id`;
        `locate` is called once, when layers are first asked for."""
        self._graph, self.title, self.names = graph, title, names or {}
        self.locate = locate
        self._origins: Sequence[tuple[str | None, str | None]] | None = None

    if not TYPE_CHECKING:  # so that checkers refuse attributes that no class declares

        def __getattr__(self, name: str) -> Any:
            """The engine's figures."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self._graph, name)

    def shows(self, graph: Any) -> bool:
        """Whether it is a picture of this graph of the engine."""
        return self._graph is graph

    def summary(self) -> str:
        """The operations and the memory that they take, in a few lines."""
        return self._graph.summary()

    def to_json(self) -> str:
        """All data of the graph, as JSON.

        `nodes`: name, attributes, inputs and outputs (block, offset, dtype, shape, strides),
        scratch, `flops`, `bytes` moved, `line` of the program, `layer` (the path of the one whose
        call asked for it, empty for the model itself) and `phase` ("forward", "backward" or
        "update"), both null where they are not known. `blocks`: bytes, role, lifetime
        (first and last node), offset in the arena, `name`, `line`. `edges`: the nodes that must
        run before each node. `curve`: bytes alive in the arena while each node runs. `totals`,
        `arguments` and `results` (numbers of blocks).
        """
        return json.dumps(self.data())

    def data(self) -> dict[str, Any]:
        """What `to_json` writes."""
        made = self._data()
        for node, origin in zip(made["nodes"], self._located(made["nodes"]), strict=True):
            node["layer"], node["phase"] = origin
        return made

    def _data(self) -> dict[str, Any]:
        made = json.loads(self._graph.to_json())
        lines = made.pop("lines")
        for node in made["nodes"]:
            node["line"] = lines[node.pop("origin")]
        captured = {number: id_ for id_, number in self._graph.captured().items()}
        _name_blocks(made, captured, self.names)
        return made

    def _located(
        self, nodes: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[tuple[str | None, str | None]]:
        if self._origins is None:
            nodes = self._data()["nodes"] if nodes is None else nodes
            found = self.locate(nodes) if self.locate is not None else None
            self._origins = [(None, None)] * len(nodes) if found is None else found
        return self._origins

    def _layers(self) -> list[str | None]:
        return [layer for layer, _ in self._located()]

    def layers(self, depth: int | None = None) -> list[OfLayer]:
        """The operations grouped by the layer whose call asked for them: rows of `layer` (its
        path), `operations`, `flops`, `bytes` moved and `seconds`, None here.

        The engine notes only lines of the program, so the step is recorded once more, without
        running it and leaving the module as it is. An operation that several were fused into is
        counted under the layer of the one with the most arithmetic. The path is "(unknown)" where
        it is not known: in graphs recorded by hand, in steps that exchange with other processes,
        and if a call would make another graph now.

        Args:
            depth: how many parts of the paths to tell apart; all by default.
        """
        work = [_Work(node["flops"], node["bytes"]) for node in self._data()["nodes"]]
        return grouped(self._layers(), work, depth)

    def profile(self, n: int = 10, arguments: Sequence[Any] | None = None) -> Profile:
        """Runs the step `n` times and times each operation.

        Nothing is measured unless this is called, and it has no lasting effect: parameters, states
        and kept tensors are restored afterwards. User code on the host runs, too; exchanges between
        processes are left out.

        Args:
            n: how many runs to take the mean of.
            arguments: the step's tensors; zeros of the recorded shapes by default.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"profile: got n={n!r}, want an integer from 1")
        given = None if arguments is None else list(arguments)
        times = self._graph.profile(given, n)
        self.last_profile = profile(self._data(), times, n, self._layers)
        return self.last_profile

    def to_dot(self) -> str:
        """The operations and the tensors that they pass to each other, in Graphviz's language."""
        return dot_text(self._data(), self.title)

    def to_trace(self, path: str | PathLike[str]) -> None:
        """Writes the last profile for `chrome://tracing` and ui.perfetto.dev; takes one first if
        there is none."""
        measured = self.last_profile or self.profile()
        _write("to_trace", path, trace_text(measured, self._data(), self.title))

    def to_html(self, path: str | PathLike[str]) -> None:
        """Writes one self-contained page: the graph, the arena over time, the memory curve, and
        the timeline of the last profile."""
        _write("to_html", path, html_text(self.data(), self.title, self.last_profile))

    def __repr__(self) -> str:
        return repr(self._graph)


def _write(op: str, path: str | PathLike[str], text: str) -> None:
    """Writes a file atomically."""
    with replacing(op, path_of(op, path)) as file:
        file.write(text.encode("utf-8"))


def _name_blocks(
    data: dict[str, Any], captured: Mapping[int, int], names: Mapping[int, str]
) -> None:
    """Gives blocks names and lines, where these are known."""
    blocks = data["blocks"]
    for number, block in enumerate(blocks):
        block["name"], block["line"] = names.get(captured.get(number, -1)), None
    for i, number in enumerate(data["arguments"]):
        blocks[number]["name"] = blocks[number]["name"] or f"argument {i}"
    for node in data["nodes"]:
        for out in node["outputs"]:
            block = blocks[out["block"]]
            if block["line"] is None and block["role"] in ("temporary", "slot"):
                block["line"] = node["line"]
                block["name"] = block["name"] or f"{node['name']} {out['dtype']} {_shape(out)}"


def _shape(place: Mapping[str, Any]) -> str:
    return "x".join(map(str, place["shape"])) or "scalar"

"""A graph as `Module.graphs` lists it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files import path_of, replacing
from ..refusals import is_integral
from .layers import OfLayer, grouped
from .pictures import dot_text, html_text, trace_text
from .profile import Profile, profile


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
        arguments: Sequence[str] = (),
        is_ours: bool = True,
    ):
        """`graph` is the engine's; `names` are those of parameters and states by `block_id`,
        `arguments` those of arguments in order. The page of one that is not ours, but comes from a
        file, quotes no lines of programs on this machine."""
        self._graph, self.title, self.names = graph, title, names or {}
        self._arguments, self._is_ours = arguments, is_ours

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
        call asked for it, empty for the model itself, null outside of models) and `phase`
        ("forward", "backward" or "update"). `blocks`: bytes, role, lifetime
        (first and last node), offset in the arena, `name`, `line`. `edges`: the nodes that must
        run before each node. `curve`: bytes alive in the arena while each node runs. `totals`,
        `arguments` and `results` (numbers of blocks).
        """
        return json.dumps(self.data())

    def data(self) -> dict[str, Any]:
        """What `to_json` writes."""
        made = json.loads(self._graph.to_json())
        origins = made.pop("origins")
        for node in made["nodes"]:
            node.update(origins[node.pop("origin")])
        captured = {number: id_ for id_, number in self._graph.captured().items()}
        _name_blocks(made, captured, self.names, self._arguments)
        return made

    def layers(self, depth: int | None = None) -> list[OfLayer]:
        """The operations grouped by the layer whose call asked for them: rows of `layer` (its
        path), `operations`, `flops`, `bytes` moved and `seconds`, None here.

        An operation that several were fused into is counted under the layer of the one with the
        most arithmetic. The path is "(unknown)" for operations outside of models.

        Args:
            depth: how many parts of the paths to tell apart; all by default.
        """
        nodes = self.data()["nodes"]
        work = [_Work(node["flops"], node["bytes"]) for node in nodes]
        return grouped([node["layer"] for node in nodes], work, depth)

    def profile(self, n: int = 10, arguments: Sequence[Any] | None = None) -> Profile:
        """Runs the step `n` times and times each operation.

        Nothing is measured unless this is called, and it has no lasting effect: parameters, states
        and kept tensors are restored afterwards. User code on the host runs, too; exchanges between
        processes are left out.

        Args:
            n: how many runs to take the mean of.
            arguments: the step's tensors; zeros of the recorded shapes by default.
        """
        if not is_integral(n) or n < 1:
            raise ValueError(f"profile: got n={n!r}, want an integer from 1")
        given = None if arguments is None else list(arguments)
        times = self._graph.profile(given, n)
        self.last_profile = profile(self.data(), times, n)
        return self.last_profile

    def to_dot(self) -> str:
        """The operations and the tensors that they pass to each other, in Graphviz's language."""
        return dot_text(self.data(), self.title)

    def to_trace(self, path: str | PathLike[str]) -> None:
        """Writes the last profile for `chrome://tracing` and ui.perfetto.dev; takes one first if
        there is none."""
        measured = self.last_profile or self.profile()
        _write("to_trace", path, trace_text(measured, self.data(), self.title))

    def to_html(self, path: str | PathLike[str]) -> None:
        """Writes one self-contained page: the graph, the arena over time, the memory curve, and
        the timeline of the last profile."""
        _write("to_html", path, self.page())

    def page(self) -> str:
        """What `to_html` writes."""
        return html_text(self.data(), self.title, self.last_profile, self._is_ours)

    def __repr__(self) -> str:
        return repr(self._graph)


def _write(op: str, path: str | PathLike[str], text: str) -> None:
    """Writes a file atomically."""
    with replacing(op, path_of(op, path)) as file:
        file.write(text.encode("utf-8"))


def _name_blocks(
    data: dict[str, Any],
    captured: Mapping[int, int],
    names: Mapping[int, str],
    arguments: Sequence[str],
) -> None:
    """Gives blocks names and lines, where these are known."""
    blocks = data["blocks"]
    for number, block in enumerate(blocks):
        block["name"], block["line"] = names.get(captured.get(number, -1)), None
    for i, number in enumerate(data["arguments"]):
        name = arguments[i] if i < len(arguments) else f"argument {i}"
        blocks[number]["name"] = blocks[number]["name"] or name
    for node in data["nodes"]:
        for out in node["outputs"]:
            block = blocks[out["block"]]
            if block["line"] is None and block["role"] in ("temporary", "slot"):
                block["line"] = node["line"]
                block["name"] = block["name"] or f"{node['name']} {out['dtype']} {_shape(out)}"


def _shape(place: Mapping[str, Any]) -> str:
    return "x".join(map(str, place["shape"])) or "scalar"

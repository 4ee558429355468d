"""Where the operations of a graph come from: the layer whose call asked for each, and the phase of
the step. The engine notes only lines, so the step is recorded once more, which runs nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from .. import _core
from .._core import GraphError, MemoryBudgetError
from ..autograd.mode import Nodes
from .operations import perform
from .options import Options
from .origins import Origin, origins
from .plan import dry_run, infer
from .snapshot import Snapshot
from .tracing import Traced

_PACKAGE = __package__.rpartition(".")[0]
#: The module that runs backward, and the package of optimizers.
_BACKWARD, _OPTIMIZERS = f"{_PACKAGE}.autograd.engine", f"{_PACKAGE}.opt"


class Noted(NamedTuple):
    """An operation of a recording that was asked for by Python."""

    name: str
    #: The recorder's number of its line.
    line: int
    #: The shapes of its inputs.
    shapes: list[list[int]]
    origin: Origin


class _Nodes(Nodes):
    """The nodes of the tape, each with the layer that was running when it was made."""

    __slots__ = ("layers", "now", "where")

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__()
        self.where, self.now = where, ""
        self.layers: dict[int, str] = {}

    def note(self, node: Any, ys: tuple[Any, ...]) -> None:
        """As the base, which keeps the nodes alive, so that their addresses stay unique."""
        super().note(node, ys)
        self.layers[id(node)] = self.where()

    def keep(self, node: Any) -> None:
        """Backward comes to a node."""
        super().keep(node)
        self.now = self.layers.get(id(node), "")


class _Watcher:
    """Notes each operation while it is recorded."""

    def __init__(self, where: Callable[[], str]) -> None:
        self.nodes, self.where = _Nodes(where), where
        self.noted: list[Noted] = []

    def see(self, what: Any, inputs: Sequence[Any], outputs: Sequence[Any] | None = None) -> Any:
        """Does what was asked for, and notes it if it is an operation."""
        if not isinstance(what, _core.Op):
            return _core.from_numpy(*what[1]) if what[0] == "from_numpy" else perform(what, inputs)
        shapes, origin = [list(x.shape) for x in inputs], self._origin(inputs)
        made = perform(what, inputs) if outputs is None else what.into(list(inputs), list(outputs))
        self.noted.append(Noted(what.name, _core.origin(), shapes, origin))
        return made

    def _origin(self, inputs: Sequence[Any]) -> Origin:
        phase = _phase()
        if phase == "update":
            names = [x.name for x in inputs if x.stores_grad and x.name]
            return Origin(names[0].rpartition(".")[0] if names else "", phase)
        return Origin(self.where() if phase == "forward" else self.nodes.now, phase)


def _phase() -> str:
    """What asks for an operation: whichever of backward and optimizers is the innermost."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == _BACKWARD:
            return "backward"
        if name == _OPTIMIZERS or name.startswith(f"{_OPTIMIZERS}."):
            return "update"
        frame = frame.f_back
    return "forward"


def locate(
    options: Options,
    function: Callable[..., Any],
    root: Any,
    training: bool,
    given: tuple[Any, Any],
    where: Callable[[], str],
    nodes: Sequence[Mapping[str, Any]],
) -> list[Origin] | None:
    """The origins of a graph's operations.

    Args:
        options, function, root, training: those of the call that the graph was made of.
        given: its args and kwargs; tensors need no values.
        where: tells the path of the layer that is running.
        nodes: the operations of the graph, as its JSON has them.

    Returns:
        One origin for each of the nodes; None if the call makes another graph now, or one that
        cannot be watched: it exchanges with other processes.
    """
    watcher = _Watcher(where)

    def watched(root: Any, *args: Any, **kwargs: Any) -> Any:
        before = _core.set_handler(watcher.see)
        try:
            return function(root, *args, **kwargs)
        finally:
            _core.set_handler(before)

    def graphs(traced: Traced) -> list[dict[str, Any]]:
        recording = traced.recording
        both = options.recorded(recording), options.graph_of(recording, training)
        return [json.loads(graph.to_json()) for graph in both]

    try:
        infer(function, root, training, *given)  # what makes state is not part of the step
        look = lambda call: Snapshot(root, call.objects, False)  # noqa: E731
        recorded, made = dry_run(look, graphs, watched, root, training, *given, nodes=watcher.nodes)
    except (GraphError, MemoryBudgetError):
        return None
    if not _are_alike(made["nodes"], nodes):
        return None
    return origins(recorded, made, watcher.noted)


def _are_alike(some: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two lists of operations are the same but for the numbers of blocks and lines."""
    shapes = lambda node: [(one["dtype"], one["shape"]) for one in node["outputs"]]  # noqa: E731
    keys = lambda node: (node["name"], node["attributes"], shapes(node))  # noqa: E731
    return [keys(node) for node in some] == [keys(node) for node in others]

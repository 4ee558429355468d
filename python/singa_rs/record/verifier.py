"""Runs of graphs: timed, and compared with runs of the operations as they were recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _core
from .._core import OutOfMemoryError
from ..tensor import Tensor

_T = TypeVar("_T")


class Profile:
    """The time that runs of graphs took, each as a whole."""

    def __init__(self) -> None:
        #: 0: runs are not timed.
        self.level = 0
        #: How many runs at the beginning are not counted.
        self.skip = 5
        self.reset()

    def reset(self) -> None:
        """Forgets all times."""
        self.runs, self.seconds = 0, 0.0

    def run(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Calls a function that runs a graph once, timed unless the level is 0."""
        if not self.level:
            return function(*arguments)
        start = time.perf_counter()
        made = function(*arguments)
        if self.runs >= self.skip:
            self.seconds += time.perf_counter() - start
        self.runs += 1
        return made

    def text(self) -> str:
        """The mean time of the counted runs, as text."""
        if not self.level:
            return "runs of graphs are not timed: SetVerbosity(1) before they run"
        counted = max(0, self.runs - self.skip)
        if not counted:
            return f"{self.runs} runs of graphs, none counted: the first {self.skip} are skipped"
        mean = self.seconds / counted * 1e3
        return (
            f"{counted} runs of graphs after the first {self.skip}: {mean:.3f} ms each on average. "
            "Single operations are not timed."
        )


#: Shared by all devices of this process.
profile = Profile()


#: What warnings say about a wrong graph.
_REPORT = (
    "the operations run as they were recorded, which is right, if slower. This is a fault of "
    "singa_rs, not of the program: please report it, with this message and the step's code"
)


def fault_of(graph: _core.Graph) -> str | None:
    """The warning for a graph that runs the operations as recorded because the optimised one failed
    a check; None for other graphs."""
    if graph.fault is None:
        return None
    return f"the graph that was made of the recording is not used: {graph.fault}; {_REPORT}"


class Verifier:
    """Compares runs of one graph with runs of the operations as recorded, to the bit: the first
    run, and with `every` the first of every so many. What a step changes is saved before the
    graph's run and restored after it, so that results and parameters are those of the operations
    as recorded, whatever the graph computes."""

    def __init__(self, recorded: _core.Graph, every: int | None) -> None:
        self.recorded, self.every = recorded, every
        self._runs = 0
        #: The outcome of the last comparison, as text.
        self.said = "not compared yet"
        #: The warning about the graph, if it was found to be wrong.
        self.fault: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether no later run will be compared."""
        return self.fault is not None or (self.every is None and self._runs > 0)

    def run(
        self, graph: _core.Graph, tensors: Sequence[Tensor]
    ) -> tuple[list[Tensor], _core.Graph]:
        """Runs a graph once. Returns the results, and the graph for later runs: the operations as
        recorded if the given graph differs."""
        is_due = self._runs == 0 or (self.every is not None and self._runs % self.every == 0)
        self._runs += 1
        if not is_due:
            return graph.run(tensors), graph
        obstacle = graph.obstacle(self.recorded)
        if obstacle is None and not self.recorded.fits(tensors):
            obstacle = "the arguments share memory that the operations as recorded write"
        if obstacle is None:
            try:
                made, difference = graph.compare(self.recorded, tensors)
            except OutOfMemoryError:
                obstacle = "memory does not suffice for both"
            else:
                return made, self._judge(graph, difference)
        self.said = f"not compared: {obstacle}"
        return graph.run(tensors), graph

    def _judge(self, graph: _core.Graph, difference: str | None) -> _core.Graph:
        if difference is None:
            self.said = "equal to the operations as recorded, to the bit"
            return graph
        self.said = f"not used, as {difference}"
        self.fault = (
            f"the graph that was made of the recording is not used, as {difference} from what was "
            f"recorded; {_REPORT}"
        )
        return self.recorded

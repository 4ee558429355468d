"""Runs of graphs: timed, and verified against runs of the operations as they were recorded."""

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
            return "runs of graphs are not timed; call SetVerbosity(1) before they run"
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


def _fault(reason: str) -> str:
    """The warning about a graph that is wrong."""
    return (
        f"the graph made from the recording is not used: {reason}. The operations run as they were "
        "recorded, which is correct but slower. This is a bug in singa_rs, not in your program: "
        "please report it, with this message and the code of the step"
    )


def fault_of(graph: _core.Graph) -> str | None:
    """The warning about a graph that runs the operations as recorded because the optimised one
    failed a check; None for other graphs."""
    return None if graph.fault is None else _fault(graph.fault)


class VerifiedGraph:
    """A graph whose runs are compared with runs of the operations as recorded, to the bit: the
    first run, and with `every` the first of every so many. What a step changes is saved before the
    graph's run and restored after it, so results and parameters are those of the operations as
    recorded, whatever the graph computes. A graph that differs is replaced by these operations.
    """

    def __init__(
        self, graph: _core.Graph, recorded: _core.Graph | None = None, every: int | None = None
    ) -> None:
        """`recorded` runs the operations as recorded; without it no run is compared."""
        self.graph, self._every, self._runs = graph, every, 0
        #: How many runs its function has counted.
        self.counted = 0
        #: None as soon as no later run will be compared.
        self.recorded = recorded
        #: The outcome of the last comparison, as text.
        self.outcome = "no run was compared" if recorded is None else "not compared yet"
        #: The warning about the graph, if it was found to be wrong.
        self.fault = fault_of(graph)

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Runs the graph once."""
        recorded = self.recorded
        if recorded is None:
            return self.graph.run(tensors)
        is_due = self._runs == 0 or (self._every is not None and self._runs % self._every == 0)
        self._runs += 1
        made = self._compared(recorded, tensors) if is_due else self.graph.run(tensors)
        if self.fault is not None or self._every is None:
            self.recorded = None
        return made

    def _compared(self, recorded: _core.Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
        obstacle = self.graph.obstacle(recorded)
        if obstacle is None and not recorded.fits(tensors):
            obstacle = "the arguments share memory that the operations as recorded write"
        if obstacle is None:
            try:
                made, difference = self.graph.compare(recorded, tensors)
            except OutOfMemoryError:
                obstacle = "there is not enough memory for both"
            else:
                self._judge(recorded, difference)
                return made
        self.outcome = f"not compared: {obstacle}"
        return self.graph.run(tensors)

    def _judge(self, recorded: _core.Graph, difference: str | None) -> None:
        if difference is None:
            self.outcome = "equal to the operations as recorded, to the bit"
            return
        self.outcome = f"not used, as {difference}"
        self.fault = _fault(f"{difference} from what was recorded")
        self.graph = recorded

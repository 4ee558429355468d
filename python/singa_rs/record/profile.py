"""Timing runs of graphs, for SINGA's `SetVerbosity`, `SetSkipIteration`, `PrintTimeProfiling`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

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

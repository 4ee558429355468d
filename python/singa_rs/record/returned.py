"""What a step returns that the model also holds: the program sees one object in both places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .snapshot import Snapshot
from .trees import containers, leaves


class Returned:
    """The result of a recorded step, to which no reference is kept."""

    def __init__(self, before: Snapshot) -> None:
        self._before = before
        #: Why no run can return it, as text.
        self.obstacle: str | None = None

    def around(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """A step whose result is looked at."""

        def step() -> Any:
            value = run()
            if any(map(self._before.has_seen, containers(value))):
                self.obstacle = "the step returns a list or dictionary that the model holds"
            arrays = (one for one in leaves(value) if isinstance(one, np.ndarray))
            if any(map(self._before.shares, arrays)):
                self.obstacle = "the step returns an array that the model holds"
            return value

        return step

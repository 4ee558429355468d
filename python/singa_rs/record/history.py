"""Why a function was recorded, and what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from .call import Call
from .verifier import VerifiedGraph

#: About how many replays save what a recording costs; and for how many recordings a function may
#: owe them.
_WORTH, _MOST_OWED = 16, 96


class Outcome(NamedTuple):
    """A recording, the reason for it, and its outcome."""

    number: int
    reason: str
    outcome: str

    def __str__(self) -> str:
        return f"recording {self.number} ({self.reason}): {self.outcome}"


class History:
    """The last recordings of a function."""

    def __init__(self) -> None:
        self.events: deque[Outcome] = deque(maxlen=20)
        self.recordings = 0
        #: How many replays are still to make up for the recordings.
        self._owed = 0
        self._shown: list[str] | None = None

    def what_is_new(self, call: Call, is_known: bool) -> str:
        """Why there is no graph for a call."""
        if self._shown is None:
            return "first call"
        if is_known:
            return "to compare with the previous recording"
        new = [line for line in call.shown() if line not in self._shown]
        return "new: " + "; ".join(new) if new else "arguments of another structure or layout"

    def owes(self, graphs: Collection[VerifiedGraph]) -> bool:
        """Counts a recording that no check asked for; whether these graphs replay too seldom to
        make up for recordings."""
        for one in graphs:
            self._owed -= one.graph.runs - one.counted
            one.counted = one.graph.runs
        self._owed = max(self._owed, 0) + _WORTH
        return self._owed >= _WORTH * _MOST_OWED

    def note(self, call: Call, reason: str, outcome: str) -> None:
        """Adds a recording."""
        self.recordings += 1
        self.events.append(Outcome(self.recordings, reason, outcome))
        self._shown = call.shown()

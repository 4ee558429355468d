"""A lock around the program's own code, for which nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .. import _core
from .._core import GraphError

#: For how many seconds a thread waits for one that is in the program's own code, which may itself
#: wait for the thread, so that neither would ever go on. Threads wait so long for graphs, too.
PATIENCE = 3.0
#: How often a thread that waits looks whether it still should.
_LOOK = 0.1


class PatientLock:
    """A lock that a thread may take several times. Who has it says when it is in the program's own
    code, by `in_user_code`; who waits for that for long gets a GraphError."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()
        #: Since when who has the lock is in the program's code, if it is.
        self._since: float | None = None

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        began = time.monotonic()
        while not self._lock.acquire(timeout=_LOOK):
            if self._is_stuck(began):
                raise GraphError(
                    f"{self._what}: another thread has been in the program's own code for "
                    f"{PATIENCE:.0f} seconds with what this thread needs; if that code waits for "
                    "this thread, call the model with use_graph=False here"
                )

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _is_stuck(self, began: float) -> bool:
        waited = time.monotonic() - began
        since = self._since
        inside = _core.in_user_code() if since is None else time.monotonic() - since
        return min(waited, inside) >= PATIENCE

    @contextmanager
    def in_user_code(self) -> Iterator[None]:
        """Within it, who has the lock is in the program's own code."""
        before, self._since = self._since, time.monotonic()
        try:
            yield
        finally:
            self._since = before

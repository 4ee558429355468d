"""A lock held around user code, with a bounded wait."""

from __future__ import annotations

import sys
import threading
import time

from .._core import GraphError
from ..notices import is_own

#: How many seconds a thread waits for one that is running user code, which may itself be waiting
#: for this thread: a deadlock. Waits for graphs have the same limit.
TIMEOUT = 3.0
#: The interval in seconds at which a waiting thread checks where the other one is.
_INTERVAL = 0.1


class UserCodeLock:
    """A re-entrant lock. A waiting thread gets a GraphError if the holder runs user code for too
    long: a step being recorded, a host operation, an initialiser, but also a signal handler, a
    finaliser or a warnings hook."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()
        #: The thread that took it last.
        self._holder = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._wait()
        self._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _wait(self) -> None:
        since = time.monotonic()
        while not self._lock.acquire(timeout=_INTERVAL):
            if not _is_in_user_code(self._holder):
                since = time.monotonic()
            elif time.monotonic() - since >= TIMEOUT:
                raise GraphError(
                    f"{self._what}: another thread has been running user code for {TIMEOUT:.0f} "
                    "seconds while holding a lock that this thread needs; if that code waits for "
                    "this thread, call a model compiled with use_graph=False here"
                )


def _is_in_user_code(thread: int) -> bool:
    """Whether a thread runs user code, or waits here for yet another thread."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return True
    return frame.f_globals.get("__name__") == __name__ or not is_own(frame)

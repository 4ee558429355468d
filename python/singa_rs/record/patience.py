"""A lock around the program's own code, for which nobody waits for ever."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from .._core import GraphError

#: For how many seconds a thread waits for one that is in the program's own code, which may itself
#: wait for the thread, so that neither would ever go on. Threads wait so long for graphs, too.
PATIENCE = 3.0
#: How often a thread that waits looks where the other one is.
_LOOK = 0.1
#: What lies in this folder is not the program's own code.
PACKAGE = str(Path(__file__).parents[1])


class PatientLock:
    """A lock that a thread may take several times. Who waits for it gets a GraphError where the
    thread that has it stays in the program's own code for long: a step that is recorded, a host
    operation, an initialiser, but also a signal's handler, a finaliser or the hook of a warning."""

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
        while not self._lock.acquire(timeout=_LOOK):
            if not _is_in_program(self._holder):
                since = time.monotonic()
            elif time.monotonic() - since >= PATIENCE:
                raise GraphError(
                    f"{self._what}: another thread has been in the program's own code for "
                    f"{PATIENCE:.0f} seconds with what this thread needs; if that code waits for "
                    "this thread, call the model with use_graph=False here"
                )


def _is_in_program(thread: int) -> bool:
    """Whether a thread is in the program's own code, or waits for another thread as this one."""
    frame = sys._current_frames().get(thread)
    file = frame.f_code.co_filename if frame is not None else ""
    return file == _is_in_program.__code__.co_filename or not file.startswith(PACKAGE)

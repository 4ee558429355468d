"""What processes and those that they start have to do with each other."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from .faults import DistError

#: PR_SET_PDEATHSIG of Linux's prctl.
_PARENT_DEATH_SIGNAL = 1


@contextmanager
def segment() -> Iterator[str]:
    """The path of fresh memory that this process and those that it starts may share. It has no name
    that could be left behind."""
    if not hasattr(os, "memfd_create"):
        raise DistError("spawn: this system has no memfd_create, through which processes exchange")
    file = os.memfd_create("singa_rs")
    try:
        yield f"/proc/{os.getpid()}/fd/{file}"
    finally:
        os.close(file)


def end_with(parent: int) -> None:
    """Has this process killed when its parent ends, even if that is killed itself."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, f"prctl: {os.strerror(code)}")
    if os.getppid() != parent:  # it has ended before
        os._exit(1)

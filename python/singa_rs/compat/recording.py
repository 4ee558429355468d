"""SINGA's functions of a device that buffer operations, run them and time the runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .. import _core
from ..record import Recorded, note_change
from ..record.verifier import profile
from ..refusals import flag as a_flag
from ..refusals import is_integral

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Sessions(threading.local):
    """What `EnableGraph` recorded in the calling thread, by device."""

    def __init__(self) -> None:
        self.of: dict[_core.Device, Recorded] = {}


_sessions = _Sessions()


def enable_graph(device: _core.Device, flag: bool = True) -> None:
    """Starts or stops buffering the calling thread's operations instead of running them (SINGA
    EnableGraph, SetBufferFlag). A second `EnableGraph(True)` appends, until `ResetGraph`."""
    flag = a_flag(flag, "EnableGraph: flag")
    session = _sessions.of.setdefault(device, Recorded(device))
    if flag != session.is_recording:
        session.begin() if flag else session.end()


def unbuffered(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that runs without the buffering which `EnableGraph` began in the calling thread,
    and which goes on afterwards."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        active = [session for session in _sessions.of.values() if session.is_recording]
        for session in active:
            session.end()
        try:
            return function(*args, **kwargs)
        finally:
            for session in active:
                session.begin()

    return call


def graph_enabled(device: _core.Device) -> bool:
    """Whether `EnableGraph(True)` is in force in the calling thread."""
    return device in _sessions.of and _sessions.of[device].is_recording


def run_graph(device: _core.Device, sequential: bool = True) -> None:
    """Runs what was buffered, once (SINGA RunGraph, ExecBuffOps). The first run decides whether
    operations run one after another, or concurrently where that helps (`graph_alg` of
    `Module.compile`).

    Raises:
        GraphError: nothing was buffered, or `EnableGraph(True)` is in force.
    """
    session = _sessions.of.setdefault(device, Recorded(device))
    session.parallel = not a_flag(sequential, "RunGraph: sequential")
    session.run()


def reset_graph(device: _core.Device) -> None:
    """Discards what was buffered; an active recording starts over (SINGA ResetGraph)."""
    session = _sessions.of.pop(device, None)
    if session is None:
        return
    if session.is_recording:
        session.abort()
        enable_graph(device)
    else:
        session.forget()


def set_verbosity(device: _core.Device, verbosity: int) -> None:
    """At level 1 and above, runs of graphs are timed, each as a whole (SINGA SetVerbosity). Single
    operations are not timed at any level."""
    profile.level = _natural("SetVerbosity", verbosity)
    profile.reset()
    note_change()  # so that no call takes the fast path, which is not timed


def set_skip_iteration(device: _core.Device, skip_iteration: int) -> None:
    """How many runs at the beginning `PrintTimeProfiling` leaves out; 5 by default."""
    profile.skip = _natural("SetSkipIteration", skip_iteration)
    profile.reset()


def print_time_profiling(device: _core.Device) -> None:
    """Prints the mean time of the runs of graphs since `SetVerbosity`."""
    print(profile.text())


def _natural(name: str, value: Any) -> int:
    if not is_integral(value) or value < 0:
        raise ValueError(f"{name}: got {value!r}, want an integer from 0")
    return value


# Those of SINGA's first design, too.
for _name, _function in {
    "EnableGraph": enable_graph,
    "SetBufferFlag": enable_graph,
    "graph_enabled": graph_enabled,
    "RunGraph": run_graph,
    "ExecBuffOps": run_graph,
    "ResetGraph": reset_graph,
    "SetVerbosity": set_verbosity,
    "SetSkipIteration": set_skip_iteration,
    "PrintTimeProfiling": print_time_profiling,
}.items():
    setattr(_core.Device, _name, _function)

"""Recording and running by hand: `with device.record() as graph`, and SINGA's `EnableGraph`."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _core, viz
from .._core import GraphError
from ..autograd.mode import Nodes, set_nodes
from ..autograd.order import cut
from ..notices import warn_user
from ..refusals import is_integral
from .options import Options
from .state import LATE_STATE, note_change
from .verifier import VerifiedGraph, profile

# To type checkers, a recording has what pictures of its graph have.
if TYPE_CHECKING:
    _Pictured = viz.Graph
else:
    _Pictured = object


class Recorded(_Pictured):
    """A recording of a device's operations, to be run any number of times.

        with device.record() as graph:
            y = x @ w
        graph.run()

    Within the block operations are only buffered. Tensors made in it that are still referenced when
    the graph first runs, or its figures are first read, show the latest run from then on; reading
    them earlier raises GraphError. The memory of all others is planned by the graph. Each run works
    on the tensors that existed before: write into them with `copy_from` to run on other values.
    Entering the block again continues the recording.
    """

    def __init__(self, device: _core.Device) -> None:
        self._device = device
        self._recording: _core.Recording | None = None
        self._nodes: Nodes | None = None
        #: Changes to tensors by operations that have not run.
        self._journal = _core.Journal()
        self._verified: VerifiedGraph | None = None
        #: How many threads the graph was made for.
        self._threads = 0
        #: Whether the graph may run operations concurrently.
        self.parallel = False
        self._picture: viz.Graph | None = None

    @property
    def is_recording(self) -> bool:
        """Whether operations are being buffered."""
        return self._nodes is not None

    def begin(self) -> None:
        """Starts or continues buffering the operations of the calling thread."""
        if self._recording is None:
            self._recording = _core.Recording(self._device, [], self._journal)
        else:
            self._recording.resume()
        self._verified = None
        self._nodes = Nodes()
        self._nodes.later = None
        set_nodes(self._nodes)

    def end(self) -> None:
        """Ends the buffering."""
        try:
            self._nodes.settle()
            self._recording.end([])
            if self._recording.state_is_late:
                raise GraphError(f"record: {LATE_STATE}; create it before recording")
        except BaseException:
            self.abort()
            raise
        self._cut()

    def abort(self) -> None:
        """Ends the buffering and discards the recording: tensors are as they were before."""
        self._recording.abort()
        nodes = self._nodes
        self._cut()
        if nodes is not None:
            nodes.undo()
        self.forget()

    def forget(self) -> None:
        """Discards the recording, and its changes to tensors if it has never run."""
        self._recording = None
        self._journal.undo()

    def _cut(self) -> None:
        set_nodes(None)
        if self._nodes is not None:
            cut(self._nodes)
        self._nodes = None

    def __enter__(self) -> Recorded:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()
        else:
            self.abort()

    @property
    def graph(self) -> _core.Graph:
        """The analysed, planned graph.

        Raises:
            GraphError: nothing was recorded, or the recording has not ended.
        """
        return self._ready().graph

    def _ready(self) -> VerifiedGraph:
        # Another thread may reset the device meanwhile.
        verified = self._verified
        if verified is None or self._threads != self._device.num_threads:
            if self._recording is None or self.is_recording:
                what = "is still recording" if self.is_recording else "has recorded nothing"
                raise GraphError(f"run: the device {what}")
            self._recording.seal()
            self._verified = None
            self._threads = self._device.num_threads
            # Caches nothing: the tensors that it reads, even parameters, may change between runs.
            graph = self._recording.graph(parallel=self.parallel, keep=False)
            self._journal.forget()
            verified = self._verified = Options().verified(self._recording, graph)
            self._warn(verified, None)
        return verified

    def run(self, n: int = 1) -> None:
        """Runs the graph `n` times. An interrupt takes effect between two runs.

        Raises:
            GraphError: nothing was recorded, or the recording has not ended.
        """
        verified = self._ready()
        for _ in range(n):
            known = verified.fault
            profile.run(verified.run, [])
            self._warn(verified, known)

    @staticmethod
    def _warn(verified: VerifiedGraph, known: str | None) -> None:
        """Warns that the graph was found to be wrong, if that is new."""
        if (fault := verified.fault) is not known:
            warn_user(f"run: {fault}")

    if not TYPE_CHECKING:  # so that checkers refuse attributes that no class declares

        def __getattr__(self, name: str) -> Any:
            """The graph's figures and pictures: `nodes`, `peak_bytes`, `summary()`, `to_html(path)`
            and so on (`viz.Graph`)."""
            known = hasattr(_core.Graph, name) or hasattr(viz.Graph, name)
            if name.startswith("_") or not known:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            graph = self.graph
            if self._picture is None or not self._picture.shows(graph):
                self._picture = viz.Graph(graph, "recorded by hand")
            return getattr(self._picture, name)

    def __repr__(self) -> str:
        state = (
            "recording"
            if self.is_recording
            else repr(self._verified.graph if self._verified else "not run yet")
        )
        return f"Recorded({state})"


class _Sessions(threading.local):
    """What `EnableGraph` recorded in the calling thread, by device."""

    def __init__(self) -> None:
        self.of: dict[_core.Device, Recorded] = {}


_sessions = _Sessions()


def record(device: _core.Device) -> Recorded:
    """A recording: `with device.record() as graph: ...`, then `graph.run(n)`."""
    return Recorded(device)


def enable_graph(device: _core.Device, flag: bool = True) -> None:
    """Starts or stops buffering the calling thread's operations instead of running them (SINGA
    EnableGraph, SetBufferFlag). A second `EnableGraph(True)` appends, until `ResetGraph`."""
    session = _sessions.of.setdefault(device, Recorded(device))
    if bool(flag) != session.is_recording:
        session.begin() if flag else session.end()


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
    session.parallel = not sequential
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


# SINGA's spellings, and those of its first design.
for _name, _function in {
    "record": record,
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

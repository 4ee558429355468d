"""Recording and running by hand: `with device.record() as graph`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _core, viz
from .._core import GraphError
from ..autograd.mode import Nodes, set_nodes
from ..autograd.order import cut
from ..notices import warn_user
from .lock import UserCodeLock
from .options import Options
from .state import LATE_STATE
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
        #: Held while the graph is made.
        self._lock = UserCodeLock("run")
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
        return self._ready("graph").graph

    def _ready(self, op: str) -> VerifiedGraph:
        # Another thread may reset the device meanwhile.
        verified = self._verified
        if verified is not None and self._threads == self._device.num_threads:
            return verified
        with self._lock:
            return self._made(op)

    def _made(self, op: str) -> VerifiedGraph:
        verified, threads = self._verified, self._device.num_threads
        if verified is not None and self._threads == threads:  # by another thread
            return verified
        if self._recording is None or self.is_recording:
            what = "is still recording" if self.is_recording else "has recorded nothing"
            raise GraphError(f"{op}: the device {what}")
        self._verified = None  # its memory is free for the new graph
        self._recording.seal()
        # Caches nothing: the tensors that it reads, even parameters, may change between runs.
        graph = self._recording.graph(parallel=self.parallel, keep=False)
        self._journal.forget()
        verified = Options().verified(self._recording, graph)
        self._warn(verified, None)
        self._verified, self._threads = verified, threads
        return verified

    def run(self, n: int = 1) -> None:
        """Runs the graph `n` times. An interrupt takes effect between two runs.

        Raises:
            GraphError: nothing was recorded, or the recording has not ended.
        """
        verified = self._ready("run")
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
            graph = self._ready(name).graph
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


def record(device: _core.Device) -> Recorded:
    """A recording: `with device.record() as graph: ...`, then `graph.run(n)`."""
    return Recorded(device)


_core.Device.record = record

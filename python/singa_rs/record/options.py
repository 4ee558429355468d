"""What `Module.compile` says of recordings and graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .. import _core


class Options(NamedTuple):
    """How calls are recorded, and how graphs are made of recordings."""

    #: After so many replays a call is recorded again and compared.
    check_every: int | None = None
    #: Whether only what keeps every bit of the results may be done with the operations.
    exact: bool = True
    #: Whether a run stops at the first operation that makes a NaN or an infinity.
    check_finite: bool = False
    #: Whether operations that leave threads idle run beside each other.
    parallel: bool = False

    def graph_of(self, recording: _core.Recording) -> _core.Graph:
        """The analysed, planned graph of a sealed recording."""
        return recording.graph(
            exact=self.exact, check_finite=self.check_finite, parallel=self.parallel
        )

    @contextmanager
    def eagerly(self) -> Iterator[None]:
        """Within it, operations that run without a graph are looked at as those of a graph."""
        before = _core.check_finite(self.check_finite)
        try:
            yield
        finally:
            _core.check_finite(before)

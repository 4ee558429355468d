"""What `Module.compile` says of recordings and graphs."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core


class Options(NamedTuple):
    """How calls are recorded, and how graphs are made of recordings."""

    #: After so many replays a call is recorded again and compared.
    check_every: int | None = None
    #: Whether only what keeps every bit of the results may be done with the operations.
    exact: bool = True

    def graph_of(self, recording: _core.Recording) -> _core.Graph:
        """The analysed, planned graph of a sealed recording."""
        return recording.graph(exact=self.exact)

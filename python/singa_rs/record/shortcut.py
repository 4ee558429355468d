"""The short way of a call that is like the one before: a few checks, and the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import changes, signature
from ..autograd.mode import mode
from ..tensor import Tensor
from .profile import profile

if TYPE_CHECKING:
    from .entry import Entry
    from .snapshot import Snapshot

#: What a shortcut answers to a call that has to go the long way.
MISS = object()


class Shortcut:
    """Replays a graph for calls with tensors only, in order, while nothing has changed that the
    long way would look at: what `changes` counts, the mode, the arguments."""

    def __init__(self, entry: Entry, snapshot: Snapshot, count: int) -> None:
        self.function, self.training = entry.function, entry.training
        self.graph, self._entry, self._count = entry.graph, entry, count
        self._still_holds = snapshot.still_holds
        self._requires_grad, self._signature = entry.requires_grad, entry.signature
        self._is_row = _is_row(entry.results)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The results; MISS where the call is not like the one before."""
        if (
            changes() != self._count
            or mode.paused
            or mode.nodes is not None
            or profile.level
            or len(args) != len(self._requires_grad)
        ):
            return MISS
        for x, want in zip(args, self._requires_grad, strict=True):
            if type(x) is not Tensor or x.requires_grad is not want:
                return MISS
        if not self._still_holds() or signature(args) != self._signature:
            return MISS
        graph = self.graph
        if not graph.fits(args):
            return MISS
        made = graph.run(args)
        self._entry.runs += 1
        return tuple(made) if self._is_row else self._entry.results.build(args, made)


def _is_row(results: Any) -> bool:
    """Whether a function answers a tuple of new tensors, each once, and nothing else."""
    row = tuple(("made", index) for index in range(len(results.flags)))
    return results.is_plain and results.spec == (tuple, row)

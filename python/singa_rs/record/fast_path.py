"""The fast path for a call like the previous one: a few checks, then the replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _core
from ..autograd.mode import mode
from .entry import uninterrupted
from .results import Leaf
from .trees import ORDINARY

if TYPE_CHECKING:
    from .ready import Ready

#: What the fast path returns for a call that must take the slow path.
MISS = object()


class FastPath:
    """Replays a graph for calls whose arguments are just tensors in order, as long as nothing has
    changed that the slow path would check: the count of noted changes, the mode, the arguments, and
    decisions on numbers that the step itself changes."""

    def __init__(
        self, ready: Ready, ran: Callable[[Ready, Any, int], None], seconds: float | None
    ) -> None:
        """`ran`: notes a run for a model, and how many changes it made itself. `seconds`: how long
        the path may be used, roughly; None without a limit."""
        entry, snapshot = ready.entry, ready.attributes
        self.function, self.training = entry.function, entry.training
        self.graph, self._results = entry.graph, entry.results
        self._held = snapshot.tensors if entry.results.paths else {}
        flags = entry.requires_grad
        known = snapshot.known
        graph, watch = entry.graph, snapshot.watch
        check = _core.Shortcut(graph, watch, ready.count, flags, ORDINARY, known, seconds)
        self._call, self._advance = check.call, check.advance
        self._is_row = _is_row(entry.results)
        #: If the step changes numbers: the graph, and what replays let know of that.
        self._changing = (ready, ran) if entry.effects.numbers else None

    def __call__(self, args: tuple[Any, ...], root: Any) -> Any:
        """The results; MISS if the call is not like the one before."""
        if mode.paused:
            return MISS
        made = self._call(args) if self._changing is None else self._changed(args, root)
        if made is None:
            return MISS
        if not self._is_row:
            return self._results.build(args, made, self._held)
        self._results.cut_off(made)
        return made

    def _changed(self, args: tuple[Any, ...], root: Any) -> Any:
        """As `_call`, for a step that changes numbers."""
        ready, ran = self._changing
        entry = ready.entry
        changes = entry.changes(root)
        if changes is None:
            return None

        take_effect = entry.effect(root, ready.attributes, changes)

        def finished(made: Any) -> Any:
            if made is not None:
                take_effect()
                self._advance(entry.noted)
                ran(ready, root, entry.noted)
            return made

        return uninterrupted(self._call, args, finished)


def _is_row(results: Any) -> bool:
    """Whether a function returns a tuple of new tensors, each once, and nothing else."""
    row = tuple(Leaf("made", index) for index in range(len(results.flags)))
    return results.is_plain and results.spec == (tuple, row)

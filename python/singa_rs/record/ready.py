"""The graphs that calls have replayed lately: the next call need not look for them while nothing
has changed that they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core import changes as count_changes
from ..autograd.mode import mode
from .entry import Entry
from .snapshot import Snapshot

#: How many are kept.
_MOST = 16


class Ready:
    """A graph to replay, the attributes that its call found, and the count of changes then."""

    __slots__ = ("attributes", "count", "entry")

    def __init__(self, entry: Entry, attributes: Snapshot, count: int) -> None:
        self.entry, self.attributes, self.count = entry, attributes, count

    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return count_changes() == self.count and self.attributes.watch.holds()


class Found(NamedTuple):
    """What a call is to replay, on which tensors, and what the step sets numbers to."""

    ready: Ready
    tensors: Sequence[Any]
    changes: Sequence[Any]


class Lately:
    """The latest first. It is replaced as a whole, as calls may come from several threads."""

    def __init__(self) -> None:
        self._known: tuple[Ready, ...] = ()

    @property
    def latest(self) -> Ready | None:
        """What was replayed last of what is kept, current or not."""
        return self._known[0] if self._known else None

    def find(self, function: Any, root: Any, training: bool, args: tuple[Any, ...]) -> Found | None:
        """What a call can replay without a look at the model."""
        for ready in self._known:
            entry = ready.entry
            if (
                ready.count == count_changes()
                and entry.function is function
                and entry.training is training
                and bool(mode.paused) is entry.paused
                and (tensors := entry.accept(args, ready.attributes)) is not None
                and ready.attributes.watch.holds()
                and (changes := entry.changes(root)) is not None
            ):
                self._lead(ready)
                return Found(ready, tensors, changes)
        return None

    def put(self, ready: Ready) -> None:
        """Notes what a call replays."""
        others = [one for one in self._known if one.entry is not ready.entry]
        self._known = (ready, *others[: _MOST - 1])

    def _lead(self, ready: Ready) -> None:
        if self._known[:1] != (ready,):
            self._known = (ready, *(one for one in self._known if one is not ready))

    def drop(self, ready: Ready) -> None:
        """Forgets one."""
        self._known = tuple(one for one in self._known if one is not ready)

    def ran(self, ready: Ready, root: Any, noted: int) -> None:
        """Notes a run that has made so many changes itself, which leave its graph ready, and those
        that look at the same numbers."""
        entry, before, after = ready.entry, ready.count, ready.count + noted
        if not (noted or entry.effects.numbers) or count_changes() != after:
            return
        ready.count = after
        for one in self._known:
            if one is not ready and one.count == before and one.entry.may_follow(entry):
                entry.tell(root, one.attributes)
                one.count = after
        if noted:  # what is left may hold what the run has replaced
            self._known = tuple(one for one in self._known if one.count == after)

    def let_go(self) -> None:
        """Forgets those that are not current: they may hold what the program has let go."""
        self._known = tuple(one for one in self._known if one.is_current())

    def clear(self) -> None:
        """Forgets all."""
        self._known = ()

"""Which divided tensors a thread has gathered: those of the unit that it uses, and those of the
next one, whose exchange goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import ref

from ..autograd.mode import mode
from ..tensor import Tensor

if TYPE_CHECKING:
    from .units import Unit
    from .work import Work


class Gathered:
    """The tensors of a unit, on their way or there."""

    def __init__(self, unit: Unit, work: Work) -> None:
        self.unit, self._work = unit, work
        self._version = unit.share.version
        self._tensors: Sequence[Tensor] = ()
        #: Whether it was used since the unit before it was.
        self.is_used = False

    @property
    def is_present(self) -> bool:
        """Whether this rank's share is what it was, as those of all ranks then are."""
        return self._version == self.unit.share.version

    def tensors(self) -> Sequence[Tensor]:
        """Waits for them."""
        if self._work is not None:
            work, self._work = self._work, None
            self._tensors = self.unit.finish(work)
        return self._tensors


class Gathering:
    """What a thread has gathered, outside of recordings or in one.

    Which unit follows on which two is learned where it happens first, and stays so: a step that is
    recorded again begins the same exchanges at the same places, and all ranks do. What a recording
    learns is kept once it has run, as one that is only planned may be that of a single rank.
    """

    def __init__(self, is_recorded: bool) -> None:
        self._is_recorded = is_recorded
        self._learned: dict[tuple[int, int, bool], tuple[Unit, Unit | None]] = {}
        self._held: dict[int, Gathered] = {}
        #: The unit that is used, and where this is: the numbers of it and of the one before, and
        #: whether gradients are noted.
        self._now: Unit | None = None
        self._place = (0, 0, False)

    def of(self, unit: Unit) -> Sequence[Tensor]:
        """The tensors of a unit."""
        found = self._present(unit)
        if not found.is_used:
            self._arrive(unit, found)
        return found.tensors()

    def end(self) -> None:
        """Ends what was begun, and lets go of everything."""
        self._learn(None)
        self._now, self._place = None, (0, 0, False)
        for one in list(self._held.values()):
            self._let_go(one.unit)

    def _arrive(self, unit: Unit, found: Gathered) -> None:
        """Goes on to a unit: the one before is let go, and the next one begun."""
        self._learn(unit)
        self._now, self._place = unit, (unit.number, self._place[0], bool(mode.tape))
        follows = self._next()
        for one in list(self._held.values()):
            if one.unit is not unit and one.unit is not follows:
                self._let_go(one.unit)
        found.is_used = True
        if follows is not None and follows is not unit:
            self._present(follows).is_used = False

    def _present(self, unit: Unit) -> Gathered:
        """The unit as it is held, or begun anew."""
        found = self._held.get(id(unit))
        if found is None or not found.is_present:
            self._let_go(unit)
            found = self._held[id(unit)] = unit.begin()
        return found

    def _let_go(self, unit: Unit) -> None:
        """Drops a unit's tensors; an exchange that was begun is ended before."""
        found = self._held.pop(id(unit), None)
        if found is not None:
            found.tensors()

    def keep(self) -> None:
        """Keeps what was learned."""
        for place, (now, unit) in self._learned.items():
            now.after.setdefault(place[1:], None if unit is None else ref(unit))
        self._learned = {}

    def _learn(self, unit: Unit | None) -> None:
        """Notes what follows on the unit that is used, and the one before."""
        if self._now is None:
            return
        is_known = unit is not None and unit.family is self._now.family
        self._learned.setdefault(self._place, (self._now, unit if is_known else None))
        if not self._is_recorded:
            self.keep()

    def _next(self) -> Unit | None:
        """What follows, as far as that is known."""
        if self._place[1:] in self._now.after:
            found = self._now.after[self._place[1:]]
            return None if found is None else found()
        return self._learned.get(self._place, (None, None))[1]


class _Threads(threading.local):
    gathering: Gathering | None = None


_threads = _Threads()


def gathering() -> Gathering:
    """What the calling thread has gathered: what was before a recording is let go in it, and what
    was in it, after."""
    holder = _threads if mode.nodes is None else mode.nodes
    if holder.gathering is None:
        holder.gathering = Gathering(holder is not _threads)
    return holder.gathering

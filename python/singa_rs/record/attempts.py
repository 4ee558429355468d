"""The recordings of a function with which later ones are compared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable

from .attempt import Attempt
from .call import Call
from .effects import Undo, moving
from .snapshot import Snapshot
from .stand_ins import tells_stand_ins

#: How many recordings of calls of one key are kept that differ in attributes.
_ALIKE = 4


class Attempts:
    """The latest recordings by the key of their calls; those of one key hold for different
    numbers."""

    def __init__(self, most: int, carried: set[str] | None = None, leaves: bool = True) -> None:
        """`leaves`: whether runs may leave tensors in attributes."""
        self._leaves = leaves
        self._known: OrderedDict[Hashable, list[Attempt]] = OrderedDict()
        #: How many are kept.
        self._most = most
        #: The paths of numbers that change from call to call, which recordings make symbolic.
        self._moving: set[str] = set()
        #: The paths of tensors that steps read and replace, shared by a model's functions.
        self.carried: set[str] = set() if carried is None else carried
        #: The paths of tensors that steps read and the program has replaced once.
        self._replaced: set[str] = set()
        #: Whether the program does with symbols what it does with numbers.
        self._takes_symbols = True

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def latest(self, call: Call, now: Snapshot) -> tuple[Attempt | None, str | None]:
        """The latest recording that holds for the present numbers and has left the attributes as
        they are now; if there are only others, why the latest of these does not."""
        known = self._known.get(call.key, ())
        for attempt in known[-1:]:
            self._moving |= moving(attempt.changes, attempt.before, now)
            again = attempt.replaced(now)
            self.carried |= again & self._replaced
            self._replaced |= again
        reason = None
        for one in reversed(known):
            other = one.guards.mismatch(call.root) or one.is_for(now) or one.is_followed_by(now)
            if other is None:
                return one, None
            reason = reason or other
        return None, reason

    def record(
        self, call: Call, before: Snapshot, previous: Attempt | None
    ) -> tuple[Attempt, Undo]:
        """Records a call, with symbols for the numbers that change if the program takes them; and
        what undoes it."""
        if self._moving and any(map(tells_stand_ins, before.functions)):
            self._takes_symbols = False
        leaves = self._leaves and (bool(self.carried) or None)
        if self._moving and self._takes_symbols:
            try:
                attempt, undo = _recorded(call, before, previous, self._moving, leaves)
            except TypeError:  # of code that takes numbers of Python's own classes alone
                attempt = None
            if attempt is not None and not attempt.symbols.are_kept:
                return attempt, undo
            if attempt is not None:
                undo(runs_again=True)
        made = _recorded(call, before, previous, (), leaves)
        self._takes_symbols = self._takes_symbols and not self._moving
        return made

    def keep(self, attempt: Attempt, previous: Attempt | None) -> None:
        """Keeps a recording in the place of the one that it was compared with, beside few others of
        its key that hold for any numbers."""
        known = self._known.setdefault(attempt.call.key, [])
        known[:] = [one for one in known if one is not previous] + [attempt]
        alike = [one for one in known if not one.guards.outcomes]
        if len(alike) > _ALIKE:
            known.remove(alike[0])
        self._known.move_to_end(attempt.call.key)
        if attempt.verified is not None:
            self.carried |= attempt.carried()
        while sum(map(len, self._known.values())) > self._most:
            self._drop(next(iter(self._known)), 0)

    def drop(self, attempt: Attempt) -> None:
        """Forgets a recording with which nothing is to be compared."""
        self._drop(attempt.call.key, -1)

    def _drop(self, key: Hashable, index: int) -> None:
        self._known[key].pop(index)
        if not self._known[key]:
            del self._known[key]

    def clear(self) -> None:
        """Forgets all recordings."""
        self._known.clear()


def _recorded(
    call: Call,
    before: Snapshot,
    previous: Attempt | None,
    symbolic: Collection[str],
    leaves: bool | None,
) -> tuple[Attempt, Undo]:
    undo = Undo(call, before)
    try:
        return Attempt(call, before, undo, previous, symbolic, leaves), undo
    except BaseException as error:
        undo(runs_again=bool(symbolic) and isinstance(error, TypeError))
        raise

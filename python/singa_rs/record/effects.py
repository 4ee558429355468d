"""What a step changes in the attributes of its model, and how to restore them."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from ..autograd.mode import Nodes
from ..tensor import Tensor
from . import places
from .memory import Memory, memory, text
from .places import Place
from .snapshot import Item, Snapshot
from .taps import Tapping

if TYPE_CHECKING:
    from .attempt import Call

Change = tuple[Item | None, Item | None]


def changes(before: Snapshot, after: Snapshot) -> dict[str, Change]:
    """The attributes whose values differ, with their items before and after, except those
    outside."""
    old, new, outside = before.items, after.items, before.outside | after.outside
    found: dict[str, Change] = {}
    for path, item in old.items():
        now = new.get(path)
        if (now is None or now.value != item.value) and path not in outside:
            found[path] = (item, now)
    made = ((path, item) for path, item in new.items() if path not in old)
    found.update((path, (None, item)) for path, item in made if path not in outside)
    return found


class Kept(NamedTuple):
    """An attribute that each step sets to a tensor that it makes. The tensor object stays the same
    and shows the latest run."""

    place: Place
    tensor: Tensor
    #: The kinds of what it may hold before the step, as the recordings found it.
    before: frozenset[str]

    @property
    def repeats(self) -> bool:
        """Whether a step may find what the one before it has set."""
        return kind(Item(None, None, memory(self.tensor))) in self.before

    def admits(self, item: Item, now: Tensor | None, root: Any) -> bool:
        """Whether a step that finds this in the attribute does what was recorded."""
        if now is self.tensor:
            return kind(item) in self.before
        can_set = not self.place.is_item and self.place.is_at(item.owner, item.key, root)
        return can_set and kind(item) in self.before


class Effects(NamedTuple):
    """What every step does to attributes."""

    #: Numbers, and by how much each step raises them.
    counters: dict[str, tuple[Place, int]]
    kept: dict[str, Kept]
    #: The counters that both recordings found at the same value, on which the step may depend.
    fixed: set[str]
    #: What divides all distances between the values of the others that equal recordings found: with
    #: 2, the step may depend on whether they are odd.
    periods: dict[str, int]

    @property
    def repeats(self) -> bool:
        """Whether a step leaves all attributes as another may find them."""
        steps = (self.counters[path][1] % by for path, by in self.periods.items())
        return not (self.fixed or any(steps)) and all(kept.repeats for kept in self.kept.values())

    def are_counted(self, found: dict[str, Change]) -> bool:
        """Whether a step with these changes raised all counters by the recorded amounts."""
        raised = (
            (_raised(*found.get(path, (None, None))), by) for path, (_, by) in self.counters.items()
        )
        return all(got == by for got, by in raised)

    def within(self, periods: Mapping[str, int]) -> Effects:
        """The same with periods that divide these, of recordings that were equal before, too."""
        found = {path: gcd(by, periods.get(path, 0)) for path, by in self.periods.items()}
        return self._replace(periods=found)

    def shown(self) -> list[str]:
        """The effects as text."""
        lines = [self._raises(path) for path in self.counters]
        return lines + [
            f"sets attribute {path} to a tensor of the latest run" for path in self.kept
        ]

    def _raises(self, path: str) -> str:
        where = " from its recorded value" if path in self.fixed else ""
        return f"increments attribute {path}{where} by {self.counters[path][1]}"


def kind(item: Item | None) -> str:
    """The kind of value that an attribute had before a step, as far as a program can tell."""
    if item is None:
        return "nothing"
    return str(item.value.meta) if type(item.value) is Memory else text(item.value)


def effects(first: dict[str, Change], second: dict[str, Change], after: Snapshot) -> Effects | str:
    """What two recordings changed alike; or, as text, an attribute that they did not.

    Args:
        first, second: the changes of each.
        after: the attributes after the second.
    """
    found = Effects({}, {}, set(), {})
    for path, (old, new) in second.items():
        before = first.get(path, (None, None))
        by = _raised(old, new)
        if by is not None and by == _raised(*before):
            found.counters[path] = (Place(new.owner, new.key), by)
            if distance := old.value[1] - before[0].value[1]:
                found.periods[path] = abs(distance)
            else:
                found.fixed.add(path)
        elif _is_made(new) and _is_made(before[1]):
            kinds = frozenset({kind(old), kind(before[0])})
            found.kept[path] = Kept(Place(new.owner, new.key), after.tensors[path], kinds)
        else:
            return f"attribute {path}, which the step changed from {_say(old)} to {_say(new)}"
    return found


def _raised(old: Item | None, new: Item | None) -> int | None:
    if old is None or new is None or isinstance(new.owner, tuple) or new.key is None:
        return None
    if any(type(v) is not tuple or v[0] is not int for v in (old.value, new.value)):
        return None
    return new.value[1] - old.value[1]


def _is_made(item: Item | None) -> bool:
    return item is not None and type(item.value) is Memory and item.value.is_recorded


def _say(item: Item | None) -> str:
    return "nothing" if item is None else text(item.value)


def _put_back(array: np.ndarray, elements: bytes) -> None:
    """Restores the elements of an array, unless its size has changed."""
    if array.nbytes == len(elements):
        array[...] = np.frombuffer(elements, array.dtype).reshape(array.shape)


class Undo:
    """Restores what a recorded call may change to what it was when this object was made: the
    attributes of the model and of what it holds, those of tensors, the tape, the taps' values, and
    the generator of initial values."""

    def __init__(self, call: Call, before: Snapshot) -> None:
        #: What the recording notes: changes to existing tensors, nodes of the tape, taps.
        self.journal, self.nodes = _core.Journal(), Nodes()
        self.tapping = Tapping()
        objects = [call.root, *(one for _, one in before.objects)]
        self._restore = [one._remember() for one in objects]
        self._contents, self._places = before.contents, before.places
        self._arrays = before.elements
        self._arguments = [(x, dict(x.__dict__)) for x in call.tensors]
        self._generator = _core.random_state(call.device, "init")
        self._drawn = self._generator.to_numpy()

    def __call__(self, keep_state: bool = False) -> None:
        """Undoes everything; with `keep_state`, all but the creation of parameters and moments."""
        for restore in self._restore:
            restore(keep_state)
        for container, copy in self._contents:
            container.clear()
            container.update(copy) if hasattr(container, "update") else container.extend(copy)
        for owner, key, value in self._places:
            if places.read(owner, key) is not value:
                places.write(owner, key, value)
        for x, attributes in self._arguments:
            x.__dict__.clear()
            x.__dict__.update(attributes)
        self.tapping.restore()
        self.nodes.undo()
        self.journal.undo(keep_state)
        if not keep_state:
            self._draw_again()
        for array, elements in self._arrays:
            if array.flags.writeable and array.tobytes() != elements:
                _put_back(array, elements)

    def _draw_again(self) -> None:
        """Rewinds the generator, so that initial values that are made again are the same."""
        key, position = self._generator.to_numpy()
        if key == self._drawn[0] and position != self._drawn[1]:
            self._generator.copy_from_numpy(self._drawn)

    def forget(self) -> None:
        """Keeps all changes: nothing can be undone afterwards."""
        self.tapping.forget()
        self.journal.forget()
        self.nodes.forget()

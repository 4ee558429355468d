"""What a step changes in the attributes of its model, and how to put it back."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ..tensor import Tensor
from .snapshot import Item, Memory, Snapshot, text

Change = tuple[Item | None, Item | None]

_MUTABLE = (list, dict, deque)


def changes(before: Snapshot, after: Snapshot) -> dict[str, Change]:
    """The attributes whose values differ, with both of them."""
    old, new = before.items, after.items
    found = {}
    for path, item in old.items():
        now = new.get(path)
        if now is None or now.value != item.value:
            found[path] = (item, now)
    found.update((path, (None, item)) for path, item in new.items() if path not in old)
    return found


class Place:
    """An attribute of a layer, an optimizer or a parameter, or an item of a container. Objects
    are not kept alive; the owner None is the model itself."""

    __slots__ = ("_get", "key", "is_item")

    def __init__(self, item: Item) -> None:
        owner, self.key = item.owner, item.key
        self.is_item = isinstance(owner, (*_MUTABLE, tuple))
        if owner is None:
            self._get: Callable[[], Any] | None = None
        elif isinstance(owner, (list, dict, tuple)):  # which cannot be referred to weakly
            self._get = lambda: owner
        else:
            self._get = weakref.ref(owner)

    def owner(self, root: Any) -> Any:
        """The object, or None where it is gone."""
        return root if self._get is None else self._get()

    def is_place_of(self, item: Item, root: Any) -> bool:
        """Whether an item of another snapshot is at this place."""
        owner = root if item.owner is None else item.owner
        return item.key == self.key and self.owner(root) is owner

    def read(self, root: Any) -> Any:
        """What is there."""
        owner = self.owner(root)
        return owner[self.key] if self.is_item else getattr(owner, self.key)

    def write(self, root: Any, value: Any) -> None:
        """Puts a value there without a note of it."""
        owner = self.owner(root)
        if self.is_item:
            owner[self.key] = value
        else:
            owner.__dict__[self.key] = value


class Kept(NamedTuple):
    """An attribute that each step sets to a tensor that it makes. The tensor object stays, and
    shows the latest run."""

    place: Place
    tensor: Tensor
    #: What it may have been before the step: what the recordings found there.
    before: frozenset[str]

    def admits(self, item: Item, now: Tensor | None, root: Any) -> bool:
        """Whether a step that finds this there does what was recorded."""
        if now is self.tensor:
            return True
        can_set = not self.place.is_item and self.place.is_place_of(item, root)
        return can_set and kind(item) in self.before


class Effects(NamedTuple):
    """What every step does to attributes."""

    #: Numbers, and by how much each step raises them.
    counters: dict[str, tuple[Place, int]]
    kept: dict[str, Kept]

    def shown(self) -> list[str]:
        """The same in words."""
        lines = [f"raises attribute {path} by {by}" for path, (_, by) in self.counters.items()]
        return lines + [f"sets attribute {path}, which shows the latest run" for path in self.kept]


def kind(item: Item | None) -> str:
    """What an attribute was before a step, as far as a program tells tensors apart."""
    if item is None:
        return "nothing"
    return str(item.value.meta) if type(item.value) is Memory else text(item.value)


def effects(first: dict[str, Change], second: dict[str, Change], after: Snapshot) -> Effects | str:
    """What two recordings changed alike; or what they did not, in words.

    Args:
        first, second: the changes of either.
        after: the attributes after the second.
    """
    found = Effects({}, {})
    for path, (old, new) in second.items():
        before = first.get(path, (None, None))
        by = _raised(old, new)
        if by is not None and by == _raised(*before):
            found.counters[path] = (Place(new), by)
        elif _is_made(new) and _is_made(before[1]):
            kinds = frozenset({kind(old), kind(new)})
            found.kept[path] = Kept(Place(new), after.tensors[path], kinds)
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


class Undo:
    """Puts the attributes of a model back to what they were when it was made."""

    def __init__(self, root: Any, before: Snapshot) -> None:
        self._restore = [one._remember() for one in (root, *before.objects)]
        self._contents = before.contents()

    def __call__(self, keep_state: bool = False) -> None:
        """Undoes everything; with `keep_state` all but the making of parameters and moments."""
        for restore in self._restore:
            restore(keep_state)
        for container, copy in self._contents:
            container.clear()
            container.update(copy) if hasattr(container, "update") else container.extend(copy)

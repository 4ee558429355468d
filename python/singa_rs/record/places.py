"""Where a program keeps a value: an attribute, an item of a container, a global, a cell."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import chain
from operator import is_
from types import CellType
from typing import Any

#: Stands for the value of an empty place.
NOTHING = object()

#: The most derived class comes first.
_MUTABLE = (OrderedDict, dict, list, deque, bytearray)
_INDEXED = (*_MUTABLE, tuple)
#: Containers; the items of sets have no places.
CONTAINERS = (*_INDEXED, set, frozenset)
#: What is not read as attributes of objects are.
_SPECIAL = (*CONTAINERS, type, CellType)


class Slot(str):
    """The key of an attribute of a container, which has items besides."""

    __slots__ = ()


def read(owner: Any, key: Any) -> Any:
    """The value at a place, or NOTHING. What a program's descriptor makes of it is not asked."""
    if type(key) is Slot:
        return getattr(owner, key, NOTHING)
    if isinstance(owner, dict):
        return dict.get(owner, key, NOTHING)
    if isinstance(owner, _SPECIAL):
        return _read(owner, key)
    try:
        return owner.__dict__[key]
    except Exception:  # a slot, or a class whose objects have no dictionary
        return getattr(owner, key, NOTHING)


def _read(owner: Any, key: Any) -> Any:
    if isinstance(owner, _INDEXED):
        return _base(owner).__getitem__(owner, key) if key < len(owner) else NOTHING
    if isinstance(owner, type):
        return vars(owner).get(key, NOTHING)
    is_full = isinstance(owner, CellType) and _is_full(owner)
    return owner.cell_contents if is_full else NOTHING


def write(owner: Any, key: Any, value: Any) -> None:
    """Writes a value to a place without noting a change; NOTHING empties the place."""
    if value is NOTHING:
        _clear(owner, key)
    elif isinstance(owner, _MUTABLE) and type(key) is not Slot:
        _base(owner).__setitem__(owner, key, value)
    elif isinstance(owner, type):
        type.__setattr__(owner, key, value)
    elif key in (attributes := own_attributes(owner)) or not hasattr(
        slot := getattr(type(owner), key, None), "__set__"
    ):
        attributes[key] = value
    else:  # tensors have a __setattr__ of their own
        slot.__set__(owner, value)


def _clear(owner: Any, key: Any) -> None:
    if isinstance(owner, dict) and type(key) is not Slot:
        _base(owner).pop(owner, key, None)
    elif isinstance(owner, _MUTABLE) and type(key) is not Slot:
        _base(owner).__delitem__(owner, key)
    elif isinstance(owner, type):
        if key in vars(owner):
            type.__delattr__(owner, key)
    elif key in (attributes := own_attributes(owner)):
        del attributes[key]
    elif hasattr(owner, key):  # a slot
        getattr(type(owner), key).__delete__(owner)


def refill(container: Any, items: Any) -> None:
    """Gives a container these items instead of its own."""
    kind = _base(container)
    if kind is bytearray:  # its memory may be lent
        kind.__setitem__(container, slice(None), items)
        return
    if kind.__len__(container) == len(items):  # a set could get another order
        now, then = kind.__iter__(container), iter(items)
        if kind in (dict, OrderedDict):
            now, then = map(chain.from_iterable, (kind.items(container), items.items()))
        if all(map(is_, now, then)):
            return
    kind.clear(container)
    (kind.update if hasattr(kind, "update") else kind.extend)(container, items)


def copied(container: Any) -> Any:
    """A shallow copy of Python's own class; of a set, its items in their order."""
    kind = _base(container)
    if kind is set:
        return list(kind.__iter__(container))
    if kind is deque:
        return deque(container, container.maxlen)
    return OrderedDict(container) if kind is OrderedDict else kind.copy(container)


def _base(container: Any) -> Any:
    """Python's own class of a container: methods of a program's class may do something else."""
    return next(kind for kind in (*_INDEXED, set) if isinstance(container, kind))


def own_attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object that are kept in a dictionary."""
    found = attributes_of(value)
    return found if isinstance(found, dict) else {}


def attributes_of(value: Any) -> Any:
    """The `__dict__` of an object, or None, also if its class raises an error instead."""
    try:
        return getattr(value, "__dict__", None)
    except Exception:
        return None


def slots(kind: type) -> list[str]:
    """The names of the attributes that a class and its bases keep in slots."""
    found: list[str] = []
    for cls in kind.__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            if name not in ("__dict__", "__weakref__"):
                found.append(name)
    return found


def in_slots(value: Any) -> list[tuple[str, Any]]:
    """The slots of an object with their values, NOTHING for those that are empty."""
    as_key = Slot if isinstance(value, CONTAINERS) else str
    return [(as_key(name), getattr(value, name, NOTHING)) for name in slots(type(value))]


def filled_slots(value: Any) -> list[tuple[str, Any]]:
    """The slots of an object that have a value."""
    return [(name, one) for name, one in in_slots(value) if one is not NOTHING]


def notes_changes(cls: type) -> bool:
    """Whether a class notes changes to its own attributes, as those of layers do."""
    return getattr(type(cls), "_notes_changes", False)


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not NOTHING
    except ValueError:  # not assigned yet
        return False


class Place:
    """The place of a value: an owner and a key. The owner is held by a weak reference where that
    is possible; the owner None is the model itself."""

    __slots__ = ("_get", "key", "is_item")

    def __init__(self, owner: Any, key: Any) -> None:
        self.key = key
        self.is_item = isinstance(owner, _INDEXED) and type(key) is not Slot
        self._get: Callable[[], Any] | None = None
        if owner is not None:
            try:
                self._get = weakref.ref(owner)
            except TypeError:
                self._get = lambda: owner

    def owner(self, root: Any) -> Any:
        """The object, or None if it is gone."""
        return root if self._get is None else self._get()

    def is_noted(self, root: Any) -> bool:
        """Whether it is an attribute of a layer, a module, an optimizer or the class of a layer or
        module, which note changes."""
        owner = self.owner(root)
        if isinstance(owner, type):
            return notes_changes(owner)
        return not self.is_item and hasattr(type(owner), "_watched")

    def is_at(self, owner: Any, key: Any, root: Any) -> bool:
        """Whether it is this place; the owner None is the model itself."""
        return key == self.key and self.owner(root) is (root if owner is None else owner)

    def read(self, root: Any) -> Any:
        """The value at the place, or NOTHING."""
        return read(self.owner(root), self.key)

    def write(self, root: Any, value: Any) -> None:
        """Writes a value to the place without noting a change."""
        write(self.owner(root), self.key, value)

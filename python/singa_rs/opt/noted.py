"""Names that are noted of objects, which are told apart by identity: their classes may compare by
value, and so have no hash."""

from __future__ import annotations

import weakref
from collections.abc import Set
from typing import Any


class Noted:
    """Names by object, for as long as the object lives."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref[Any], set[str]]] = {}

    def add(self, owner: Any, name: str) -> None:
        """Notes a name."""
        key = id(owner)
        if key not in self._found:
            ref = weakref.ref(owner, lambda _: self._found.pop(key, None))
            self._found[key] = (ref, set())
        self._found[key][1].add(name)

    def get(self, owner: Any) -> Set[str]:
        """The names that are noted of an object."""
        found = self._found.get(id(owner))
        return frozenset() if found is None else found[1]

    def items(self) -> list[tuple[Any, str]]:
        """Each object that lives, with each of its names."""
        alive = [(ref(), names) for ref, names in tuple(self._found.values())]
        return [(one, name) for one, names in alive if one is not None for name in names]

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

    def owners(self) -> list[Any]:
        """The objects that live."""
        return [one for ref, _ in tuple(self._found.values()) if (one := ref()) is not None]

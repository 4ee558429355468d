"""Names that are noted of objects."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ..record.by_identity import ByIdentity


class Noted:
    """Names by object, for as long as the object lives."""

    def __init__(self) -> None:
        self._found = ByIdentity[set[str]]()

    def add(self, owner: Any, name: str) -> None:
        """Notes a name."""
        (self._found.get(owner) or self._found.set(owner, set())).add(name)

    def get(self, owner: Any) -> Set[str]:
        """The names that are noted of an object."""
        return self._found.get(owner) or frozenset()

    def items(self) -> list[tuple[Any, str]]:
        """Each object that lives, with each of its names."""
        return [(one, name) for one, names in self._found.items() for name in names]

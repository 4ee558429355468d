"""Names that are noted of objects."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ..autograd.mode import mode
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


#: By optimizer or group, the hyperparameters that recorded steps have read, on which they depend.
READ = Noted()


class Noting:
    """The attribute of a hyperparameter."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        if self._name not in getattr(owner, "__dict__", ()):
            raise AttributeError(f"{kind.__name__} has no {self._name}")
        if mode.nodes is not None:
            READ.add(owner, self._name)
        return vars(owner)[self._name]

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self._name] = value

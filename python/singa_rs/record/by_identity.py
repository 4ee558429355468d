"""Values noted of objects, which are told apart by identity: their classes may compare by value,
and so have no hash."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class ByIdentity(Generic[_T]):
    """A value for each object, for as long as the object lives."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref[Any], _T]] = {}

    def get(self, owner: Any) -> _T | None:
        """The value of an object; None if it has none."""
        found = self._found.get(id(owner))
        return None if found is None else found[1]

    def set(self, owner: Any, value: _T) -> _T:
        """Gives an object a value; returns it."""
        key = id(owner)
        ref = weakref.ref(owner, lambda _: self._found.pop(key, None))
        self._found[key] = (ref, value)
        return value

    def items(self) -> list[tuple[Any, _T]]:
        """Each object that lives, with its value."""
        alive = [(ref(), value) for ref, value in tuple(self._found.values())]
        return [(one, value) for one, value in alive if one is not None]

"""What a snapshot has of an attribute, or of an item of a container."""

from __future__ import annotations

from typing import Any, NamedTuple

from .places import CONTAINERS, Place, Slot


class Alias(NamedTuple):
    """An object that was inspected before, at this path."""

    path: str

    def __str__(self) -> str:
        return f"the object at {self.path}" if self.path else "the model itself"


class Kind(NamedTuple):
    """An object of this class, whose attributes have paths of their own."""

    kind: type

    def __str__(self) -> str:
        return f"a {self.kind.__name__}"


class Item(NamedTuple):
    """An attribute, or an item of a container. The owner is None for the model itself, so that a
    snapshot that a model keeps does not refer to it."""

    owner: Any
    key: Any
    value: Any

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.owner, self.key)

    @property
    def is_fixed(self) -> bool:
        """Whether no other value can be written there, or not any."""
        return isinstance(self.owner, (tuple, bytearray)) and type(self.key) is not Slot

    def alone(self) -> Item:
        """The same without the owner; what nothing can be written to loses its key."""
        return Item(None, None if self.is_fixed else self.key, self.value)


def is_container(item: Item | None) -> bool:
    """Whether there is a list, dictionary or the like, whose items have paths of their own."""
    value = None if item is None else item.value
    kind = value[0] if type(value) is tuple and value else None
    return isinstance(kind, type) and issubclass(kind, CONTAINERS)

"""What is noted of objects: names, deletions, and what their attributes were."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, Protocol

from ..autograd.mode import mode
from ..record import note_change
from ..record.by_identity import ByIdentity
from ..record.places import in_slots, write


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


class Remembers(Protocol):
    """What has tensors that can be dropped again."""

    def remember(self) -> Callable[[], None]:
        """Returns a function that drops what was made since."""


def restoring(owner: Any, *kept: Remembers) -> Callable[[bool], None]:
    """A function that restores the attributes of an owner; given True, it keeps what `kept`, which
    are among them, have made since."""
    attributes, own = dict(owner.__dict__), in_slots(owner)
    forgets = [one.remember() for one in kept]

    def restore(keep_state: bool) -> None:
        owner.__dict__.clear()
        owner.__dict__.update(attributes)
        for name, value in own:
            write(owner, name, value)
        if not keep_state:
            for forget in forgets:
                forget()

    return restore


class NotesDeletion:
    """Recorded steps notice when one of its attributes is deleted."""

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        note_change()


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

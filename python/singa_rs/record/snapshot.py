"""What a program may look at besides its arguments: the attributes of a model, at one moment.

Objects that take part have `_watched()`, which yields the names and values of their attributes,
and `_remember()`, which answers a function that puts them back: layers, optimizers, schedules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

from .._core import Watch
from .._plain import EXACT, plain, show
from ..tensor import Placeholder, Tensor

#: Of a longer list, tuple or dictionary only the length is looked at.
LONGEST = 1000

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)


class Spot(NamedTuple):
    """Where a tensor lies."""

    block: int
    offset: int
    strides: tuple[int, ...]


class Memory(NamedTuple):
    """A tensor in an attribute."""

    spot: Spot
    meta: tuple[Any, ...]
    #: Whether it was made in a recording, and has no value yet.
    is_recorded: bool


class Item(NamedTuple):
    """An attribute, or an item of a container. The owner is None for the model itself, so that no
    snapshot that a model keeps refers to it."""

    owner: Any
    key: Any
    value: Any


class Snapshot:
    """The scalars and tensors in the attributes of `root` and of what is below it, by path."""

    def __init__(self, root: Any) -> None:
        self.items: dict[str, Item] = {}
        #: The tensors of the items that are tensors.
        self.tensors: dict[str, Tensor] = {}
        #: The objects that were looked at, but for the root.
        self.objects: list[Any] = []
        self._containers: list[tuple[Any, Any]] = []
        self._seen = {id(root)}
        self._root = root
        self._attributes("", root)
        del self._root
        parameters = [t for t in self.tensors.values() if t._stores_grad]
        #: Tells whether anything has changed that changes without a note.
        self.watch = Watch(parameters, self._containers)

    def spots(self) -> dict[str, Spot]:
        """Where the tensors lie, by path."""
        found = ((path, item.value) for path, item in self.items.items())
        return {path: value.spot for path, value in found if type(value) is Memory}

    def follow(self, container: Any, key: Any) -> None:
        """Takes over an item of a container that was changed knowingly."""
        for known, copy in self._containers:
            if known is container:
                copy[key] = container[key]

    def contents(self) -> list[tuple[Any, Any]]:
        """Each mutable container with a copy of what it held."""
        return self._containers

    def _attributes(self, path: str, watched: Any) -> None:
        owner = None if watched is self._root else watched
        prefix = f"{path}." if path else ""
        items = self.items
        for name, value in watched._watched():
            kind = type(value)
            if kind in EXACT:  # most are
                items[prefix + name] = Item(owner, name, (kind, value))
            else:
                self._value(prefix + name, owner, name, value)

    def _value(self, path: str, owner: Any, key: Any, value: Any) -> None:
        kind = type(value)
        if isinstance(value, Tensor):
            self._tensor(path, owner, key, value)
        elif hasattr(kind, "_watched"):
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self.objects.append(value)
                self._attributes(path, value)
        elif isinstance(value, _CONTAINERS):
            self._container(path, owner, key, value)
        else:
            self.items[path] = Item(owner, key, plain(value))

    def _tensor(self, path: str, owner: Any, key: Any, value: Tensor) -> None:
        self.tensors[path] = value
        self.items[path] = Item(owner, key, memory(value))
        if value._stores_grad:
            self.items[f"{path}.requires_grad"] = Item(value, None, (bool, value.requires_grad))
            grad = value.grad
            if grad is not None:
                self.tensors[f"{path}.grad"] = grad
            value_of = plain(None) if grad is None else memory(grad)
            self.items[f"{path}.grad"] = Item(value, "grad", value_of)

    def _container(self, path: str, owner: Any, key: Any, value: Any) -> None:
        self.items[path] = Item(owner, key, (type(value), len(value)))
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if len(value) > LONGEST:
            return
        if not isinstance(value, (tuple, frozenset)):
            self._containers.append((value, value.copy()))
        if isinstance(value, (set, frozenset)):
            self.items[path] = Item(owner, key, (frozenset, frozenset(map(plain, value))))
            return
        if isinstance(value, dict):
            self.items[f"{path}.keys"] = Item(None, None, tuple(map(plain, value)))
        items: Iterable[Any] = value.items() if isinstance(value, dict) else enumerate(value)
        for index, item in list(items):
            self._value(f"{path}.{index}", value, index, item)


def memory(tensor: Tensor) -> Hashable:
    """What a key says of a tensor."""
    if isinstance(tensor, Placeholder):
        return plain(tensor)
    spot = Spot(tensor.block_id, tensor.offset, tensor.strides)
    return Memory(spot, (tensor.shape, tensor.dtype), tensor.is_recorded)


def pattern(value: Any, captured: Collection[int]) -> Any:
    """What another snapshot's value must match: a tensor that the graph uses is to lie in the
    very place, another one to look alike."""
    if type(value) is Memory:
        return value.spot if value.spot.block in captured else value.meta
    return value


def matches(want: Any, value: Any) -> bool:
    """Whether a value is what `pattern` made of another one asks for."""
    if type(value) is Memory:
        return want == (value.spot if type(want) is Spot else value.meta)
    return want == value


def text(value: Any) -> str:
    """A value, or a pattern, in words."""
    if type(value) is Memory:
        return "a tensor of shape " + str(value.meta[0])
    if type(value) is Spot:
        return "another tensor"
    return show(value)

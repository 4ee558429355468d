"""What a step leaves in attributes: tensors that it has made or found, and containers of tensors
that it has made. Each run of its graph leaves its own."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..tensor import Tensor
from ..tensor.keys import is_scalar, key_of
from . import places
from .effects import changes, kind
from .places import NOTHING, Place
from .snapshot import Alias, Item, Snapshot
from .state import note_change
from .symbols import place_of
from .trees import is_named

if TYPE_CHECKING:
    from .attempt import Call

_CONTAINERS = (tuple, list, dict)
#: The attributes of a tensor that tell where it is kept.
_NAMES = ("_name", "_default_name", "_path_name")


class Left(NamedTuple):
    """The result of a step, and what it leaves, by path."""

    result: Any
    values: dict[str, Any]


class Leaving:
    """Takes what a recorded step leaves out of the attributes, which then are as before."""

    def __init__(self, call: Call, before: Snapshot) -> None:
        self._before, self._root, self._look = before, call.root, call.look
        items = before.items.items()
        self._old = {path: _value(item.owner, item.key, call.root) for path, item in items}
        self._owners = {id(item.owner) for item in before.items.values()}
        #: Where the step leaves something, and what tells where those tensors are kept.
        self.places: dict[str, Place] = {}
        self._names: dict[str, dict[str, Any]] = {}
        #: The paths of all that it leaves.
        self.paths: set[str] = set()
        #: Whether a step finds what the one before it has left as the recording found it, and the
        #: program cannot change that without being noticed.
        self.repeats = True
        #: Why no run can leave what the step leaves, as text.
        self.obstacle: str | None = None

    def around(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """A step that returns what it leaves as well, and does not leave it."""
        return lambda: Left(run(), self._taken())

    def _taken(self) -> dict[str, Any]:
        after = self._look()
        changed = changes(self._before, after)
        values = self._values(changed, after)
        self.paths = {path for path in changed if values.keys() & {path, *_above(path)}}
        for path, value in values.items():
            self._take(path, value, after.items[path])
        self.repeats = self._are_alike(after) and all(map(_is_steady, values.values()))
        del self._before, self._root, self._look, self._old, self._owners
        return values

    def _values(self, changed: Iterable[str], after: Snapshot) -> dict[str, Any]:
        """What the step leaves, by path; nothing if no run can leave it."""
        tops = {path: self._top(path, after) for path in changed if path in after.tensors}
        items = {top: after.items[top] for top in sorted(set(filter(None, tops.values())))}
        values = {top: _value(item.owner, item.key, self._root) for top, item in items.items()}
        wrong = [path for path, top in tops.items() if top is None]
        wrong += [path for path in _aliased(after) if values.keys() & {path, *_above(path)}]
        if not wrong and self._are_own(list(values.values())):
            return values
        what = min(wrong or values)
        self.obstacle = f"the step sets attribute {what} in a way that no replay repeats"
        return {}

    def _take(self, path: str, value: Any, item: Item) -> None:
        """Gives a place what it had before the step."""
        place = self.places[path] = place_of(item)
        place.write(self._root, self._old.get(path, NOTHING))
        self._names |= {at: _names(x) for at, x in _tensors(path, value)}

    def _are_alike(self, after: Snapshot) -> bool:
        """Whether the step leaves tensors and containers of the kinds that it has found."""
        old, new = self._before.items, after.items
        return all(p in new and kind(old.get(p)) == kind(new[p]) for p in self.paths)

    def _top(self, path: str, after: Snapshot) -> str | None:
        """The path of the outermost container that the step has made around a tensor, or of the
        tensor; None where a run cannot put it."""
        item = after.items[path]
        while id(item.owner) not in self._owners and isinstance(item.owner, _CONTAINERS):
            above = path.removesuffix(f".{item.key}")
            if above == path or above not in after.items:
                return None
            path, item = above, after.items[above]
        if item.key is None or isinstance(item.owner, (tuple, set, frozenset)):
            return None
        is_new = path not in self._before.items and isinstance(item.owner, (list, deque))
        return None if is_new else path

    def _are_own(self, values: list[Any]) -> bool:
        """Whether these are tensors, constants and containers of Python's own classes, each of
        which the step has made and uses once: runs make them anew."""
        known = {id(one) for one, _ in (*self._before.contents, *self._before.outer)}
        while values:
            value = values.pop()
            if type(value) in (tuple, list, dict, OrderedDict) or is_named(value):
                if id(value) in known:
                    return False
                known.add(id(value))
                values.extend(value.values() if isinstance(value, dict) else value)
            elif not isinstance(value, Tensor) and not is_scalar(key_of(value)):
                return False
        return True

    def leave(self, values: Mapping[str, Any], root: Any, snapshot: Snapshot | None) -> None:
        """Leaves what a run has made; `snapshot` gets to know."""
        for path, value in values.items():
            for at, tensor in _tensors(path, value):
                tensor.__dict__.update(self._names.get(at, {}))
                if snapshot is not None:
                    tensor._watch()
                    snapshot.tensors[at] = tensor
            put(self.places[path], root, value, snapshot)

    def misplaced(self, items: Mapping[str, Item], root: Any) -> str | None:
        """The path of a place that is now another one, if there is one."""
        for path, place in self.places.items():
            item = items.get(path)
            if item is not None and not place.is_at(item.owner, item.key, root):
                return path
        return None

    def noted(self, root: Any) -> int:
        """How many changes that other graphs have to notice a run makes."""
        return sum(place.is_noted(root) for place in self.places.values())


def put(place: Place, root: Any, value: Any, snapshot: Snapshot | None) -> None:
    """Writes a value to a place, so that all graphs notice; `snapshot` gets to know."""
    place.write(root, value)
    if place.is_noted(root):
        note_change()
    elif snapshot is not None:
        snapshot.follow(place.owner(root), place.key, value)


def _value(owner: Any, key: Any, root: Any) -> Any:
    """What is at the place of an item, if it has one."""
    if key is None or isinstance(owner, (set, frozenset, bytearray)):
        return NOTHING
    return places.read(root if owner is None else owner, key)


def _aliased(after: Snapshot) -> Iterator[str]:
    """The paths of containers and objects that are found at other paths, too."""
    for item in after.items.values():
        if type(item.value) is Alias and item.key is not None:
            yield item.value.path


def _above(path: str) -> Iterator[str]:
    """The paths of what holds the item at a path."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _tensors(path: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors in what is left at a path, with their paths; in tuples alone, as other containers
    are looked into again before the next step."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _tensors(f"{path}.{index}", item)


def _names(tensor: Tensor) -> dict[str, Any]:
    return {name: tensor.__dict__[name] for name in _NAMES if name in tensor.__dict__}


def _is_steady(value: Any) -> bool:
    """Whether nothing in what is left can be replaced."""
    if isinstance(value, tuple):
        return all(map(_is_steady, value))
    return not isinstance(value, (list, dict))

"""What a step leaves in attributes: tensors that it has made or found, and containers of tensors
that it has made. Each run of its graph leaves its own."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.order import has_history
from ..tensor import Tensor
from ..tensor.keys import is_scalar, key_of
from . import places
from .effects import changes, flags_set, kind
from .items import Alias, Item
from .memory import Memory
from .places import NOTHING, Place, Slot
from .snapshot import Snapshot
from .state import note_change
from .trees import is_named

if TYPE_CHECKING:
    from .call import Call
    from .tracers import Tracers

_CONTAINERS = (tuple, list, dict)
#: The attributes of a tensor that tell where it is kept.
_NAMES = ("_name", "_default_name", "_path_name", "_is_member")


class Left(NamedTuple):
    """The result of a step, and what it leaves, by path."""

    result: Any
    values: dict[str, Any]


class Leaving:
    """Takes what a recorded step leaves out of the attributes, which then are as before."""

    def __init__(self, call: Call, before: Snapshot, given: Tracers, has_to: bool) -> None:
        """`given`: the arguments. If it does not `has_to`, what no run can leave is no obstacle,
        and stays."""
        self._has_to, self._carried = has_to, call.carried.keys()
        self._before, self._root, self._look = before, call.root, call.look
        items = before.items.items()
        self._old = {path: _value(item.owner, item.key, call.root) for path, item in items}
        known = (one for one, _ in (*before.contents, *before.outer))
        #: Containers that the step has not made.
        self._known, self._tensors = {*map(id, known), *map(id, given.containers)}, given.tensors
        self._owners = {id(item.owner) for item in before.items.values()} | self._known
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
        for path in flags_set(changed, self._before, after, self._carried):
            del changed[path]
        values = self._values(changed, after)
        self.paths = {path for path in changed if values.keys() & {path, *_above(path)}}
        for path, value in values.items():
            self._take(path, value, after.items[path])
        self.repeats = self._are_alike(after) and all(map(_is_steady, values.values()))
        del self._before, self._root, self._look, self._old
        del self._owners, self._known, self._tensors
        return values

    def _values(self, changed: Iterable[str], after: Snapshot) -> dict[str, Any]:
        """What the step leaves, by path in the order in which it is found; of what no run can
        leave nothing."""
        found = [path for path in changed if path in after.tensors]
        tops = {path: self._top(path, after) for path in found if not self._stays(path, after)}
        wanted = set(tops.values())
        items = {path: item for path, item in after.items.items() if path in wanted}
        values = {p: _value(item.owner, item.key, self._root) for p, item in items.items()}
        wrong = [path for path, top in tops.items() if top is None] + self._moved(after)
        wrong += [path for path, value in values.items() if not self._is_own(value)]
        wrong += self._early(values, after)
        wrong += [path for path in _aliased(after) if values.keys() & {path, *_above(path)}]
        if wrong and self._has_to:
            self.obstacle = f"the step sets attribute {min(wrong)} in a way that no replay repeats"
            return {}
        bad = set(wrong)
        around = bad.union(*map(_above, bad))
        fine = (p for p in values if p not in around and bad.isdisjoint(_above(p)))
        return {path: values[path] for path in fine}

    def _moved(self, after: Snapshot) -> list[str]:
        """The paths of dictionaries whose keys are in another order than they would be if the step
        had added the new ones to the others."""
        old, new = self._before.items, after.items
        both = [p for p in old if p.endswith(".keys") and p in new and old[p].owner is None]
        moved = (path for path in both if _is_moved(old[path].value, new[path].value))
        return [path.removesuffix(".keys") for path in moved]

    def _early(self, values: Mapping[str, Any], after: Snapshot) -> list[str]:
        """What the step has added to dictionaries before other items, after which runs would add
        it."""
        added: dict[int, list[str]] = {}
        found = []
        for path, item in after.items.items():
            if path in self._before.items or item.key is None or not isinstance(item.owner, dict):
                continue
            if path in values:
                added.setdefault(id(item.owner), []).append(path)
            else:
                found += added.pop(id(item.owner), [])
        return found

    def _stays(self, path: str, after: Snapshot) -> bool:
        """Whether a tensor shows all runs: a gradient, of which there is to be one at a time, and
        state that layers have made in this step alone."""
        item, tensor = after.items[path], after.tensors[path]
        is_gradient = isinstance(item.owner, Tensor) and item.key == "grad"
        return self._is_state(tensor) or is_gradient and path not in self._carried

    def _is_state(self, tensor: Tensor) -> bool:
        """Whether a tensor is new, and no operation of the step makes its value."""
        if self._has_to or tensor.is_recorded:
            return False
        return not any(x is tensor for x in (*self._before.tensors.values(), *self._tensors))

    def _take(self, path: str, value: Any, item: Item) -> None:
        """Gives a place what it had before the step."""
        place = self.places[path] = item.place
        place.write(self._root, self._old.get(path, NOTHING))
        self._names |= {at: _names(x) for at, x in _tensors(path, value)}

    def _are_alike(self, after: Snapshot) -> bool:
        """Whether the step leaves tensors and containers of the kinds that it has found; tensors
        with a history are cut off from it at the end of the recording."""
        old, new = self._before.items, after.items
        left = {path: after.tensors[path] for path in self.paths if path in after.tensors}
        cut = {f"{path}._is_cut" for path, tensor in left.items() if has_history(tensor)}
        alike = (p in new and kind(old.get(p)) == _kind_after(new[p]) for p in self.paths - cut)
        return cut <= old.keys() and all(alike)

    def _top(self, path: str, after: Snapshot) -> str | None:
        """The path of the outermost container that the step has made around a tensor, or of the
        tensor; None where a run cannot put it."""
        item = after.items[path]
        while id(item.owner) not in self._owners and isinstance(item.owner, _CONTAINERS):
            above = path.removesuffix(f".{item.key}")
            if above == path or above not in after.items:
                return None
            path, item = above, after.items[above]
        if type(item.key) is Slot:
            return path
        if item.key is None or isinstance(item.owner, (tuple, set, frozenset)):
            return None
        is_new = path not in self._before.items and isinstance(item.owner, (list, deque))
        return None if is_new else path

    def _is_own(self, value: Any) -> bool:
        """Whether this is a tensor, a constant, or a container of Python's own classes of such,
        each of which the step has made and uses once: runs make them anew."""
        known, values = set(self._known), [value]
        while values:
            value = values.pop()
            if type(value) in (tuple, list, dict, OrderedDict) or is_named(value):
                if id(value) in known or getattr(value, "__dict__", None):
                    return False
                known.add(id(value))
                values.extend(value.values() if isinstance(value, dict) else value)
            elif not isinstance(value, Tensor) and not is_scalar(key_of(value)):
                return False
        self._known = known
        return True

    @property
    def touched(self) -> set[str]:
        """The paths of what differs before the next step because of what this one leaves."""
        above = {one for path in self.paths for one in _above(path)}
        around = {f"{path}.keys" for path in above} | {f"{path}._is_cut" for path in self.paths}
        return self.paths | above | around

    @property
    def is_idle(self) -> bool:
        """Whether the step has left nothing, and nothing stood in the way."""
        return not self.places and self.obstacle is None

    def leave(self, values: Mapping[str, Any], root: Any, snapshot: Snapshot | None) -> None:
        """Leaves what a run has made; `snapshot` gets to know."""
        for path, value in values.items():
            for at, tensor in _tensors(path, value):
                tensor.__dict__.update(self._names.get(at, {}))
                if snapshot is not None:
                    tensor._watch()
                    snapshot.tensors[at] = tensor
            put(self.places[path], root, value, snapshot)

    def misplaced(self, now: Snapshot, root: Any) -> str | None:
        """The path of a place that is now another one, if there is one."""
        for path, place in self.places.items():
            item = now.items.get(path)
            if item is not None:
                is_there = place.is_at(item.owner, item.key, root)
            else:
                owner = place.owner(root)
                is_there = not place.is_item or now.path_of(owner) == path.rpartition(".")[0]
            if not is_there:
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
    if key is None:
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


def _kind_after(item: Item) -> str:
    """The kind of value that an item has once its tape has ended."""
    if type(item.value) is not Memory:
        return kind(item)
    shape, dtype, flags = item.value.meta
    meta = (shape, dtype, flags._replace(is_intermediate=False))
    return kind(Item(None, None, item.value._replace(meta=meta)))


def _is_moved(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether the keys that stay are not the first ones, in their order."""
    left = set(new)
    stayed = [key for key in old if key in left]
    return list(new[: len(stayed)]) != stayed


def _is_steady(value: Any) -> bool:
    """Whether nothing in what is left can be replaced."""
    if isinstance(value, tuple):
        return all(map(_is_steady, value))
    return not isinstance(value, (list, dict))

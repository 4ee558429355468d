"""What a step changes in the attributes of its model, and how to restore them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from ..autograd.mode import Nodes
from ..tensor import Tensor
from . import places
from .items import Item
from .looks import looks, restore
from .memory import Memory, changed, is_flagged, is_made, memory, text
from .places import Place
from .programs import is_program, module_of
from .snapshot import Snapshot
from .symbols import Expression, is_number
from .taps import Tapping
from .trees import leaves

if TYPE_CHECKING:
    from .call import Call

Change = tuple[Item | None, Item | None]


def changes(before: Snapshot, after: Snapshot) -> dict[str, Change]:
    """The attributes whose values differ, with their items before and after; of those outside, the
    ones that are set to tensors which the step makes."""
    old, new = before.items, after.items
    left_out = {path for path in before.outside | after.outside if not _is_made(new.get(path))}
    found: dict[str, Change] = {}
    for path, item in old.items():
        now = new.get(path)
        if (now is None or now.value != item.value) and path not in left_out:
            found[path] = (item, now)
    made = ((path, item) for path, item in new.items() if path not in old)
    found.update((path, (None, item)) for path, item in made if path not in left_out)
    return found


class Kept(NamedTuple):
    """An attribute that each step sets to a tensor that it makes. The tensor object stays the same
    and shows the latest run."""

    place: Place
    tensor: Tensor
    #: The kinds of what it may hold before the step, as the recordings found it.
    before: frozenset[str]

    @property
    def repeats(self) -> bool:
        """Whether a step may find what the one before it has set."""
        return kind(Item(None, None, memory(self.tensor))) in self.before

    def admits(self, item: Item, now: Tensor | None, root: Any) -> bool:
        """Whether a step that finds this in the attribute does what was recorded."""
        if now is self.tensor:
            return kind(item) in self.before
        can_set = not self.place.is_item and self.place.is_at(item.owner, item.key, root)
        return can_set and kind(item) in self.before


class Effects(NamedTuple):
    """What every step does to attributes."""

    #: Numbers, and what each step sets them to: an expression, or a number.
    numbers: dict[str, tuple[Place, Any]]
    kept: dict[str, Kept]
    #: What each step sets the `requires_grad` of tensors to.
    flags: dict[str, bool]

    @property
    def repeats(self) -> bool:
        """Whether a step leaves the tensors that it sets as another may find them."""
        return not self.flags and all(kept.repeats for kept in self.kept.values())

    def shown(self) -> list[str]:
        """The effects as text."""
        lines = [_sets(path, made) for path, (_, made) in self.numbers.items()]
        lines += [f"sets requires_grad of {path} to {flag}" for path, flag in self.flags.items()]
        return lines + [
            f"sets attribute {path} to a tensor of the latest run" for path in self.kept
        ]


def _sets(path: str, made: Any) -> str:
    if type(made) is Expression and made.operation is add and made.operands[0] == path:
        return f"increments attribute {path} by {made.operands[1]}"
    return f"sets attribute {path} to {made}"


def kind(item: Item | None) -> str:
    """The kind of value that an attribute had before a step, as far as a program can tell."""
    if item is None:
        return "nothing"
    return str(item.value.meta) if type(item.value) is Memory else text(item.value)


def effects(
    first: dict[str, Change],
    second: dict[str, Change],
    after: Snapshot,
    numbers: Mapping[str, tuple[Place, Any]],
    flags: Mapping[str, bool],
) -> Effects | str:
    """What two recordings changed alike; or, as text, an attribute that they did not.

    Args:
        first, second: the changes of each.
        after: the attributes after the second.
        numbers: the symbolic numbers that the second has set, and to what.
        flags: the `requires_grad` that both have set.
    """
    found = Effects(dict(numbers), {}, {})
    for path, (old, new) in second.items():
        before = first.get(path, (None, None))
        if path in numbers:
            continue
        if path in flags:
            found.flags[path] = flags[path]
            continue
        if _is_made(new) and _is_made(before[1]):
            kinds = frozenset({kind(old), kind(before[0])})
            found.kept[path] = Kept(new.place, after.tensors[path], kinds)
        else:
            return f"attribute {path}, which the step {_said(old, new)}"
    return found


def flags_set(
    changes: Mapping[str, Change], before: Snapshot, after: Snapshot, but: Collection[str]
) -> dict[str, bool]:
    """The `requires_grad` that a step sets on tensors of which it changes nothing else, `but` on
    some, by path."""
    found = {path: x for path, x in after.tensors.items() if path in changes and path not in but}
    return {
        path: x.requires_grad
        for path, x in found.items()
        if before.tensors.get(path) is x
        and is_flagged(before.items[path].value, after.items[path].value)
    }


def moving(changed: Mapping[str, Change], before: Snapshot, now: Snapshot) -> set[str]:
    """The numbers that the program changes from call to call: those that a step has changed, and
    those that two calls found different, except in objects of this package."""
    old, new = before.items, now.items
    differ = {
        path: (old.get(path), item) for path, item in new.items() if _differs(path, old, item)
    }
    return {path for path, change in {**differ, **changed}.items() if all(map(is_number, change))}


def _differs(path: str, old: Mapping[str, Item], item: Item) -> bool:
    owner = type(item.owner)
    is_ours = hasattr(owner, "_watched") and not is_program(module_of(owner))
    return path in old and old[path].value != item.value and not is_ours


def _is_made(item: Item | None) -> bool:
    return item is not None and is_made(item.value)


def _said(old: Item | None, new: Item | None) -> str:
    if old is None or new is None:
        return f"made {text(new.value)}" if new is not None else "removed"
    return changed(old.value, new.value)


def _of_item(item: Item) -> tuple[Any, Any, Any]:
    return item.owner, item.key, places.read(item.owner, item.key)


def _is_without_value(value: Any) -> bool:
    """Whether it is or holds a tensor that is only recorded."""
    return any(isinstance(x, Tensor) and is_made(memory(x)) for x in leaves(value))


def _drop_unmade(container: Any, before: Any) -> None:
    """Removes tensors that are only recorded and were added to a container."""
    if isinstance(container, dict):
        for key in [key for key in dict.keys(container) if key not in before]:
            if _is_without_value(places.read(container, key)):
                places.write(container, key, places.NOTHING)
    elif isinstance(container, (list, deque)):
        while len(container) > len(before) and _is_without_value(places.read(container, -1)):
            places.write(container, -1, places.NOTHING)


def _empty(cache: Any, added: int) -> None:
    """Empties a function's cache if anything was added to it."""
    if cache.cache_info().misses != added:
        cache.cache_clear()


def _reclass(value: Any, kind: type) -> None:
    """Makes an object one of a class again, where the step has changed that."""
    if type(value) is not kind:
        object.__setattr__(value, "__class__", kind)


def _write_back(owner: Any, key: Any, value: Any) -> None:
    now = places.read(owner, key)
    is_item = isinstance(owner, (list, deque, bytearray)) and type(key) is not places.Slot
    is_shorter = is_item and now is places.NOTHING
    if now is not value and not is_shorter:
        places.write(owner, key, value)


class Undo:
    """Restores what a recorded call may change to what it was when this object was made: the
    attributes of the model and of what it holds, those of tensors, the tape, the taps' values, and
    the generator of initial values."""

    def __init__(self, call: Call, before: Snapshot) -> None:
        #: What the recording notes: changes to existing tensors, nodes of the tape, taps.
        self.journal, self.nodes = _core.Journal(), Nodes()
        self.tapping = Tapping()
        objects = [call.root, *(one for _, one in before.objects)]
        self._restore = [one._remember() for one in objects]
        kinds = [one[::2] for one in before.fixtures if one[1] == "__class__"]
        self._kinds = [*kinds, *((one, type(one)) for one in objects)]
        self._contents, self._outer, self._caches = before.contents, before.outer, before.caches
        items = [before.items[path] for path in before.outside]
        # Layers and the like restore their own.
        items = [one for one in items if not hasattr(type(one.owner), "_remember")]
        numbers = [_of_item(one) for one in items if is_number(one)]
        self._places = before.places + numbers
        # What belongs to tensors is in the journal.
        apart = (one for one in items if one.key is not None and not isinstance(one.owner, Tensor))
        self._outside = list(map(_of_item, apart))
        self._arrays = before.elements
        self._arguments = [(x, dict(x.__dict__)) for x in call.tensors]
        self._generator = _core.random_state(call.device, "init")
        self._drawn = self._generator.to_numpy()

    def __call__(self, keep_state: bool = False, runs_again: bool = False) -> None:
        """Undoes everything; with `keep_state`, all but the creation of parameters and moments.
        What a step has replaced outside of the model by other than numbers is put back only if it
        `runs_again`, or if it is a tensor that has no value; such tensors are taken out of what was
        added there, and caches of functions are emptied. Where something cannot be undone, all
        else is."""
        with ExitStack() as later:  # calls in reverse order, whatever errors there are
            later.callback(self._restore_arrays)
            if not keep_state:
                later.callback(self._draw_again)
            later.callback(self.journal.undo, keep_state)
            later.callback(self.nodes.undo)
            later.callback(self.tapping.restore)
            for x, attributes in self._arguments:
                later.callback(places.refill, x.__dict__, attributes)
            outside = self._outside
            if not runs_again:
                outside = [one for one in outside if _is_without_value(places.read(*one[:2]))]
            for place in reversed(self._places + outside):
                later.callback(_write_back, *place)
            for container, copy in self._outer:
                later.callback(_drop_unmade, container, copy)
            for cache, added in self._caches:
                later.callback(_empty, cache, added)
            for container, copy in reversed(self._contents):
                later.callback(places.refill, container, copy)
            for restore in reversed(self._restore):
                later.callback(restore, keep_state)
            for one, kind in self._kinds:  # first, as it decides on attributes
                later.callback(_reclass, one, kind)

    def _restore_arrays(self) -> None:
        for array, elements in self._arrays:
            if looks(array)[-1] != elements:
                restore(array, elements)

    def _draw_again(self) -> None:
        """Rewinds the generator, so that initial values that are made again are the same."""
        key, position = self._generator.to_numpy()
        if key == self._drawn[0] and position != self._drawn[1]:
            self._generator.copy_from_numpy(self._drawn)

    def forget(self) -> None:
        """Keeps all changes: nothing can be undone afterwards."""
        self.tapping.forget()
        self.journal.forget()
        self.nodes.forget()

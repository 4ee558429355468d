"""Which attributes of objects the code of a step may read, judged by their names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import BuiltinMethodType, CellType, FunctionType, MethodType, MethodWrapperType
from typing import Any

from ..tensor import Tensor
from .names import is_special, names_of
from .programs import is_read
from .snapshot import Alias, Item, Snapshot

#: What reads attributes by names that code does not spell out.
_DYNAMIC = frozenset(
    "getattr hasattr vars eval exec dir attrgetter asdict astuple fields __dict__ __getattribute__ "
    "__match_args__".split()
)
#: What is read as a whole, not by names.
_WHOLE = (
    *(list, tuple, dict, deque, set, frozenset, bytearray, Tensor, ContextVar, partial),
    *(BuiltinMethodType, FunctionType, MethodType, MethodWrapperType),
)


class Reads:
    """The items that the code of a step may read: of attributes, globals and free variables those
    that it names, and what they hold."""

    def __init__(self, step: Any, snapshot: Snapshot, items: Mapping[str, Item]) -> None:
        """`step`: the function; `items`: those of the snapshot, and others."""
        self._items = items
        called = {getattr(step, "__name__", "")}.union(*map(_known_to_libraries, snapshot.kinds))
        self._names = _names(snapshot.functions, called)
        self._all = not _DYNAMIC.isdisjoint(self._names)
        #: The other paths of objects.
        self._others: dict[str, list[str]] = {}
        for path, item in items.items():
            if type(item.value) is Alias:
                self._others.setdefault(item.value.path, []).append(path)

    def __contains__(self, path: str) -> bool:
        seen, pending = set[str](), [path]
        while pending and not self._all:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            pending += self._others.get(path, ())
            item = self._items.get(path)
            if item is not None and (name := _name(path, item)) is not None:
                if name in self._names:
                    return True
            elif above := path.rpartition(".")[0]:
                pending.append(above)
            else:
                return True
        return self._all


def _name(path: str, item: Item) -> str | None:
    """The name by which code reads an item; None if not the program's code reads it, or the item
    has none."""
    kind = type(item.owner)
    if kind is CellType:
        return path.rpartition(".")[2].rstrip("'")
    if path.rstrip("'") == f"global {item.key}":
        return item.key
    if item.owner is None or isinstance(item.owner, _WHOLE) or hasattr(kind, "_watched"):
        return None
    is_ours = kind.__module__.startswith("singa_rs.")
    return None if is_ours else item.key


def _names(functions: Sequence[FunctionType], called: Iterable[str]) -> set[str]:
    """The names in all functions that may be called: methods are if something names them, or if
    they are among those `called`."""
    found, waiting, count = set(called), list(functions), -1
    while len(waiting) != count:
        count, left = len(waiting), []
        for one in waiting:
            name = one.__name__
            if _is_method(one) and name not in found and not is_special(name):
                left.append(one)
            elif is_read(one.__globals__.get("__name__")):
                found |= names_of(one.__code__).read
        waiting = left
    return found


def _is_method(function: FunctionType) -> bool:
    """Whether a function was defined in a class."""
    return "." in function.__qualname__.rpartition("<locals>.")[2]


def _known_to_libraries(kind: type) -> set[str]:
    """The methods of a class of the program that override those of a library's class."""
    bases: list[Any] = [one for one in kind.__mro__ if not is_read(one.__module__)]
    return {name for base in bases for name in vars(base)} & vars(kind).keys()

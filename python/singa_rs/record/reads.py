"""Which attributes of objects the code of a step may read, judged by their names."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodType,
    MethodWrapperType,
)

from ..tensor import Tensor
from ..tensor.keys import Same
from .free_variables import calls_unread
from .items import Alias, Item
from .names import names_of
from .programs import is_read, module_of
from .snapshot import Snapshot

#: What reads attributes by names that code does not spell out, or all of them.
_DYNAMIC = frozenset(
    "getattr hasattr vars eval exec dir attrgetter methodcaller asdict astuple fields str repr "
    "format format_map print pprint pformat deepcopy dumps __dict__ __getattribute__ "
    "__match_args__ __getstate__ __reduce__ __reduce_ex__ getmembers getmembers_static "
    "getattr_static".split()
)
#: The classes of objects that do.
_GETTERS = frozenset({"attrgetter", "methodcaller", "member_descriptor"})
#: Those of functions, and of classes, that do by their names.
_KINDS = frozenset("builtin_function_or_method function method-wrapper type".split())
_KINDS |= {"wrapper_descriptor", "method_descriptor"}
#: What is read as a whole, not by names.
_WHOLE = (
    *(list, tuple, dict, deque, set, frozenset, bytearray, Tensor, ContextVar, partial),
    *(BuiltinMethodType, FunctionType, MethodType, MethodWrapperType),
)


class Reads:
    """The items that the code of a step may read: of attributes, globals and free variables those
    that it names, and what they hold."""

    def __init__(self, snapshot: Snapshot, items: Mapping[str, Item]) -> None:
        """`items`: those of the snapshot, and others."""
        self._items = items
        codes = [names_of(one.__code__) for one in snapshot.functions]
        self._names = frozenset().union(*(names.read for names in codes))
        values = (item.value for item in items.values())
        self._all = (
            not _DYNAMIC.isdisjoint(self._names)
            or any(map(calls_unread, snapshot.functions))
            or any(type(value) is Same and _is_dynamic(value) for value in values)
        )
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


def _is_dynamic(value: Same) -> bool:
    """Whether it is what reads attributes by names that code does not spell out, by any name."""
    is_function = value.kind in _KINDS and getattr(value.get(), "__name__", None) in _DYNAMIC
    return is_function or value.kind in _GETTERS


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
    # What libraries' objects hold is read by code that is not looked into.
    is_plain = isinstance(item.owner, type) or all(
        is_read(module_of(one)) for one in kind.__mro__ if one is not object
    )
    return item.key if is_plain else None

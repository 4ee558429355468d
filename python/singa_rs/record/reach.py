"""What the code of a program reads besides attributes: globals, closures, defaults, classes."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from .._plain import Settings
from ..autograd.tape import Operator
from .places import NOTHING, in_slots, own_attributes, read
from .taps import Probe, Tap

#: Modules whose functions are not looked into, nor objects, but for those of `_PLAIN` and ours.
_LIBRARIES = frozenset({"singa_rs", "numpy", *sys.stdlib_module_names}) - {"__main__"}
#: Classes of Python's library whose objects are nothing but what a program puts into them.
_PLAIN = frozenset(
    {
        ("argparse", "Namespace"),
        ("collections", "ChainMap"),
        ("collections", "UserDict"),
        ("collections", "UserList"),
        ("collections", "UserString"),
        ("types", "SimpleNamespace"),
    }
)
_CLOSED = (type, ModuleType, Enum, cached_property, Settings, Probe, Tap)


class Read(NamedTuple):
    """What a program may read, where it is kept, and by what name."""

    name: str
    owner: Any
    key: Any
    value: Any
    #: Whether it changes without a note, and is in no container that is looked at.
    is_silent: bool = False


@cache
def is_program(module: Any) -> bool:
    """Whether a module is the user's program, and no library that this package knows."""
    return isinstance(module, str) and module.partition(".")[0] not in _LIBRARIES


def is_open(value: Any) -> bool:
    """Whether what an object holds is looked at, too."""
    kind = type(value)
    if kind in (FunctionType, MethodType, partial):
        return True
    if isinstance(value, _CLOSED):
        return False
    module = kind.__module__
    own = isinstance(module, str) and module.startswith("singa_rs.")
    return own or is_program(module) or (module, kind.__name__) in _PLAIN


def inside(value: Any) -> Iterator[Read]:
    """What an object holds."""
    if isinstance(value, MethodType):
        yield Read("__self__", value, "__self__", value.__self__)
        yield Read("__func__", value, "__func__", value.__func__)
    elif isinstance(value, partial):
        for name in ("func", "args", "keywords"):
            yield Read(name, value, name, getattr(value, name))
    for name, one in in_slots(value):
        yield Read(name, value, name, one, is_silent=True)
    if isinstance(value, Operator):  # the tape keeps notes in it
        for name, one in value.settings():
            yield Read(name, value, name, one, is_silent=True)
        return
    for name, one in list(own_attributes(value).items()):
        if name != "__wrapped__":
            yield Read(name, value, name, one)


def outside(value: Any) -> Iterator[Read]:
    """What a function reads besides its arguments."""
    if not isinstance(value, FunctionType) or not is_program(value.__module__):
        return
    for key in ("__code__", "__defaults__", "__kwdefaults__"):
        if (held := getattr(value, key)) is not None:
            yield Read(key, value, key, held)
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        if (held := read(cell, "cell_contents")) is not NOTHING and name != "__class__":
            yield Read(name, cell, "cell_contents", held, is_silent=True)
    yield from _globals(value)


def _globals(function: FunctionType) -> Iterator[Read]:
    """The globals that a function reads, also those of modules and classes of the program."""
    known, (names, attributes) = function.__globals__, _names(function.__code__)
    for name in names:
        value = known.get(name, NOTHING)
        if isinstance(value, ModuleType):
            if is_program(value.__name__):
                yield from _in_namespace(name, vars(value), vars(value), attributes)
        elif isinstance(value, type):
            if is_program(value.__module__):
                for cls in value.__mro__[:-1]:
                    yield from _in_namespace(name, value, vars(cls), attributes)
        elif _is_data(value):
            yield Read(f"global {name}", known, name, value, is_silent=True)


def _in_namespace(path: str, owner: Any, held: Any, names: frozenset[str]) -> Iterator[Read]:
    for name in sorted(names & held.keys()):
        value = held[name]
        if not isinstance(value, ModuleType | type) and _is_data(value):
            yield Read(f"global {path}.{name}", owner, name, value, is_silent=True)


def _is_data(value: Any) -> bool:
    """Whether a value is to be looked at: nothing of a library, and not what only makes one."""
    if value is NOTHING or isinstance(value, (property, staticmethod, classmethod)):
        return False
    return not isinstance(value, _FUNCTIONS) or is_program(value.__module__)


_FUNCTIONS = (FunctionType, type(len), type(list.append), type(object.__init__))

_known_names: WeakKeyDictionary[CodeType, tuple[frozenset[str], frozenset[str]]] = (
    WeakKeyDictionary()
)


def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names of globals, and of attributes, in a piece of code and in what it defines."""
    found = _known_names.get(code)
    if found is None:
        of_globals = {i.argval for i in dis.get_instructions(code) if i.opname in _GLOBAL}
        inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
        found = (
            frozenset(of_globals).union(*(names for names, _ in inner)),
            frozenset(code.co_names).union(*(names for _, names in inner)),
        )
        _known_names[code] = found
    return found


_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


def classes(kind: type) -> Iterator[type]:
    """The classes of the program among those of an object."""
    return (cls for cls in kind.__mro__ if is_program(cls.__module__))


def in_class(cls: type) -> Iterator[Read]:
    """The attributes of a class, and the functions that are its methods."""
    for name, value in list(vars(cls).items()):
        if name in _NO_DATA:
            continue
        if (function := _function(value)) is not None:
            yield Read(name, cls, name, function)
        elif _is_own_data(name, value):
            yield Read(name, cls, name, value, is_silent=not hasattr(cls, "_watched"))


def _is_own_data(name: str, value: Any) -> bool:
    """Whether an attribute of a class is the program's, and the same for all its objects."""
    is_pythons = name.startswith("__") and name.endswith("__")
    return not (is_pythons or isinstance(value, type) or hasattr(type(value), "__set__"))


#: What layers note in classes, and what no step calls.
_NO_DATA = frozenset({"__init__", "_slots"})


def _function(value: Any) -> FunctionType | None:
    """The program's function behind a method, a property or a wrapper."""
    found: Callable[..., Any] | None = value
    if isinstance(value, (staticmethod, classmethod)):
        found = value.__func__
    elif isinstance(value, property):
        found = value.fget
    elif isinstance(value, cached_property):
        found = value.func
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found if isinstance(found, FunctionType) else None

"""What the code of a program reads besides attributes: globals, closures, defaults, classes."""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Iterator, Mapping
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
        if name != "__wrapped__" or isinstance(one, FunctionType):
            yield Read(name, value, name, one)


def outside(value: Any) -> Iterator[Read]:
    """What a function reads besides its arguments."""
    if not isinstance(value, FunctionType):
        return
    if not is_program(value.__globals__.get("__name__")):
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
    known, names = function.__globals__, _names(function.__code__)
    for name in names.of_globals:
        value = known.get(name, NOTHING)
        if isinstance(value, ModuleType | type):
            yield from _in_space(name, value, names.of_attributes)
        elif _is_data(value) or value is NOTHING and not hasattr(builtins, name):
            yield Read(f"global {name}", known, name, value, is_silent=True)
    for name in names.of_modules:
        if (module := sys.modules.get(name)) is not None:
            yield from _in_space(name, module, names.of_attributes)


#: How many modules and classes within each other are looked into.
_DEEPEST = 4


def _in_space(
    path: str, space: ModuleType | type, names: frozenset[str], depth: int = _DEEPEST
) -> Iterator[Read]:
    """What code reads of a module or class of the program, by these names."""
    is_class = isinstance(space, type)
    if depth == 0 or not is_program(space.__module__ if is_class else space.__name__):
        return
    spaces, owner = ([vars(space)], vars(space))
    if is_class:
        spaces, owner = [vars(cls) for cls in space.__mro__[:-1]], space
        names = names.union(*map(_special, spaces))
    for held in spaces:
        for name in sorted(names & held.keys()):
            value, to = held[name], f"{path}.{name}"
            if isinstance(value, ModuleType | type):
                yield from _in_space(to, value, names, depth - 1)
            elif isinstance(value, (staticmethod, classmethod)):
                yield Read(f"global {to}", owner, name, value.__func__)
            elif _is_data(value):
                yield Read(f"global {to}", owner, name, value, is_silent=True)


def _special(held: Mapping[str, Any]) -> set[str]:
    """The names of the methods that Python itself looks up."""
    of_code = {name for name, one in held.items() if isinstance(one, FunctionType)}
    return {name for name in of_code if name.startswith("__") and name.endswith("__")}


def _is_data(value: Any) -> bool:
    """Whether a value is to be looked at: nothing of a library, and not what only makes one."""
    if value is NOTHING or isinstance(value, (property, staticmethod, classmethod)):
        return False
    while isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):
        value = wrapped
    return not isinstance(value, _FUNCTIONS) or is_program(getattr(value, "__module__", None))


_FUNCTIONS = (FunctionType, type(len), type(list.append), type(object.__init__))


class Names(NamedTuple):
    """The names in a piece of code and in what it defines."""

    of_globals: frozenset[str]
    of_attributes: frozenset[str]
    #: Modules that it imports.
    of_modules: frozenset[str]
    #: Holds something where it asks which object something is.
    identities: frozenset[str]


_known_names: WeakKeyDictionary[CodeType, Names] = WeakKeyDictionary()


def _names(code: CodeType) -> Names:
    found = _known_names.get(code)
    if found is None:
        read: dict[str, set[str]] = {"LOAD_GLOBAL": set(), "LOAD_NAME": set(), "IMPORT_NAME": set()}
        for instruction in dis.get_instructions(code):
            if instruction.opname in read:
                read[instruction.opname].add(instruction.argval)
        of_globals = read["LOAD_GLOBAL"] | read["LOAD_NAME"]
        asks = {"is"} if "id" in of_globals or _compares(code) else set()
        own = (of_globals, code.co_names, read["IMPORT_NAME"], asks)
        inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
        found = Names(*(frozenset().union(*both) for both in zip(own, *inner, strict=True)))
        _known_names[code] = found
    return found


def _compares(code: CodeType) -> bool:
    """Whether code asks `is` of more than constants."""
    steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    pairs = zip(steps, steps[1:], strict=False)
    return any(i.opname == "IS_OP" and before.opname != "LOAD_CONST" for before, i in pairs)


def asks_identity(value: Any) -> bool:
    """Whether a function may ask whether two tensors are one object."""
    return isinstance(value, FunctionType) and bool(_names(value.__code__).identities)


def classes(kind: type) -> Iterator[type]:
    """The classes of the program among those of an object."""
    return (cls for cls in kind.__mro__ if is_program(cls.__module__))


def in_module(module: ModuleType) -> Iterator[Read]:
    """The data in a module of the program."""
    if is_program(module.__name__):
        for name, value in list(vars(module).items()):
            is_other = isinstance(value, (ModuleType, type, *_FUNCTIONS))
            if not is_other and not (name.startswith("__") and name.endswith("__")):
                yield Read(name, vars(module), name, value, is_silent=True)


def in_class(cls: type) -> Iterator[Read]:
    """The attributes of a class, and the functions that are its methods."""
    for name, value in list(vars(cls).items()):
        if name in _NO_DATA:
            continue
        if functions := list(_functions(value)):
            for n, function in enumerate(functions):
                yield Read(name if n == 0 else f"{name}.(wrapped)", cls, name, function)
        elif _is_own_data(name, value):
            yield Read(name, cls, name, value, is_silent=not hasattr(cls, "_watched"))


def _is_own_data(name: str, value: Any) -> bool:
    """Whether an attribute of a class is the program's, and the same for all its objects."""
    is_pythons = name.startswith("__") and name.endswith("__")
    return not (is_pythons or isinstance(value, type) or hasattr(type(value), "__set__"))


#: What layers note in classes, and what no step calls.
_NO_DATA = frozenset({"__init__", "_slots"})


def _functions(value: Any) -> Iterator[FunctionType]:
    """The function behind a method or a property, and those of the program that wrap it."""
    found: Callable[..., Any] | None = value
    if isinstance(value, (staticmethod, classmethod)):
        found = value.__func__
    elif isinstance(value, property):
        found = value.fget
    elif isinstance(value, cached_property):
        found = value.func
    while hasattr(found, "__wrapped__"):
        if isinstance(found, FunctionType) and is_program(found.__globals__.get("__name__")):
            yield found
        found = found.__wrapped__
    if isinstance(found, FunctionType):
        yield found

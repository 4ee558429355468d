"""What the code of a program reads besides attributes: globals, closures, defaults, classes."""

from __future__ import annotations

import builtins
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from types import (
    BuiltinMethodType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple
from weakref import ProxyTypes, ReferenceType, WeakSet

from .. import _core
from ..autograd.tape import Operator
from ..notices import is_ours
from ..tensor.keys import EXACT, Settings
from .looks import LONGEST
from .names import is_special, names_of
from .places import CONTAINERS, NOTHING, in_slots, notes_changes, own_attributes, read
from .programs import is_program, is_read, module_of
from .taps import Probe, Tap
from .unseen import is_cache, kept_by

#: Classes of the standard library whose objects hold only what a program puts into them.
_PLAIN = frozenset(
    {
        ("_thread", "_local"),
        ("_weakrefset", "WeakSet"),
        ("argparse", "Namespace"),
        ("collections", "ChainMap"),
        ("collections", "UserDict"),
        ("collections", "UserList"),
        ("collections", "UserString"),
        ("functools", "partialmethod"),
        ("functools", "singledispatchmethod"),
        ("numpy", "vectorize"),
        ("types", "SimpleNamespace"),
        ("weakref", "WeakKeyDictionary"),
        ("weakref", "WeakValueDictionary"),
    }
)
_FUNCTIONS = (FunctionType, type(len), type(list.append), type(object.__init__))
#: What no step calls, and what layers and Python note in classes.
_NO_DATA = frozenset({"__init__", "_slots", "_abc_impl"})
#: The name of what a weak reference refers to.
REFERENT = "()"
_CLOSED = (type, ModuleType, cached_property, Settings, Probe, Tap)
#: What shows another object's contents.
_VIEWS = (MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))


class Read(NamedTuple):
    """What a program may read, where it is kept, and by what name."""

    name: str
    owner: Any
    key: Any
    value: Any
    #: Whether it changes without being noted, and is in no container that is compared.
    is_silent: bool = False
    #: Whether only which object it is is compared.
    is_opaque: bool = False


def is_open(value: Any) -> bool:
    """Whether what an object holds is inspected, too."""
    kind = type(value)
    if kind is FunctionType:
        return _is_data(value)
    if is_cache(value):
        return _is_data(getattr(value, "__wrapped__", NOTHING))
    if kind in (MethodType, partial, memoryview, *_VIEWS) or _is_bound(value):
        return True
    if isinstance(value, ReferenceType):
        return True
    if isinstance(value, _CLOSED):
        return False
    module = module_of(kind)
    return is_ours(module) or is_program(module) or (module, kind.__name__) in _PLAIN


def is_open_key(key: Any) -> bool:
    """Whether what a key of a dictionary holds is inspected: no tensor or layer."""
    kind = type(key)
    is_other = kind in EXACT or issubclass(kind, _core.Handle) or hasattr(kind, "_watched")
    return not is_other and is_open(key)


def inside(value: Any) -> Iterator[Read]:
    """What an object holds."""
    if isinstance(value, MethodType):
        yield Read("__self__", value, "__self__", value.__self__)
        yield Read("__func__", value, "__func__", value.__func__)
    elif _is_bound(value):
        yield Read("__self__", value, "__self__", value.__self__)
    elif isinstance(value, partial):
        for name in ("func", "args", "keywords"):
            yield Read(name, value, name, getattr(value, name))
    elif isinstance(value, _VIEWS):
        yield Read("mapping", None, None, *gc.get_referents(value))
    elif isinstance(value, memoryview):
        yield Read("obj", None, None, value.obj)
    elif isinstance(value, BaseException):
        yield Read("args", value, "args", value.args, is_silent=True)
    for name, one in in_slots(value):
        yield Read(name, value, name, one, is_silent=True)
    if isinstance(value, Operator):  # its other attributes are the tape's
        for name, one in value.settings():
            yield Read(name, value, name, one, is_silent=True)
        return
    attributes = own_attributes(value)
    owner = attributes if isinstance(value, CONTAINERS) else value
    is_own = is_ours(type(value).__module__)
    for name, one in list(attributes.items()):
        if is_own and issubclass(type(one), (ReferenceType, WeakSet)):  # what uses such an object
            continue
        if name != "__wrapped__" or isinstance(one, FunctionType):
            yield Read(name, owner, name, one)


def outside(value: Any) -> Iterator[Read]:
    """What a function reads besides its arguments, or what a weak reference refers to."""
    if type(value) in ProxyTypes:
        with suppress(ReferenceError):
            yield Read(REFERENT, None, None, value.__sizeof__.__self__)
        return
    if isinstance(value, ReferenceType):
        yield Read(REFERENT, None, None, value())
    if is_cache(value) and len(held := kept_by(value)) <= LONGEST:
        for one in held:
            if is_open(one) or isinstance(one, CONTAINERS):
                yield Read(REFERENT, None, None, one)
    if not isinstance(value, FunctionType):
        return
    if not is_read(value.__globals__.get("__name__")):
        return
    for key in ("__code__", "__defaults__", "__kwdefaults__"):
        if (held := getattr(value, key)) is not None:
            yield Read(key, value, key, held)
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        if (held := read(cell, "cell_contents")) is not NOTHING and name != "__class__":
            is_opaque = isinstance(held, type) and name not in names_of(value.__code__).valued
            yield Read(name, cell, "cell_contents", held, True, is_opaque)
    yield from _globals(value)


def _globals(function: FunctionType) -> Iterator[Read]:
    """The globals that a function reads, including those of the program's modules and classes."""
    known, names, seen = function.__globals__, names_of(function.__code__), set[int]()
    for name in names.of_globals:
        value, owner = known.get(name, NOTHING), known
        if value is NOTHING and hasattr(builtins, name):
            value, owner = getattr(builtins, name), vars(builtins)
            if _is_of_library(value):
                continue
            yield Read(f"global {name}", known, name, NOTHING, is_silent=True)
        if _is_space(value) and (name in names.valued or isinstance(value, ModuleType)):
            yield from _in_space(name, value, names.of_attributes, seen)
        is_class = isinstance(value, type) and name in names.valued
        is_opaque = value is not NOTHING and not is_class and not _is_data(value)
        yield Read(f"global {name}", owner, name, value, is_silent=True, is_opaque=is_opaque)
    for name in map(partial(_absolute, known.get("__package__")), names.of_modules):
        module = sys.modules.get(name, NOTHING)
        if isinstance(module, ModuleType):
            yield from _in_space(name, module, names.of_attributes, seen)
        elif _is_data(module):
            yield Read(f"global {name}", sys.modules, name, module, is_silent=True)


def _is_of_library(value: Any) -> bool:
    """Whether it is a function or class, and not the program's."""
    is_one = isinstance(value, (type, *_FUNCTIONS))
    return is_one and not is_program(getattr(value, "__module__", None))


def _absolute(package: Any, name: str) -> str:
    """The absolute name of a module; leading dots are relative to the package."""
    if not name.startswith(".") or not isinstance(package, str):
        return name
    dots = len(name) - len(name.lstrip("."))
    outer = package.rsplit(".", dots - 1)[0]
    return f"{outer}.{name[dots:]}".rstrip(".")


def _in_space(
    path: str, space: ModuleType | type, names: frozenset[str], seen: set[int]
) -> Iterator[Read]:
    """What code reads from a module or class of the program by these names, skipping spaces that
    were seen."""
    if id(space) in seen:
        return
    seen.add(id(space))
    if isinstance(space, ModuleType):
        owners = [vars(space)] if is_read(space.__name__) else []
    else:
        owners = list(classes(space))
        names |= _names_of_methods(owners, names)
    for owner in owners:
        held = owner if isinstance(owner, dict) else vars(owner)
        of_python = _special(held)
        for name in sorted((names | of_python) & held.keys()):
            value, to = held[name], f"{path}.{name}"
            if _is_space(value):
                yield from _in_space(to, value, names, seen)
            is_static = isinstance(value, staticmethod)
            if is_static or isinstance(value, classmethod):
                value = value.__func__
            if not isinstance(value, property):
                is_silent = is_static or _is_found(value, owner)
                is_opaque = not isinstance(value, type) and not _is_data(value)
                yield Read(f"global {to}", owner, name, value, is_silent, is_opaque)


def _names_of_methods(kinds: Sequence[type], names: frozenset[str]) -> frozenset[str]:
    """The names in the methods of classes that code with these names may call."""
    known, count = set(names), -1
    while len(known) != count:
        count = len(known)
        for kind in kinds:
            for name in known & vars(kind).keys():
                for function in _functions(vars(kind)[name]):
                    known |= names_of(function.__code__).of_attributes
    return frozenset(known)


def _is_found(value: Any, owner: Any) -> bool:
    """Whether a lookup in the owner returns the value itself."""
    is_made = isinstance(owner, type) and hasattr(type(value), "__get__")
    return isinstance(value, FunctionType) or not is_made


def _special(held: Mapping[str, Any]) -> set[str]:
    """The names of the methods that Python itself looks up."""
    return {n for n, one in held.items() if isinstance(one, FunctionType) and is_special(n)}


def _is_data(value: Any) -> bool:
    """Whether a value is to be inspected: no module or class, no library's function and no
    descriptor."""
    if type(value) in ProxyTypes:
        return True
    is_descriptor = isinstance(value, (property, staticmethod, classmethod))
    if value is NOTHING or is_descriptor or _is_space(value):
        return False
    if _is_bound(value):
        return True
    if isinstance(value, FunctionType):
        if is_read(value.__globals__.get("__name__")):
            return True
        if "__wrapped__" in value.__dict__:
            return _is_data(value.__wrapped__)
    return not isinstance(value, _FUNCTIONS) or is_read(getattr(value, "__module__", None))


def _is_bound(value: Any) -> bool:
    """Whether a value is the method of an object that is implemented in C."""
    if type(value) not in (BuiltinMethodType, MethodWrapperType):
        return False
    return not isinstance(value.__self__, (ModuleType, type, type(None)))


def asks_identity(function: Any) -> bool:
    """Whether a function may compare tensors by identity."""
    if not isinstance(function, FunctionType) or _is_generated(function):
        return False
    known = function.__globals__
    if not is_read(known.get("__name__")):
        return False
    return any(
        _may_be_tensor(known, *name.split(".")) for name in names_of(function.__code__).compared
    )


def calls_unread(function: FunctionType) -> bool:
    """Whether a function names a module, function or class whose code is not looked into, of a
    package that is neither Python's, NumPy nor this one."""
    known = function.__globals__
    for name in names_of(function.__code__).of_globals:
        value = known.get(name)
        is_module = isinstance(value, ModuleType)
        if is_module or isinstance(value, (type, *_FUNCTIONS)):
            one = getattr(value, "__objclass__", value)  # of methods in C, the class
            module = value.__name__ if is_module else getattr(one, "__module__", None)
            if is_program(module) and not is_read(module):
                return True
    return False


def _is_generated(function: FunctionType) -> bool:
    """Whether the standard library generated a function, as it does for data classes."""
    return is_special(function.__name__) and function.__code__.co_filename == "<string>"


def _may_be_tensor(known: dict[str, Any], name: str, attribute: str | None = None) -> bool:
    value = known.get(name, getattr(builtins, name, NOTHING))
    if name != "?" and attribute is not None:
        value = vars(value).get(attribute, NOTHING) if _is_space(value) else NOTHING
    return name in ("?", "id") or isinstance(value, _core.Handle)


def _is_space(value: Any) -> bool:
    return issubclass(type(value), (ModuleType, type))


def classes(kind: type) -> Iterator[type]:
    """The classes of the program among a class and its bases."""
    return (cls for cls in kind.__mro__ if is_read(module_of(cls)))


def in_module(module: ModuleType) -> Iterator[Read]:
    """The data in a module of the program, and its functions and classes."""
    if is_read(module.__name__):
        for name, value in list(vars(module).items()):
            if not isinstance(value, ModuleType) and not is_special(name):
                yield Read(name, vars(module), name, value, is_silent=True)


def in_class(cls: type) -> Iterator[Read]:
    """The attributes of a class, and the functions that are its methods."""
    for name, value in list(vars(cls).items()):
        if name in _NO_DATA:
            continue
        if is_cache(value):
            yield Read(f"{name}.(cache)", cls, name, value)
        if functions := list(_functions(value)):
            for n, function in enumerate(functions):
                yield Read(name if n == 0 else f"{name}.(wrapped)", cls, name, function)
        elif _is_own_data(name, value):
            is_silent = not notes_changes(cls) and _is_found(value, cls)
            yield Read(name, cls, name, value, is_silent)


def methods(cls: type) -> list[tuple[type, str, Any]]:
    """The methods and properties of a class that does not note when they are replaced."""
    if notes_changes(cls):
        return []
    return [(cls, name, one) for name, one in vars(cls).items() if any(_functions(one))]


def makers(cls: type) -> Iterator[Read]:
    """The constructor of a class that a program holds, and so may call."""
    for function in _functions(vars(cls).get("__init__")):
        yield Read("__init__", cls, "__init__", function)


def _is_own_data(name: str, value: Any) -> bool:
    """Whether a class attribute is the program's data, shared by all objects of the class."""
    if is_special(name):
        return False
    return not hasattr(type(value), "__set__") or is_program(module_of(type(value)))


def _functions(value: Any) -> Iterator[FunctionType]:
    """The function behind a method or a property, and those of the program that wrap it."""
    found: Callable[..., Any] | None = value
    if isinstance(value, (staticmethod, classmethod)):
        found = value.__func__
    elif isinstance(value, property):
        for one in (value.fset, value.fdel):
            yield from _functions(one)
        found = value.fget
    elif isinstance(value, cached_property):
        found = value.func
    while "__wrapped__" in own_attributes(found):
        if isinstance(found, FunctionType) and is_read(found.__globals__.get("__name__")):
            yield found
        found = found.__wrapped__
    if isinstance(found, FunctionType):
        yield found

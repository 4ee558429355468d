"""Whether a program may tell a number from what stands for it in a recording."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from .free_variables import calls_unread
from .names import NUMBER, Names, is_silencing, names_of
from .places import NOTHING
from .programs import is_program, is_read

#: What code names that catches a TypeError, or asks for one.
_CATCHING = frozenset({"TypeError", "Exception", "BaseException", "suppress"})
_ASKING = frozenset({"suppress", "exception"})
#: Modules of Python whose functions take what stands for a number as the number.
_TRANSPARENT = frozenset(
    """
    abc bisect builtins collections concurrent contextlib dataclasses datetime enum functools gc
    heapq io itertools logging math operator os pathlib queue sys threading time traceback types
    typing warnings weakref _thread _collections _functools _operator
    """.split()
)


def tells_stand_ins(function: FunctionType) -> bool:
    """Whether a function may tell a number from what stands for it: it asks by `type` for a class,
    compares numbers by `is`, catches a TypeError, or calls code that is not looked into."""
    known = function.__globals__
    if not is_read(known.get("__name__")):
        return False
    names = names_of(function.__code__)
    asks = not names.classed <= {"self"} or any(_may_be_number(known, x) for x in names.compared)
    catches = any(_catches(known, name) for name in names.caught)
    is_silent = function.__name__ == "__exit__" and is_silencing(function.__code__)
    names_it = names.of_globals & _CATCHING or names.of_attributes & _ASKING
    hands_over = calls_unread(function) or any(_opaque(known, names))
    return bool(asks or catches or is_silent or names_it or hands_over)


def _may_be_number(known: dict[str, Any], name: str) -> bool:
    """Whether what code compares by `is` may be an int or a float."""
    value = _named(known, name)
    return name in ("?", "id", NUMBER) or value is NOTHING or type(value) in (int, float)


def _catches(known: dict[str, Any], name: str) -> bool:
    """Whether what an `except` names may catch a TypeError."""
    value = _named(known, name)
    kinds = value if isinstance(value, tuple) else (value,)
    return any(not isinstance(one, type) or issubclass(TypeError, one) for one in kinds)


def _named(known: dict[str, Any], name: str) -> Any:
    """What a name, or an attribute of a global, stands for."""
    first, *rest = name.split(".")
    value = known.get(first, getattr(builtins, first, NOTHING))
    for attribute in rest:
        value = getattr(value, attribute, NOTHING) if isinstance(value, ModuleType) else NOTHING
    return value


def _opaque(known: dict[str, Any], names: Names) -> Iterator[bool]:
    """For each module of Python that code names, also through what it has from there, whether it
    may treat what stands for a number as something else."""
    for module in names.of_modules:
        yield _is_opaque(module)
    for name in names.of_globals:
        value = known.get(name)
        if isinstance(value, ModuleType):
            yield _is_opaque(value.__name__)
        elif isinstance(value, (type, FunctionType, type(len))):
            yield _is_opaque(value.__module__)


def _is_opaque(module: Any) -> bool:
    name = module.partition(".")[0] if isinstance(module, str) else ""
    is_standard = name in sys.stdlib_module_names and not is_program(module)
    return is_standard and name not in _TRANSPARENT

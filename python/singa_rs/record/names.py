"""The names in code: what it reads, imports and compares."""

from __future__ import annotations

import dis
from types import CodeType
from typing import NamedTuple
from weakref import WeakKeyDictionary


class Names(NamedTuple):
    """The names in a piece of code and in what it defines."""

    #: Those that it reads or sets.
    of_globals: frozenset[str]
    of_attributes: frozenset[str]
    #: Of both, and of variables, those that it loads for more than to append to what they name, or
    #: that it sets, unless it makes an object.
    read: frozenset[str]
    #: Modules that it imports.
    of_modules: frozenset[str]
    #: What it compares by `is`; "id" if it reads the builtin.
    compared: frozenset[str]
    #: Of which variables it asks for the class by `type`; "?" for anything else.
    classed: frozenset[str]


_known_names: WeakKeyDictionary[CodeType, Names] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """The names in a piece of code, looked up once."""
    found = _known_names.get(code)
    if found is None:
        steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        used = (*GLOBAL, "STORE_GLOBAL", "DELETE_GLOBAL")
        of_globals = {step.argval for step in steps if step.opname in used}
        compared = _compared(steps) | ({"id"} & of_globals)
        of_own = _read(steps) if code.co_name == "__init__" else _read(steps) | _set(steps)
        names = (of_globals, code.co_names, of_own)
        own = (*names, _imported(steps), compared, _classed(steps))
        inner = [names_of(one) for one in code.co_consts if isinstance(one, CodeType)]
        found = Names(*(frozenset().union(*both) for both in zip(own, *inner, strict=True)))
        _known_names[code] = found
    return found


GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_APPENDING = frozenset({"append", "appendleft", "extend", "add"})


def _read(steps: list[dis.Instruction]) -> set[str]:
    """The names that code loads, unless it only appends to what they name."""
    found = set()
    for step, after in zip(steps, steps[1:], strict=False):
        loads = step.opname.startswith("LOAD_") and "CONST" not in step.opname
        is_method = after.opname in ("LOAD_METHOD", "LOAD_ATTR")
        if loads and not (is_method and after.argval in _APPENDING):
            found.update(step.argval if isinstance(step.argval, tuple) else (step.argval,))
        if step.opname in ("IMPORT_FROM", "MATCH_CLASS"):
            found.add("__match_args__" if step.opname == "MATCH_CLASS" else step.argval)
    return {name for name in found if isinstance(name, str)}


def _set(steps: list[dis.Instruction]) -> set[str]:
    """The globals and attributes that code sets or deletes."""
    kinds = ("STORE_GLOBAL", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_ATTR")
    return {step.argval for step in steps if step.opname in kinds}


def _imported(steps: list[dis.Instruction]) -> set[str]:
    """The modules that code imports, with their leading dots."""
    found = set()
    for n, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[n - 2].argval  # pushed before the names to import
            found.add("." * (level if type(level) is int else 0) + step.argval)
    return found


def _compared(steps: list[dis.Instruction]) -> set[str]:
    """What code compares by `is`, except with constants: a global, its attribute, or "?"."""
    found = set()
    for before, last, step in zip([None, *steps], steps, steps[1:], strict=False):
        if step.opname != "IS_OP" or last.opname == "LOAD_CONST" or last.argval == "__class__":
            continue
        is_of_global = last.opname == "LOAD_ATTR" and before and before.opname in GLOBAL
        if last.opname in GLOBAL:
            found.add(last.argval)
        else:
            found.add(f"{before.argval}.{last.argval}" if is_of_global else "?")
    return found


def _classed(steps: list[dis.Instruction]) -> set[str]:
    """The variables that code passes to `type`, or "?"."""
    found = set()
    for step, passed, call in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname in (*GLOBAL, "LOAD_ATTR", "LOAD_METHOD") and step.argval == "type":
            is_variable = passed.opname.startswith("LOAD_FAST") and "CALL" in call.opname
            found.add(passed.argval if is_variable else "?")
    return found


def is_special(name: str) -> bool:
    """Whether a name is of the kind that Python itself looks up."""
    return name.startswith("__") and name.endswith("__")

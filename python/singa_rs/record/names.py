"""The names in code: what it reads, imports, compares and catches."""

from __future__ import annotations

import dis
from types import CodeType
from typing import NamedTuple
from weakref import WeakKeyDictionary

GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
#: Stands for the numbers that code compares by `is`.
NUMBER = "(a number)"
_MATCHES = ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "JUMP_IF_NOT_EXC_MATCH")
_APPENDING = frozenset({"append", "appendleft", "extend", "add"})


class Names(NamedTuple):
    """The names in a piece of code and in what it defines."""

    #: Those that it reads or sets.
    of_globals: frozenset[str]
    of_attributes: frozenset[str]
    #: Of both, and of variables, those that it loads for more than to append to what they name, or
    #: that it sets, unless it makes an object.
    read: frozenset[str]
    #: Of globals and free variables, those that it uses for more than `super` and `isinstance`.
    valued: frozenset[str]
    #: Modules that it imports.
    of_modules: frozenset[str]
    #: What it compares by `is`; "id" if it reads the builtin.
    compared: frozenset[str]
    #: Of which variables it asks for the class by `type`; "?" for anything else.
    classed: frozenset[str]
    #: The classes of the errors that it catches; "?" for what it catches without naming it.
    caught: frozenset[str]


_known_names: WeakKeyDictionary[CodeType, Names] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """The names in a piece of code, looked up once."""
    found = _known_names.get(code)
    if found is None:
        steps = _steps(code)
        used = (*GLOBAL, "STORE_GLOBAL", "DELETE_GLOBAL")
        of_globals = {step.argval for step in steps if step.opname in used}
        compared = _compared(steps) | ({"id"} & of_globals)
        of_own = _read(steps) if code.co_name == "__init__" else _read(steps) | _set(steps)
        names = (of_globals, code.co_names, of_own, _valued(steps))
        own = (*names, _imported(steps), compared, _classed(steps), _caught(steps))
        inner = [names_of(one) for one in code.co_consts if isinstance(one, CodeType)]
        found = Names(*(frozenset().union(*both) for both in zip(own, *inner, strict=True)))
        _known_names[code] = found
    return found


def _steps(code: CodeType) -> list[dis.Instruction]:
    """The instructions of code that do something."""
    return [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]


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


def _valued(steps: list[dis.Instruction]) -> set[str]:
    """The globals and free variables that code uses for more than `super` and `isinstance`."""
    of = [n for n, one in enumerate(steps) if one.opname in GLOBAL or "DEREF" in one.opname]
    return {steps[n].argval for n in of if not _is_asked_of(steps, n)}


def _is_asked_of(steps: list[dis.Instruction], n: int) -> bool:
    """Whether what code loads is the class in `super(A, self)` or `isinstance(x.y, A)`."""
    at, after = n - 1, steps[n + 1]
    if after.opname.startswith("LOAD_FAST"):
        return steps[at].opname in GLOBAL and steps[at].argval == "super"
    while steps[at].opname == "LOAD_ATTR":
        at -= 1
    called = steps[at - 1]
    is_last = "CALL" in after.opname and after.arg == 2
    return is_last and called.opname in GLOBAL and called.argval == "isinstance"


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
    """What code compares by `is`, except with constants that are no numbers: a global, its
    attribute, or "?"; NUMBER for those that are."""
    found = set()
    for before, last, step in zip([None, *steps], steps, steps[1:], strict=False):
        if step.opname != "IS_OP" or last.argval == "__class__":
            continue
        if last.opname == "LOAD_CONST":
            found |= {NUMBER} if type(last.argval) in (int, float) else set()
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


def _caught(steps: list[dis.Instruction]) -> set[str]:
    """The names of the errors that code catches; "?" for those without one."""
    found = set()
    for n, step in enumerate(steps):
        if step.opname in _MATCHES:
            found |= _matched(steps[:n])
    handlers = sum(step.opname == "PUSH_EXC_INFO" for step in steps)
    # 1 is raised again by what cleans up after any handler.
    let_through = sum(step.opname == "RERAISE" and step.arg != 1 for step in steps)
    return found | ({"?"} if handlers > let_through or _is_bare(steps) else set())


def _is_bare(steps: list[dis.Instruction]) -> bool:
    """Whether there is an `except:` without classes; Python 3.10 has no PUSH_EXC_INFO."""
    for step, after, last in zip(steps, steps[1:], steps[2:], strict=False):
        is_old = step.is_jump_target and {step.opname, after.opname, last.opname} == {"POP_TOP"}
        if is_old or step.opname == "PUSH_EXC_INFO" and after.opname == "POP_TOP":
            return True
    return False


def _matched(before: list[dis.Instruction]) -> set[str]:
    """The names of the classes that were loaded last."""
    found, path = set(), ""
    for step in reversed(before):
        if step.opname == "LOAD_ATTR":
            path = f".{step.argval}{path}"
        elif step.opname in GLOBAL:
            found.add(step.argval + path)
            path = ""
        elif step.opname != "BUILD_TUPLE":
            break
    return found if found and not path else {"?"}


def is_silencing(code: CodeType) -> bool:
    """Whether the code of an `__exit__` may return something true."""
    steps = _steps(code)
    for before, step in zip([None, *steps], steps, strict=False):
        is_constant = before is not None and before.opname == "LOAD_CONST" and not before.argval
        if step.opname == "RETURN_VALUE" and not is_constant:
            return True
        if step.opname == "RETURN_CONST" and step.argval:
            return True
    return False


def is_special(name: str) -> bool:
    """Whether a name is of the kind that Python itself looks up."""
    return name.startswith("__") and name.endswith("__")

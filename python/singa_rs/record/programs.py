"""What is the user's program, and what are libraries."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from ..notices import is_ours

#: Modules whose functions and objects are not inspected.
_LIBRARIES = frozenset({"singa_rs", "numpy", *sys.stdlib_module_names}) - {"__main__"}
#: The folder of the standard library.
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")
#: Where packages are installed.
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


@cache
def is_program(module: Any) -> bool:
    """Whether a module, given by its name, is no library that this package knows: its objects are
    inspected."""
    if not isinstance(module, str):
        return False
    name = module.partition(".")[0]
    return name not in _LIBRARIES or name in sys.stdlib_module_names and _is_shadowed(name)


def module_of(kind: type) -> Any:
    """The name of the module of a class; none of those from which Python makes classes at run time
    for others (`types.new_class`)."""
    name = kind.__module__
    is_made = name in ("abc", "types") and not hasattr(sys.modules[name], kind.__name__)
    return "" if is_made else name


def _is_shadowed(name: str) -> bool:
    """Whether a module of the program has the name of one of the standard library."""
    origin = _origin(name)
    return origin.endswith(".py") and (not origin.startswith(_STANDARD) or _is_installed(origin))


def is_read(module: Any) -> bool:
    """Whether the code of a module, given by its name, is looked into: that of the program, and of
    installed packages that use this one."""
    if not is_program(module):
        return False
    name = module.partition(".")[0]
    return not _is_installed(_origin(name)) or _uses_this(name)


def _origin(name: str) -> str:
    return str(getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None))


def _is_installed(origin: str) -> bool:
    return any(folder in origin for folder in _INSTALLED)


#: By package: how many modules there were when it was looked for uses of this one, and whether
#: there is one.
_users: dict[str, tuple[int, bool]] = {}


def _uses_this(package: str) -> bool:
    """Whether a package that is installed has something of this one in a module that is loaded."""
    count, found = _users.get(package, (0, False))
    if not found and count != len(sys.modules):
        prefix = f"{package}."
        loaded = [
            module
            for name, module in list(sys.modules.items())
            if (name == package or name.startswith(prefix)) and isinstance(module, ModuleType)
        ]
        found = any(_is_ours(value) for one in loaded for value in list(vars(one).values()))
        _users[package] = len(sys.modules), found
    return found


def _is_ours(value: Any) -> bool:
    if not issubclass(type(value), (ModuleType, type, FunctionType)):
        return False
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return is_ours(name)

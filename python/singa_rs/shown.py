"""Values and objects as text: in messages of errors, and as objects describe themselves."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

#: The longest text of a value that is shown whole.
_LONG = 40


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor. Works before there is a module of tensors."""
    return hasattr(type(value), "shares_block")


def is_foreign(value: Any) -> bool:
    """Whether it is an array of another library that DLPack shares. Classes are none."""
    kind = type(value)
    return hasattr(kind, "__dlpack__") and not (is_tensor(value) or issubclass(kind, np.ndarray))


def kind_of(value: Any) -> str:
    """The name of a value's class, behind that of its module for another library's array."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__name__}" if is_foreign(value) else kind.__name__


def misgiven(value: Any, want: str = "a Tensor") -> str:
    """What errors say of a value that is no tensor."""
    return f"got {kind_of(value)}, {wanting(value, want)}"


def wanting(value: Any, want: str) -> str:
    """What errors want in place of a value: of tensors, also how another library's array becomes
    one."""
    is_shared = is_foreign(value) and ("Tensor" in want or "array" in want)
    return f"want {want}" + (": tensor.from_dlpack(x) shares its memory" if is_shared else "")


def shown(value: Any) -> str:
    """A short description of a value."""
    is_array = is_tensor(value) or isinstance(value, np.ndarray) or is_foreign(value)
    if is_array and hasattr(value, "shape"):
        return f"{kind_of(value)} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= _LONG else type(value).__name__


def described(one: Any, hidden: Collection[str] = ()) -> str:
    """A call of the constructor that made an object, as far as its attributes tell, without what is
    by default, and without arguments that are hidden."""
    found = []
    for parameter in inspect.signature(type(one)).parameters.values():
        value = getattr(one, parameter.name, parameter.default)
        is_plain = type(value) is type(parameter.default) and value == parameter.default
        if not (is_plain or value is parameter.default or parameter.name in hidden):
            found.append(f"{parameter.name}={shown(value)}")
    return f"{type(one).__name__}({', '.join(found)})"


def ending(code: int | None) -> str:
    """How a process ended, by the exit code that `subprocess` and `multiprocessing` tell."""
    if code is None:
        return "did not end"
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


def listed(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

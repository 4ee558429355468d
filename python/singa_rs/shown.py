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


def shown(value: Any) -> str:
    """A short description of a value."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
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

"""SINGA's names of operands, beside those that functions have here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..errors import called, named
from ..tensor import Tensor, to_numpy

Function = TypeVar("Function", bound=Callable[..., Any])

#: By function: SINGA's names, and the names here.
_SPELT = {
    "abs": {"a": "x"},
    "equal": {"x": "a", "y": "b"},
    "exp": {"a": "x"},
    "greater": {"x": "a", "y": "b"},
    "less": {"x": "a", "y": "b"},
    "mul": {"x": "a", "y": "b"},
    "sign": {"a": "x"},
}


def spelt(names: Mapping[str, str], op: str) -> Callable[[Function], Function]:
    """A decorator: arguments may also be given under the other names in `names`; errors name `op`.

    Raises:
        TypeError: an argument under two names.
    """

    def under_both(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **renamed(op, kwargs, names)) if kwargs else function(*args)

        return call  # type: ignore[return-value]

    return under_both


def renamed(op: str, kwargs: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Keywords under a function's own names; errors are those of `spelt`."""
    for given, own in names.items():
        if given in kwargs and own in kwargs:
            raise TypeError(f"{op}: got both {given} and {own}, want one of them")
    return {names.get(name, name): value for name, value in kwargs.items()}


def in_both_spellings(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The functions whose operands have other names in SINGA, with both."""
    return {
        name: called(spelt(names, name)(function), name, function.__doc__, __package__)
        for name, names in _SPELT.items()
        for function in (functions[name],)
    }


def ctensor2numpy(x: Tensor) -> np.ndarray:
    """`tensor.to_numpy(x)` (SINGA ctensor2numpy)."""
    return to_numpy(x)


ctensor2numpy = named(ctensor2numpy, __package__)

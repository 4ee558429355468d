"""The table of public names: what operations are called in `autograd`, as methods and operators of
tensors, and in `tensor`. Each row stands with the operation: `public`, or `function` of its rule.

`tests/python/stubs.py` writes the interface that type checkers see from what the table gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..errors import called, named
from ..tensor import Tensor
from ..tensor.arrays import admission
from .precision import in_precision
from .spellings import respelt

Function = TypeVar("Function", bound=Callable[..., Any])

#: By name, what `autograd` has, ...
FUNCTIONS: dict[str, Any] = {}
#: ... the methods and operators of tensors, ...
METHODS: dict[str, Any] = {}
#: ... and the functions of `tensor`.
OF_TENSOR: dict[str, Any] = {}

#: Errors name functions and methods, whose keywords may be PyTorch's, and whose tensors arrays.
_entered = partial(named, respelt=respelt, takes=admission)


def public(
    *rules: type, methods: str = "", quiet: bool = False, precision: str = ""
) -> Callable[[Function], Function]:
    """A decorator that enters a function of `autograd`, the classes that belong to it, and the
    names that tensors have it under. Errors name it unless it is `quiet`: calls user code, or does
    so itself, as the fastest do. `precision` is as in `in_precision`, for users' calls alone: the
    decorated function itself stays as it is."""

    def enter(plain: Function) -> Function:
        name = plain.__name__
        function = in_precision(plain, precision) if precision else plain
        FUNCTIONS.update((rule.__name__, rule) for rule in rules)
        FUNCTIONS[name] = function if quiet else _entered(function, __package__)
        for one in methods.split():
            names_itself = one.startswith("_") or (quiet and one == name)
            METHODS[one] = function if names_itself else _entered(function, Tensor.__module__, one)
        return plain

    return enter


def as_method(*names: str, precision: str = "") -> Callable[[Function], Function]:
    """A decorator that enters a method that tensors have under these names, in a precision as that
    of `public`."""

    def enter(plain: Function) -> Function:
        function = in_precision(plain, precision) if precision else plain
        for one in names:
            is_special = one.startswith("_") or not callable(function)
            METHODS[one] = function if is_special else _entered(function, Tensor.__module__, one)
        return plain

    return enter


def of_tensor(function: Function, name: str = "", doc: str | None = None) -> Function:
    """Enters a function of `tensor`; one that another function made gets its name and docstring."""
    function = called(function, name, doc) if name else function
    OF_TENSOR[function.__name__] = _entered(function, Tensor.__module__)
    return function

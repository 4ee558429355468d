"""Which parameters of public functions take NumPy arrays in place of tensors: those annotated with
`Tensor`, for which arrays are copied before the function runs, and those annotated with
`TensorLike`, or with arrays themselves, where the function does so; but none that are
`tensors_only`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from . import Tensor

    TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic

Function = TypeVar("Function", bound=Callable[..., Any])
#: Arrays, and NumPy's numbers.
ARRAYS = (np.ndarray, np.generic)


def tensors_only(*names: str) -> Callable[[Function], Function]:
    """A decorator: these parameters take no arrays, as the function writes into what it gets there
    or lends its memory, and would write or lend a copy that nobody sees."""

    def mark(function: Function) -> Function:
        function.tensors_only = names  # type: ignore[attr-defined]
        return function

    return mark


def takers(function: Callable[..., Any]) -> dict[int, inspect.Parameter]:
    """By position, the parameters of a function for which arrays are copied."""
    only = getattr(function, "tensors_only", ())
    return {
        at: one
        for at, one in enumerate(inspect.signature(function).parameters.values())
        if "Tensor" in types(one) and "np.ndarray" not in types(one)
        if one.name != "self" and one.name not in only
    }


def types(one: inspect.Parameter) -> list[str]:
    """The types that a parameter's annotation lists."""
    return str(one.annotation).split(" | ")

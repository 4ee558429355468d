"""Mixed precision (Micikevicius et al., 2018): which functions compute in a short type, which in
float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from .._core import DType, bfloat16, float16, float32
from ..tensor import Tensor
from .mode import mode

Function = TypeVar("Function", bound=Callable[..., Any])

#: The types that products may be computed in.
SHORT = (float16, bfloat16)


class Scale(NamedTuple):
    """What losses are multiplied by, and gradients divided by; optimizers adjust it."""

    #: (1,), float32.
    factor: Tensor
    #: How many updates there were since it changed, (1,), int32.
    updates: Tensor


class Precision(NamedTuple):
    """The short type, and the scale of losses, if there is one."""

    dtype: DType
    scale: Scale | None = None


class precision_scope:  # used like a function
    """A context in which the calling thread computes with a `Precision`; None means in the types of
    the tensors."""

    def __init__(self, precision: Precision | None) -> None:
        self._now = precision

    def __enter__(self) -> None:
        self._before = mode.precision
        mode.precision = self._now

    def __exit__(self, *_: object) -> None:
        mode.precision = self._before


def current() -> Precision | None:
    """What the calling thread computes with."""
    return mode.precision


def stored_in(dtype: DType) -> DType:
    """The dtype of parameters for an input of this one: float32 for a short type that mixed
    precision made."""
    return float32 if mode.precision is not None and dtype in SHORT else dtype


def in_precision(function: Function, kind: str) -> Function:
    """`function`, which in mixed precision takes its tensors in the short type (`kind` "short": a
    product), unless one is of float64, or in float32 ("wide")."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if mode.precision is not None:
            to = mode.precision.dtype if kind == "short" else float32
            args, kwargs = _converted((args, kwargs), to)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def rounded_once(function: Function) -> Function:
    """`function`, made of several operations, which computes 16-bit floats in float32 and rounds
    the result alone."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(x, Tensor) and x.dtype in SHORT:
                break
        else:
            return function(*args, **kwargs)
        floats = {x.dtype for x in _tensors((args, kwargs)) if x.dtype.is_float}
        if len(floats) != 1:
            return function(*args, **kwargs)
        args, kwargs = _replaced((args, kwargs), float32)
        return function(*args, **kwargs).as_type(floats.pop())

    return call  # type: ignore[return-value]


def _converted(given: Any, to: DType) -> Any:
    found = list(_tensors(given))
    if any(x.dtype.is_float and x.dtype.itemsize > 4 for x in found):
        return given
    return _replaced(given, to)


def _tensors(given: Any) -> Iterator[Tensor]:
    """The tensors among arguments, and in lists of them."""
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, (list, tuple, dict)):
        for one in given.values() if isinstance(given, dict) else given:
            yield from _tensors(one)


def _replaced(given: Any, to: DType) -> Any:
    if isinstance(given, Tensor):
        return given.as_type(to) if given.dtype.is_float and given.dtype != to else given
    if isinstance(given, dict):
        return {name: _replaced(one, to) for name, one in given.items()}
    if isinstance(given, (list, tuple)):  # functions read named tuples as they do others
        return (list if isinstance(given, list) else tuple)(_replaced(one, to) for one in given)
    return given

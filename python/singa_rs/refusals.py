"""Refusals of arguments: what Python says of calls that do not fit a function, with what is wanted
instead, and values that are not flags."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from . import elsewhere
from .notices import is_ours
from .shown import shown

_P = ParamSpec("_P")
_R = TypeVar("_R")


def hinted(function: Callable[_P, _R], advice: str = "") -> Callable[_P, _R]:
    """The same function, whose refusal of a call's arguments also says what it takes instead, or
    gives this advice."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            place = error.__traceback__
            is_refusal = place is not None and place.tb_next is None  # not from inside
            hint = (wanted(str(error), function, kwargs) or advice) if is_refusal else ""
            if not hint:
                raise
            text = _under_known_name(str(error), function, args)
            raise TypeError(f"{text}; want {hint}") from None

    return call


class Hinted:
    """Its direct subclasses are bases: `hinted` holds for the constructors of what derives from
    these."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "__init__" in vars(cls) and Hinted not in cls.__bases__:
            cls.__init__ = hinted(cls.__init__)  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)


def flag(value: Any, argument: str) -> bool:
    """A bool, or an int in its place.

    Raises:
        TypeError: anything else, such as text, which would be true.
    """
    if not isinstance(value, (bool, int, np.bool_, Integral)):
        raise TypeError(f"{argument}: got {shown(value)}, want a bool")
    return bool(value)


def strict_flag(value: Any, argument: str) -> bool:
    """A bool.

    Raises:
        TypeError: anything else, also an int.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}: got {shown(value)}, want a bool")
    return bool(value)


def a_name(value: Any, argument: str) -> str | None:
    """A text, or None.

    Raises:
        TypeError: anything else.
    """
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{argument}: got {shown(value)}, want a str or None")
    return value


def is_real(value: Any) -> bool:
    """Whether it is a real number, and neither a bool nor a timedelta64, an integer to NumPy."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.timedelta64))


def is_integral(value: Any) -> bool:
    """Whether it is an integer, with the exceptions of `is_real`."""
    return isinstance(value, Integral) and is_real(value)


def count(value: Any, argument: str, least: int = 1, most: int | None = None) -> int:
    """An int from `least`, up to `most` if that is given.

    Raises:
        TypeError, ValueError: anything else.
    """
    if not is_integral(value):
        raise TypeError(f"{argument}: got {shown(value)}, want an int")
    if value < least or most is not None and value > most:
        want = f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{argument}: got {value}, want {want}")
    return int(value)


def is_of_package(function: Callable[..., Any]) -> bool:
    """Whether a function is this package's. Code that `exec` runs may have no module."""
    return is_ours(function.__module__)


def _under_known_name(text: str, function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What Python says of a call that it refuses, of the class or the method that users know; text
    about their own functions as it is."""
    if not is_of_package(function):
        return text
    is_constructor = function.__name__ == "__init__" and args
    name = type(args[0]).__name__ if is_constructor else function.__name__
    return text.replace(f"{function.__qualname__}()", f"{name}()", 1)


#: What Python says of keywords that it refuses.
REFUSED = re.compile(r"(unexpected keyword|multiple values for) argument '(\w+)'")
#: What it says of arguments that are missing, and of too many.
MISCALLED = re.compile(r"\(\) (missing \d+ required|takes )|missing a required|too many positional")


def wanted(text: str, function: Callable[..., Any], given: Collection[str]) -> str:
    """What is wanted in the place of a keyword that a function refused; "" if it refused none."""
    parameters = inspect.signature(function).parameters.values()
    named = [
        one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    found = REFUSED.search(text)
    if found is None and MISCALLED.search(text) and is_of_package(function):
        return ", ".join(one for one in named if one != "self")
    if found is None:
        hints = (elsewhere.of_keyword(one, named) for one in given if one not in named)
        return next(filter(None, hints), "")
    if found[1].startswith("multiple"):
        return elsewhere.of_place(found[2], function.__name__)
    return elsewhere.of_keyword(found[2], named) or ", ".join(one for one in named if one != "self")

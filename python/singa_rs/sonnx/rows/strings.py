"""Operators on strings, which stay on the host. Most are evaluated there by onnx's reference, as is
every node that is given strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DTypeError
from ..table import reads
from ..values import is_text

#: ONNX's operators that take nothing but strings, with the opset that they begin with.
_SINCE = {"StringConcat": 20, "StringNormalizer": 10, "StringSplit": 20}


def _refused(name: str) -> Callable[..., Any]:
    def run(*xs: Any, **attributes: Any) -> Any:
        raise _want_strings(name, *xs)

    return run


def _want_strings(name: str, *xs: Any) -> DTypeError:
    return DTypeError(f"{name}: got {', '.join(x.dtype.name for x in xs)}, want strings")


for _name, _since in _SINCE.items():
    reads(_name, _since)(_refused(_name))


@reads("RegexFullMatch", since=20, raw=True)
def regex_full_match(x: Any, *, pattern: str | None = None) -> np.ndarray:
    """Whether all of a string matches a pattern. Python's syntax has nearly all of re2's, which
    ONNX names; onnx's reference before 1.18 needs a package for it."""
    if not is_text(x):
        raise _want_strings("RegexFullMatch", x)
    try:
        matches = re.compile("" if pattern is None else pattern).fullmatch
    except re.error as error:
        raise ValueError(f"RegexFullMatch: got pattern {pattern!r}: {error}") from error
    found = [matches(one) is not None for one in np.ravel(x).tolist()]
    return np.array(found, bool).reshape(np.shape(x))

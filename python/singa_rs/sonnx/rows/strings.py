"""Operators on strings, which the interpreter evaluates on the host by onnx's reference, as it does
every node that is given strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import DTypeError
from ..table import reads

#: ONNX's operators that take nothing but strings, with the opset that they begin with.
_SINCE = {"StringConcat": 20, "StringNormalizer": 10, "StringSplit": 20, "RegexFullMatch": 20}


def _refused(name: str) -> Callable[..., Any]:
    def run(*xs: Any, **attributes: Any) -> Any:
        got = ", ".join(x.dtype.name for x in xs)
        raise DTypeError(f"{name}: got {got}, want strings")

    return run


for _name, _since in _SINCE.items():
    reads(_name, _since)(_refused(_name))

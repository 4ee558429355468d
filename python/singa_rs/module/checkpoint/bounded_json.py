"""JSON from files that are not trusted: bounded in length, and in how many values it holds."""

from __future__ import annotations

import json
import re
from typing import Any

#: The most bytes of a text: enough for about 100,000 tensors.
LENGTH = 16 << 20
#: The most objects and arrays, and the most values. Python takes up to 200 bytes for one of two
#: characters, so the length alone does not bound the memory.
_CONTAINERS, _VALUES = 1 << 18, 1 << 20
#: A string without escapes, or the beginning of one that does not end.
_STRING = re.compile(rb'"[^"]*"?')


def parse(text: bytes) -> Any:
    """The value of a text.

    Raises:
        ValueError: not JSON, one that holds a name twice, or that exceeds the limits.
        RecursionError: it is nested too deeply.
    """
    check(text)
    return json.loads(text.decode(), object_pairs_hook=_without_doubles)


def check(text: bytes) -> None:
    """Refuses a text that exceeds the limits.

    Raises:
        ValueError: it does.
    """
    if len(text) > LENGTH:
        raise ValueError(f"it takes {len(text)} bytes, want at most {LENGTH}")
    containers, values = _counts(text)
    if containers > _CONTAINERS or values > _VALUES:  # not only those within strings, perhaps
        bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
        containers, values = _counts(_STRING.sub(b"", bare))
    if containers > _CONTAINERS or values > _VALUES:
        raise ValueError(
            f"it holds {containers} objects and arrays and {values} commas, want at most "
            f"{_CONTAINERS} and {_VALUES}"
        )


def _counts(text: bytes) -> tuple[int, int]:
    return text.count(b"{") + text.count(b"["), text.count(b",")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found

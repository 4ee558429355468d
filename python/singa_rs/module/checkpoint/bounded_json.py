"""JSON from files that are not trusted: bounded in length, and in how many values it holds."""

from __future__ import annotations

import json
from typing import Any

#: The most bytes of a text: enough for about 100,000 tensors.
LENGTH = 16 << 20
#: The most objects and arrays, and the most values. Python takes up to 200 bytes for one of two
#: characters, so the length alone does not bound the memory.
_CONTAINERS, _VALUES = 1 << 18, 1 << 20


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
    containers, values = text.count(b"{") + text.count(b"["), text.count(b",")
    if containers > _CONTAINERS or values > _VALUES:
        raise ValueError(
            f"it holds {containers} objects and arrays and {values} commas, want at most "
            f"{_CONTAINERS} and {_VALUES}"
        )


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found

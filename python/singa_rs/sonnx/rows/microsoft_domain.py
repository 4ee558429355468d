"""The domain of onnxruntime's own operators; what they have that is not computed here is refused by
its name."""

from __future__ import annotations

from typing import Any

DOMAIN = "com.microsoft"


def refuse(op: str, /, **given: Any) -> None:
    """Raises a NotImplementedError for an attribute that is set, not 0, and for an input or an
    output that is not left out."""
    for name, got in given.items():
        if got is not None and not (isinstance(got, int | float | str | tuple) and not got):
            have = got if isinstance(got, int | float | str | tuple) else "a value"
            raise NotImplementedError(f"{op}: got {name} {have}, want none")

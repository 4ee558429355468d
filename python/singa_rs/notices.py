"""What users see without asking: warnings that are shown once in a process, of what runs, but not
as in NumPy or PyTorch; text in notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable

_PACKAGE = __name__.partition(".")[0]
_shown: set[Hashable] = set()


def once(key: Hashable, message: str) -> None:
    """Shows a UserWarning at the caller's line outside of this package, the first time for `key`.
    If it is raised as an error, it is not counted as shown."""
    if key in _shown:
        return
    warnings.warn(message, UserWarning, stacklevel=_depth())
    _shown.add(key)


def _depth() -> int:
    """The `stacklevel` of the first frame outside of this package, as `once` would give it."""
    depth, frame = 2, sys._getframe(2)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        depth, frame = depth + 1, frame.f_back
    return depth


def _is_own(name: str) -> bool:
    return name.partition(".")[0] == _PACKAGE


def preformatted(text: str) -> str:
    """Text as HTML, for notebooks."""
    import html  # nothing but notebooks needs it

    return f"<pre>{html.escape(text)}</pre>"

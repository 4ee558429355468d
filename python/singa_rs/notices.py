"""What users see without asking: warnings that are shown once in a process, of what runs, but not
as in NumPy or PyTorch; text in notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable
from types import FrameType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_shown: set[Hashable] = set()


def once(key: Hashable, message: str) -> None:
    """Shows a UserWarning at the caller's line outside of this package, the first time for `key`.
    If it is raised as an error, it is not counted as shown."""
    if key in _shown:
        return
    warnings.warn(message, UserWarning, stacklevel=_depth())
    _shown.add(key)


def warn_user(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """A warning that shows the caller's line outside of this package."""
    warnings.warn(message, category, stacklevel=_depth())


def _depth() -> int:
    """The `stacklevel` of the first frame outside of this package, for what calls this."""
    depth, frame = 2, sys._getframe(2)
    while frame.f_back is not None and is_own(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of this package."""
    return is_ours(frame.f_globals.get("__name__"))


def is_ours(module: object) -> bool:
    """Whether a module, given by its name, is of this package."""
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE


def in_notebooks(self: Any) -> str:
    """The summary, in notebooks."""
    import html  # which nothing else needs

    return f"<pre>{html.escape(self.summary())}</pre>"

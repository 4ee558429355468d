"""What exists for SINGA's programs alone.

A program of SINGA 1.x imports its modules from here: `net`, `layer`, `loss`, `metric`, `optimizer`,
`snapshot` and `proto`, and those that are the package's own: `device`, `initializer` and `tensor`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

#: The modules of the package that programs of SINGA 1.x import beside those in this folder.
_SHARED = ("device", "initializer", "tensor")


def __getattr__(name: str) -> ModuleType:
    if name in _SHARED:
        return importlib.import_module(f"singa_rs.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

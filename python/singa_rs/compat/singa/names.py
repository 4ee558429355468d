"""How a module of SINGA gets the names of one of this package."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def names_of(module: ModuleType) -> dict[str, Any]:
    """What a module defines or imports, but other modules, and its special attributes."""
    found = vars(module).items()
    return {k: v for k, v in found if not (k.startswith("__") or isinstance(v, ModuleType))}

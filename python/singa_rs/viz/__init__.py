"""Inspecting recorded graphs: their figures, profiles and pictures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import Graph
    from .layers import OfLayer
    from .profile import Profile

__all__ = ["Graph", "OfLayer", "Profile"]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Imports what few programs need on first use."""
        homes = {"Graph": "graph", "OfLayer": "layers", "Profile": "profile"}
        if name not in homes:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)

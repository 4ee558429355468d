"""Inspecting recorded graphs: their figures, profiles and pictures."""

from .graph import Graph
from .layers import OfLayer
from .profile import Profile

__all__ = ["Graph", "OfLayer", "Profile"]


def __dir__() -> list[str]:
    return sorted(__all__)

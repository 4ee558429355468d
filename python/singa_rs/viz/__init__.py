"""Inspecting recorded graphs: their figures, profiles and pictures."""

from .graph import Graph
from .profile import Profile

__all__ = ["Graph", "Profile"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""Looking at recorded graphs: their figures, a profile, and pictures of them."""

from .graph import Graph
from .profile import Profile

__all__ = ["Graph", "Profile"]

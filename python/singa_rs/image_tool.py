# ruff: noqa: F403 - the names of the other file
"""`compat.image_tool` under SINGA's name."""

from .compat.image_tool import *
from .compat.image_tool import __all__  # noqa: F401


def __dir__() -> list[str]:
    return sorted(__all__)

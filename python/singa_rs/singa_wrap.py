# ruff: noqa: F403 - the names of the other file
"""`compat.singa_wrap` under SINGA's name."""

from .compat.singa_wrap import *
from .compat.singa_wrap import __all__  # noqa: F401


def __dir__() -> list[str]:
    return sorted(__all__)

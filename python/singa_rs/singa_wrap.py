# ruff: noqa: F403 - the names of the other file
"""`compat.singa_wrap` under SINGA's name."""

from .compat.singa_wrap import *
from .compat.singa_wrap import (  # noqa: F401
    __add__,
    __all__,
    __div__,
    __eq__,
    __ge__,
    __gt__,
    __le__,
    __lt__,
    __mul__,
    __sub__,
)


def __dir__() -> list[str]:
    return sorted(__all__)

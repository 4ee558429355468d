# ruff: noqa: F403 - the names of the other module
"""SINGA's `singa_wrap`: `singa_rs.compat.singa_wrap`."""

from ..singa_wrap import *
from ..singa_wrap import (  # noqa: F401
    __add__,
    __div__,
    __eq__,
    __ge__,
    __gt__,
    __le__,
    __lt__,
    __mul__,
    __sub__,
)

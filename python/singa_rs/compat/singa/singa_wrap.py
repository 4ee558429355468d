# ruff: noqa: F403 - the names of the other module
"""SINGA's `singa_wrap`: `singa_rs.compat.singa_wrap`."""

from ..singa_wrap import *
from ..singa_wrap import __all__  # noqa: F401
